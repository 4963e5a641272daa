"""Parameters over training: a row of them for each record, in one memory-mapped file that has its full size at once.

A row is on disk before its record is, so the rows of the records there are are whole: a kill loses at most the one that
was being written. The file stands among the checkpoints; when the run is done, its rows become named arrays.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np

from store import layout
from store.atomic import naming_file, safetensors_metadata, write_blocks, write_json
from store.manifest import claim
from store.params import Params, flattened, nested
from store.readers import StoreError, expecting, read_json, safetensors_rows
from store.streaming import Streamed, safetensors_blocks

KIND = np.dtype("<f4")
BLOCK = 2**24  # bytes of rows that are in memory while they are exported; a single row may need more
STEP = "step"  # the name of the array of steps, beside those of the parameters


def begin(run: Path, steps: Sequence[int], params: Mapping[str, Mapping[str, Any]]) -> None:
    """Makes the file, with room for the parameters at each of these steps; a disk without that room says so now."""
    shapes = {name: list(np.shape(value)) for name, value in flattened(params).items()}
    path = run / layout.GROWING_SNAPSHOTS
    path.parent.mkdir(parents=True, exist_ok=True)
    claim(path)
    with naming_file(path), open(path, "wb") as file:
        size = len(steps) * _row_bytes(shapes)
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, size)
        file.truncate(size)
    write_json(run / layout.SNAPSHOTS_INDEX, {"steps": list(steps), "arrays": shapes})


def check(run: Path) -> None:
    """`StoreError` if a run that goes on has lost what it kept of its training."""
    _index(run)


def write(run: Path, step: int, params: Mapping[str, Mapping[str, Any]]) -> None:
    """Writes the row of a step, and syncs it."""
    steps, shapes = _index(run)
    flat = flattened(params)
    row = np.concatenate([np.asarray(flat[name], KIND).ravel() for name in shapes])
    with naming_file(run / layout.GROWING_SNAPSHOTS):
        rows = _rows(run, steps, shapes, "r+")
        rows[steps.index(step)] = row
        rows.flush()


def export(run: Path) -> None:
    """Writes snapshots.safetensors: every parameter with a leading axis of rows, and the rows' steps."""
    steps, shapes = _index(run)
    rows, count = _rows(run, steps, shapes, "r"), len(steps)
    places = pairwise(accumulate(map(math.prod, shapes.values()), initial=0))
    arrays = {STEP: Streamed("I64", (count,), [np.array(steps, "<i8").tobytes()])}
    for (name, shape), (begin, end) in zip(shapes.items(), places, strict=True):
        arrays[name] = Streamed("F32", (count, *shape), _blocks(rows[:, begin:end]))
    write_blocks(run / layout.SNAPSHOTS, safetensors_blocks(arrays, safetensors_metadata({"rows": count})))


def _blocks(columns: np.ndarray) -> Iterator[bytes]:
    """The bytes of some columns of the growing file, row by row."""
    height = max(1, BLOCK // max(1, columns[:1].nbytes))
    for first in range(0, len(columns), height):
        yield columns[first : first + height].tobytes()


def read(run: Path) -> Iterator[tuple[int, Params]]:
    """The parameters of a finished run over its training, with their steps: one row after another is in memory."""
    if not (run / layout.SNAPSHOTS).exists():
        raise StoreError(f"{run} has no snapshots of its training; --config.snapshots=true keeps them")
    for row in safetensors_rows(run / layout.SNAPSHOTS, "the snapshots of a run"):
        with expecting(run / layout.SNAPSHOTS, "the snapshots of a run"):
            step = int(row.pop(STEP))
        yield step, nested(row)


def _index(run: Path) -> tuple[list[int], dict[str, list[int]]]:
    path = run / layout.GROWING_SNAPSHOTS
    try:
        found = read_json(run / layout.SNAPSHOTS_INDEX)
        with expecting(path, "the snapshots of a run"):
            steps, shapes = list(found["steps"]), dict(found["arrays"])
            if path.stat().st_size != len(steps) * _row_bytes(shapes):
                raise ValueError
    except (StoreError, OSError) as error:
        raise StoreError(f"{error}; --overwrite trains the run anew") from None
    return steps, shapes


def _rows(run: Path, steps: Sequence[int], shapes: Mapping[str, Sequence[int]], mode: Literal["r", "r+"]) -> np.memmap:
    """The growing file, mapped into memory: a row for each step."""
    return np.memmap(
        run / layout.GROWING_SNAPSHOTS, KIND, mode, shape=(len(steps), _row_bytes(shapes) // KIND.itemsize)
    )


def _row_bytes(shapes: Mapping[str, Sequence[int]]) -> int:
    return sum(math.prod(shape) for shape in shapes.values()) * KIND.itemsize
