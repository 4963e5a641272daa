"""Readers of a run's files. What cannot be read is a `StoreError` that names the file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors import safe_open

if TYPE_CHECKING:
    import pandas as pd

LARGEST_TEXT = 256 * 2**20  # bytes of JSON or CSV that are read at all


class StoreError(Exception):
    """Something on disk cannot be used; the message is one sentence for the user."""


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    if path.is_dir():
        raise StoreError(f"{path} is a folder, not a file")
    try:
        yield
    except StoreError:
        raise
    except FileNotFoundError:
        raise StoreError(f"{path} does not exist") from None
    except Exception as error:  # damaged bytes raise whatever the parser of that format happens to meet
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise StoreError(f"{path} cannot be read: {reason}") from None


def _text(path: Path) -> str:
    with _reading(path):
        if path.stat().st_size > LARGEST_TEXT:
            raise StoreError(f"{path} is larger than {LARGEST_TEXT >> 20} MiB")
        return path.read_text(encoding="utf-8")


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object."""
    text = _text(path)
    with _reading(path):
        value = json.loads(text)
        if not isinstance(value, dict):
            raise ValueError("it does not hold a JSON object")
        return value


def read_json_lines(path: Path) -> list[dict[str, Any]]:
    """One JSON object a line; a last line without an end was cut off in writing and is left out."""
    text = _text(path)
    with _reading(path):
        records = [json.loads(line) for line in text.split("\n")[:-1]]
        if not all(isinstance(record, dict) for record in records):
            raise ValueError("a line of it does not hold a JSON object")
        return records


def read_csv(path: Path, columns: Sequence[str]) -> pd.DataFrame:
    """A table that has at least these columns."""
    import pandas as pd  # half a second, see store.atomic

    _text(path)
    with _reading(path):
        table = pd.read_csv(path)
        missing = [name for name in columns if name not in table.columns]
        if missing:
            raise ValueError(f"it has no column {', '.join(missing)}")
        return table


def read_npy(path: Path) -> np.ndarray:
    """One array."""
    with _reading(path), path.open("rb") as file:
        array = np.load(file, allow_pickle=False)
        if not isinstance(array, np.ndarray):
            raise ValueError("it does not hold one array")
        return array


def read_npz(path: Path, names: Sequence[str]) -> dict[str, np.ndarray]:
    """The arrays of these names."""
    with _reading(path), path.open("rb") as file:
        archive = np.load(file, allow_pickle=False)
        if isinstance(archive, np.ndarray):
            raise ValueError("it holds one array, not named ones")
        with archive:
            return {name: archive[name] for name in names}


def read_safetensors(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Named arrays and their metadata."""
    with _reading(path), safe_open(path, framework="np") as file:
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
        return arrays, json.loads((file.metadata() or {}).get("json", "{}"))
