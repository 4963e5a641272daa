"""Files that are either there in full or not there: written beside their place, then renamed into it."""

from __future__ import annotations

import io
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save as safetensors_bytes

from store import layout
from store.manifest import claim


def write_bytes(path: Path, content: bytes) -> None:
    """Writes a file of a run, whose manifest names it first, or one that is nobody's yet; see `replace_file`."""
    write_blocks(path, [content])


def write_blocks(path: Path, blocks: Iterable[bytes]) -> None:
    """The same, of a content that need not be in memory."""
    claim(path)
    _replace(path, blocks)


def replace_file(path: Path, content: bytes) -> None:
    """Writes a file atomically, making its folder if there is none, whatever is there.

    Its content is synced before it gets its name; the name is not, so after a power cut the file may be the older one,
    in full. Syncing the folder too takes 2 ms a file, and a run, which goes on from an older checkpoint, gains nothing.
    """
    _replace(path, [content])


def _replace(path: Path, blocks: Iterable[bytes]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = layout.draft(path)
    with naming_file(path):
        draft.unlink(missing_ok=True)  # a killed process's: nobody else gives a file such a name
        try:
            with open(draft, "xb") as file:
                file.writelines(blocks)
                file.flush()
                os.fsync(file.fileno())
            os.replace(draft, path)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise


@contextmanager
def naming_file(path: Path) -> Iterator[None]:
    """Errors of the operating system name this file: writing and syncing name none, and users don't know of others."""
    try:
        yield
    except OSError as error:
        error.filename, error.filename2 = str(path), None
        raise


def write_with(path: Path, save: Callable[[io.BytesIO], Any]) -> None:
    """Writes what `save(buffer)` puts into a buffer."""
    buffer = io.BytesIO()
    save(buffer)
    write_bytes(path, buffer.getvalue())


def json_text(value: Any, indent: int | None = 2) -> str:
    """JSON in which numbers that are not finite are null."""
    return json.dumps(_finite(value), indent=indent, allow_nan=False)


def json_bytes(value: Any) -> bytes:
    """A file of JSON."""
    return (json_text(value) + "\n").encode()


def write_json(path: Path, value: Any) -> None:
    """Writes JSON."""
    write_bytes(path, json_bytes(value))


def csv_bytes(rows: Sequence[Mapping[str, Any]], columns: Sequence[str] | None = None) -> bytes:
    """A table: one mapping a row; these columns, or those of the first row in its order."""
    import pandas as pd  # half a second, which a command line that only checks its flags should not pay

    text: str = pd.DataFrame(list(rows), columns=columns).to_csv(index=False, lineterminator="\n")
    return text.encode()


def write_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Writes a table: one mapping a row, columns in the order of the first."""
    write_bytes(path, csv_bytes(rows))


def write_npy(path: Path, array: np.ndarray) -> None:
    """Writes one array."""
    write_with(path, lambda buffer: np.save(buffer, np.asarray(array, order="C"), allow_pickle=False))


def write_npz(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Writes named arrays. NumPy's zip entries carry a fixed date, so equal arrays are equal files."""
    contiguous = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    write_with(path, lambda buffer: np.savez(buffer, allow_pickle=False, **contiguous))


def write_safetensors(path: Path, arrays: Mapping[str, np.ndarray], metadata: Mapping[str, Any]) -> None:
    """Writes named arrays with metadata."""
    contiguous = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    write_bytes(path, safetensors_bytes(contiguous, safetensors_metadata(metadata)))


def safetensors_metadata(metadata: Mapping[str, Any]) -> dict[str, str]:
    """The metadata of a safetensors file: one sorted JSON string, since the format keeps no order of its own."""
    return {"json": json.dumps(_finite(metadata), sort_keys=True)}


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    if isinstance(value, np.ndarray):
        return _finite(value.tolist())
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
