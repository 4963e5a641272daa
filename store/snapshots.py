"""Stores the parameters at each record of the metrics, one row per record, in a preallocated memory-mapped file.

A row is synced before its record is written, so every record has a complete row; a kill loses at most the row being
written. The file is kept with the checkpoints and converted to snapshots.safetensors when the run is done.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
from safetensors import safe_open

from icl_lab.store import layout, ownership
from icl_lab.store.atomic import Streamed, safetensors_blocks, safetensors_metadata, write_blocks, write_json
from icl_lab.store.manifest import claim
from icl_lab.store.params import Params, flattened, nested
from icl_lab.store.readers import StoreError, expecting, is_count, json_lines, read_json, reading, safetensors_rows
from icl_lab.store.replacing import naming_file, unshare

KIND = np.dtype("<f4")
BLOCK = 2**24  # bytes of rows in memory during the export; a single row may need more
STEP = "step"  # name of the array of steps
WHAT = "the snapshots of a run"


def begin(run: Path, steps: Sequence[int], params: Mapping[str, Mapping[str, Any]]) -> None:
    """Creates the file with space for the parameters at each step; a full disk is an error now, not later."""
    shapes = {name: list(np.shape(value)) for name, value in flattened(params).items()}
    path = run / layout.GROWING_SNAPSHOTS
    path.parent.mkdir(parents=True, exist_ok=True)
    claim(path)
    path.unlink(missing_ok=True)  # and not emptied: a backup may be a hard link
    with naming_file(path), open(path, "xb") as file:
        size = len(steps) * _row_bytes(shapes)
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, size)
        file.truncate(size)
    write_json(run / layout.SNAPSHOTS_INDEX, {"steps": list(steps), "arrays": shapes})


def check(run: Path) -> None:
    """`StoreError` if a resumed run has lost its snapshots so far."""
    _index(run)


def write(run: Path, step: int, params: Mapping[str, Mapping[str, Any]]) -> None:
    """Writes and syncs the row of a step."""
    steps, shapes = _index(run)
    flat = flattened(params)
    row = np.concatenate([np.asarray(flat[name], KIND).ravel() for name in shapes])
    with naming_file(run / layout.GROWING_SNAPSHOTS):
        unshare(run / layout.GROWING_SNAPSHOTS)
        rows = _rows(run, steps, shapes, "r+")
        ownership.check(run / layout.GROWING_SNAPSHOTS)
        rows[steps.index(step)] = row
        rows.flush()


def export(run: Path) -> None:
    """Writes snapshots.safetensors: every parameter with a leading axis of rows, and the rows' steps."""
    planned, shapes = _index(run)
    count = len(_recorded(run)) or len(planned)  # fewer of a run that has ended early
    steps, rows = planned[:count], _rows(run, planned, shapes, "r")[:count]
    spans = pairwise(accumulate(map(math.prod, shapes.values()), initial=0))
    arrays = {STEP: Streamed("I64", (count,), [np.array(steps, "<i8").tobytes()])}
    for (name, shape), (begin, end) in zip(shapes.items(), spans, strict=True):
        arrays[name] = Streamed("F32", (count, *shape), _blocks(rows[:, begin:end]))
    write_blocks(run / layout.SNAPSHOTS, safetensors_blocks(arrays, safetensors_metadata({"rows": count})))


def _blocks(columns: np.ndarray) -> Iterator[bytes]:
    """The bytes of some columns of the growing file, in blocks of rows."""
    height = max(1, BLOCK // max(1, columns[:1].nbytes))
    for first in range(0, len(columns), height):
        yield columns[first : first + height].tobytes()


def read(run: Path) -> Iterator[tuple[int, Params]]:
    """Yields (step, parameters) for each snapshot of a finished run, one in memory at a time."""
    if not (run / layout.SNAPSHOTS).exists():
        raise StoreError(f"{run} has no snapshots of its training; --config.snapshots=true keeps them")
    for step, row in zip(steps(run), safetensors_rows(run / layout.SNAPSHOTS, WHAT), strict=True):
        del row[STEP]
        yield step, nested(row)


def steps(run: Path) -> list[int]:
    """The steps of a run's snapshots: of one that is not finished those that are complete, each with its record.

    `StoreError` if a finished run does not have one for each record.
    """
    path, recorded = run / layout.SNAPSHOTS, _recorded(run)
    if path.exists():
        with reading(path), expecting(path, WHAT), safe_open(path, framework="np") as file:
            arrays = {name: file.get_tensor(name) for name in file.keys() if name == STEP}  # noqa: SIM118
            kept = [int(step) for step in arrays[STEP]]
        if not kept or kept != (recorded or kept):
            of_records = f"not of the steps of the run's {len(recorded)} records"
            raise StoreError(f"{path} is damaged: its {len(kept)} snapshots are {of_records}")
        return kept
    index = _index_if_any(run)
    return [step for step in index[0] if step in recorded] if index else []


def _recorded(run: Path) -> list[int]:
    """The steps of the records of a run's metrics."""
    if not (run / layout.METRICS).exists():
        return []
    with expecting(run / layout.METRICS, "the metrics of a run"):
        return [record["step"] for record in json_lines(run / layout.METRICS)]


def so_far(run: Path, wanted: Sequence[int]) -> Iterator[tuple[int, Params]]:
    """Yields (step, parameters) of these snapshots of a run that is not finished; nothing if their file is gone.

    The run may go on or end meanwhile: the file is read and not mapped, and an open one outlives its removal.
    """
    if (index := _index_if_any(run)) is None:
        return
    planned, shapes = index
    size, ends = _row_bytes(shapes), list(accumulate(map(math.prod, shapes.values())))
    with suppress(FileNotFoundError), open(run / layout.GROWING_SNAPSHOTS, "rb") as file:
        for step in wanted:
            file.seek(planned.index(step) * size)
            parts = np.split(np.frombuffer(file.read(size), KIND), ends[:-1])
            yield step, nested({name: part.reshape(shapes[name]) for name, part in zip(shapes, parts, strict=True)})


def _index_if_any(run: Path) -> tuple[list[int], dict[str, list[int]]] | None:
    """The index of a growing file, None where there is no such file, or no longer."""
    try:
        return _index(run)
    except StoreError:
        if (run / layout.GROWING_SNAPSHOTS).exists() and (run / layout.SNAPSHOTS_INDEX).exists():
            raise
        return None


def _index(run: Path) -> tuple[list[int], dict[str, list[int]]]:
    path = run / layout.GROWING_SNAPSHOTS
    try:
        index = read_json(run / layout.SNAPSHOTS_INDEX)
        with expecting(path, "the snapshots of a run"):
            steps, shapes = list(index["steps"]), dict(index["arrays"])
            if not all(map(is_count, steps)) or path.stat().st_size != len(steps) * _row_bytes(shapes):
                raise ValueError
    except (StoreError, OSError) as error:
        raise StoreError(f"{error}; --overwrite retrains the run") from None
    return steps, shapes


def _rows(run: Path, steps: Sequence[int], shapes: Mapping[str, Sequence[int]], mode: Literal["r", "r+"]) -> np.memmap:
    """The memory-mapped file, one row per step."""
    return np.memmap(
        run / layout.GROWING_SNAPSHOTS, KIND, mode, shape=(len(steps), _row_bytes(shapes) // KIND.itemsize)
    )


def _row_bytes(shapes: Mapping[str, Sequence[int]]) -> int:
    return sum(math.prod(shape) for shape in shapes.values()) * KIND.itemsize
