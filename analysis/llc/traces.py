"""The traces of a checkpoint's chains on disk, with their row and the digest of their parameters.

llc/SETTINGS_step_STEP.npz of a run has them. While another process has the run locked they are kept beside it
(`store.aside`), and moved into the run when it is free. A file that the run's manifest does not list is neither read
nor written.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from icl_lab.analysis.llc.settings import Settings
from icl_lab.src.model import Params
from icl_lab.store import aside, layout, manifest
from icl_lab.store.atomic import write_bytes, write_csv
from icl_lab.store.llc_rows import current
from icl_lab.store.params import flattened
from icl_lab.store.readers import StoreError, read_npz
from icl_lab.store.rundir import stored_id

ROW = "row"  # the array that holds the row, as JSON
PARAMETERS = "parameters"  # the array that holds the SHA-256 of the parameters
KEYS = {"step", "llc", "llc_low", "llc_high", "verdict", "reasons"}  # which every row has


def trace_file(run: Path, settings: Settings, step: int) -> Path:
    """Where the traces of a checkpoint are kept."""
    return run / layout.LLC_TRACES / f"{settings.name}_step_{step:08d}.npz"


def check_own(run: Path, settings: Settings, steps: Sequence[int], beside: bool) -> None:
    """`StoreError` for a file of somebody else where traces of these steps would be, in the run or also `beside` it."""
    files = [trace_file(run, settings, step) for step in steps]
    for path in files:
        if path.exists() and manifest.exists(run):
            manifest.owns(run, path)
    if beside:
        aside.check(run, [path.name for path in files])


# --- one checkpoint ---


def known_row(run: Path, settings: Settings, step: int, digest: bytes) -> dict[str, Any] | None:
    """The row of a checkpoint that is estimated already at parameters of this digest, which may lie beside the run."""
    if _is_of(path := trace_file(run, settings, step), digest):
        return read_row(path)
    kept = _read_aside(run, settings, step, digest)
    return None if kept is None else _parts(kept)[0]


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


def write_aside(run: Path, settings: Settings, step: int, written: bytes, identity: str) -> dict[str, Any]:
    """The same beside a run that somebody else has locked, for the run of this id."""
    aside.write(run, trace_file(run, settings, step).name, written, identity)
    return _parts(written)[0]


def take_over(run: Path, settings: Settings, step: int, digest: bytes) -> None:
    """Moves traces of these parameters that are kept beside a run into it, if there are any and it has none."""
    path = trace_file(run, settings, step)
    if (kept := _read_aside(run, settings, step, digest)) is not None:
        if not _is_of(path, digest):
            write_bytes(path, kept)
        aside.remove(run, path.name)


def _read_aside(run: Path, settings: Settings, step: int, digest: bytes) -> bytes | None:
    """Traces that are kept beside this run, if they are of these parameters."""
    kept = aside.read(run, trace_file(run, settings, step).name, stored_id(run))
    return kept if kept is not None and _parts(kept)[1] == digest else None


def _parts(written: bytes) -> tuple[dict[str, Any], bytes]:
    """The row, and the SHA-256 of the parameters, of traces as we have written them."""
    with np.load(io.BytesIO(written)) as arrays:
        return current(json.loads(arrays[ROW].tobytes())), arrays[PARAMETERS].tobytes()


def _is_of(path: Path, digest: bytes) -> bool:
    """Whether there is a file of traces of these parameters."""
    return path.exists() and digest == read_digest(path)


def read_row(path: Path) -> dict[str, Any]:
    """The row of a file of traces; `StoreError` if it is not one."""
    with _reading_traces(path):
        row = current(json.loads(read_npz(path, (ROW,))[ROW].tobytes()))
        if missing := KEYS - {*row}:
            raise LookupError(missing)
        return row


def read_digest(path: Path) -> bytes:
    """The SHA-256 of the parameters that a file of traces is of."""
    with _reading_traces(path):
        return read_npz(path, (PARAMETERS,))[PARAMETERS].tobytes()


@contextmanager
def _reading_traces(path: Path) -> Iterator[None]:
    try:
        yield
    except (StoreError, LookupError, TypeError, ValueError, AttributeError):
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


def chain_llcs(run: Path, settings: Settings, step: int) -> np.ndarray:
    """The LLC of each chain [C] of a checkpoint that is estimated: nbeta times its mean excess loss after the burn-in.

    `StoreError` if the file is not the traces of one.
    """
    path = trace_file(run, settings, step)
    with _reading_traces(path):
        excess = read_npz(path, ("excess",))["excess"].astype(np.float64)
        return chain_means(excess, settings)


def chain_means(excess: np.ndarray, settings: Settings) -> np.ndarray:
    """The same of excess losses [C, T], the burn-in included."""
    with np.errstate(invalid="ignore", over="ignore"):  # of chains that diverged
        means: np.ndarray = settings.nbeta * excess[:, settings.burn_in :].mean(axis=1)
    return means


# --- all of a run ---


def write_table(run: Path) -> None:
    """llc.csv: the row of every checkpoint that is estimated, by settings, then by step."""
    rows = [{"settings": path.name.partition("_")[0], **row} for path, row in _rows(run) if row is not None]
    write_csv(run / layout.LLC, rows)


def left_out(run: Path) -> list[Path]:
    """Files whose rows are not in the table, since they cannot be read or are not the run's; also those beside it."""
    tabled = {path for path, row in _rows(run) if row is not None}
    inside = [path for path in sorted((run / layout.LLC_TRACES).glob("*.npz")) if path not in tabled]
    return [*inside, *aside.others(run, stored_id(run))]


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
