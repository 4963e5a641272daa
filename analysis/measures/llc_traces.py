"""The traces of a checkpoint's chains on disk, with their row and the digest of their parameters.

llc/SETTINGS_step_STEP.npz of a run has them. While another process has the run locked they are kept in a folder
beside it, .NAME.llc, and moved into the run when it is free. A file that the run's manifest does not list is neither
read nor written.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from analysis.measures.llc_health import health_of
from analysis.measures.llc_settings import Settings
from src.model import Params
from store import layout, manifest
from store.atomic import replace_file, write_bytes, write_csv
from store.params import flattened
from store.readers import StoreError, read_npz

ROW = "row"  # the array that holds the row, as JSON
PARAMETERS = "parameters"  # the array that holds the SHA-256 of the parameters
KEYS = {"step", "llc", "llc_low", "llc_high", "health"}  # which every row has


def trace_file(run: Path, settings: Settings, step: int) -> Path:
    """Where the traces of a checkpoint are kept."""
    return run / layout.LLC_TRACES / f"{settings.name}_step_{step:08d}.npz"


def check_own(run: Path, settings: Settings, steps: Sequence[int]) -> None:
    """`StoreError` for a file that somebody else has put where traces of these steps would be."""
    for path in (trace_file(run, settings, step) for step in steps):
        if path.exists() and manifest.exists(run):
            manifest.owns(run, path)


# --- one checkpoint ---


def known_row(run: Path, settings: Settings, step: int, params: Params) -> dict[str, Any] | None:
    """The row of a checkpoint that is estimated already at these parameters, which may lie beside the run."""
    path, digest = trace_file(run, settings, step), digest_of(params)
    if path.exists() and digest == read_digest(path):
        return read_row(path)
    aside = layout.llc_aside(run) / path.name
    return read_row(aside) if aside.exists() and digest == read_digest(aside) else None


def content(row: Mapping[str, Any], traces: Mapping[str, np.ndarray], params: Params) -> bytes:
    """The content of a file of traces."""
    arrays = {name: values.astype(np.float32) for name, values in traces.items()}
    buffer = io.BytesIO()
    said = {ROW: json.dumps(row).encode(), PARAMETERS: digest_of(params)}
    named = {name: np.frombuffer(value, np.uint8) for name, value in said.items()}
    np.savez(buffer, allow_pickle=False, **arrays, **named)
    return buffer.getvalue()


def write(run: Path, settings: Settings, step: int, written: bytes) -> dict[str, Any]:
    """Writes a checkpoint's traces; gives the row as it will be read."""
    path = trace_file(run, settings, step)
    write_bytes(path, written)
    return read_row(path)


def write_aside(run: Path, settings: Settings, step: int, written: bytes) -> dict[str, Any]:
    """The same beside a run that somebody else has locked."""
    path = layout.llc_aside(run) / trace_file(run, settings, step).name
    replace_file(path, written)
    return read_row(path)


def take_over(run: Path, settings: Settings, step: int) -> None:
    """Moves traces that are kept beside a run into it, if there are any."""
    path = trace_file(run, settings, step)
    aside = layout.llc_aside(run) / path.name
    if aside.exists():
        write_bytes(path, aside.read_bytes())
        aside.unlink()
        with suppress(OSError):  # those of other settings may still be there
            aside.parent.rmdir()


def read_row(path: Path) -> dict[str, Any]:
    """The row of a file of traces; `StoreError` if it is not one."""
    with _reading_traces(path):
        row: dict[str, Any] = json.loads(read_npz(path, (ROW,))[ROW].tobytes())
        if missing := KEYS - {*row}:
            raise LookupError(missing)
        return row | {"health": health_of(row)}


def read_digest(path: Path) -> bytes:
    """The SHA-256 of the parameters that a file of traces is of."""
    with _reading_traces(path):
        return read_npz(path, (PARAMETERS,))[PARAMETERS].tobytes()


@contextmanager
def _reading_traces(path: Path) -> Iterator[None]:
    try:
        yield
    except (StoreError, LookupError, TypeError, ValueError):
        raise StoreError(
            f"{path} is not the traces of an LLC; move it away, and the same command estimates them again"
        ) from None


def digest_of(params: Params) -> bytes:
    """The SHA-256 of parameters, in whatever order they come."""
    digest = hashlib.sha256()
    for name, values in sorted(flattened(params).items()):
        array = np.ascontiguousarray(values, np.float32)
        digest.update(f"{name} {array.shape} ".encode() + array.tobytes())
    return digest.digest()


# --- all of a run ---


def write_table(run: Path) -> None:
    """llc.csv: the row of every checkpoint that is estimated, by settings, then by step."""
    rows = [{"settings": path.name.partition("_")[0], **row} for path, row in _rows(run) if row is not None]
    write_csv(run / layout.LLC, rows)


def left_out(run: Path) -> list[Path]:
    """Files of traces whose rows are not in the table, since they cannot be read or are not the run's."""
    tabled = {path for path, row in _rows(run) if row is not None}
    return [path for path in sorted((run / layout.LLC_TRACES).glob("*.npz")) if path not in tabled]


def _rows(run: Path) -> Iterator[tuple[Path, dict[str, Any] | None]]:
    """The run's files of traces with their rows, None for one that cannot be read."""
    names = {*manifest.names(run)} if manifest.exists(run) else None
    for path in sorted((run / layout.LLC_TRACES).glob("*.npz")):
        name = f"{layout.LLC_TRACES}/{path.name}"
        if layout.is_run_file(name) and (names is None or name in names):
            try:
                yield path, read_row(path)
            except StoreError:
                yield path, None
