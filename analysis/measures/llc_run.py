"""The local learning coefficient at the checkpoints of a run, each kept as it is estimated.

llc/SETTINGS_step_STEP.npz holds a checkpoint's traces and its row; analysis/llc.csv has the rows of all of them, for
every settings that the run was estimated with.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from analysis.measures.llc import Estimator
from analysis.measures.llc_settings import Settings
from families.shared_arrays import shared_with
from src.checks import require
from src.model import Params
from src.precision import use_highest_precision
from store import layout, rundir, snapshots
from store.atomic import write_csv, write_npz
from store.params import read_params
from store.readers import expecting

ROW = "row"  # the array of a trace's file that holds its row, as JSON


def estimate_run(run: Path, settings: Settings, selection: str) -> list[dict[str, Any]]:
    """Estimates the checkpoints that are not estimated yet with these settings, and gives the rows of all selected."""
    use_highest_precision()
    config = rundir.read_config(run)
    estimator, rows = None, []
    for step, params in checkpoints(run, config.training.steps, selection):
        if (known := trace_file(run, settings, step)).exists():
            rows.append(read_row(known))
            continue
        estimator = estimator or Estimator(config, settings, shared_with(config, run))
        rows.append(keep(run, settings, step, *estimator(step, params)))
    return rows


def keep(run: Path, settings: Settings, step: int, row: Mapping[str, Any], traces: Mapping[str, np.ndarray]) -> Any:
    """Writes a checkpoint's traces and row, then the table of all rows; gives the row as it will be read."""
    path = trace_file(run, settings, step)
    single = {name: values.astype(np.float32) for name, values in traces.items()}
    write_npz(path, single | {ROW: np.frombuffer(json.dumps(row).encode(), np.uint8)})
    write_csv(run / layout.LLC, [{"settings": name, **kept} for name, kept in all_rows(run)])
    return read_row(path)


def trace_file(run: Path, settings: Settings, step: int) -> Path:
    """Where the traces of a checkpoint are kept."""
    return run / layout.LLC_TRACES / f"{settings.name}_step_{step:08d}.npz"


def read_row(path: Path) -> dict[str, Any]:
    """The row of a file of traces; `StoreError` if it is not one."""
    with expecting(path, "the traces of an LLC"), np.load(path, allow_pickle=False) as arrays:
        row: dict[str, Any] = json.loads(arrays[ROW].tobytes())
    return row


def all_rows(run: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The name of its settings and the row of every checkpoint that is estimated, by settings, then by step."""
    for path in sorted((run / layout.LLC_TRACES).glob("*_step_*.npz")):
        if layout.is_run_file(f"{layout.LLC_TRACES}/{path.name}"):
            yield path.name.partition("_")[0], read_row(path)


def checkpoints(run: Path, last: int, selection: str) -> Iterator[tuple[int, Params]]:
    """(step, parameters) of the selected checkpoints: all, last, every:K (one in K of them) or steps.

    `StoreError` for a run that has no snapshots, unless only the last is asked for; `ConfigError` for a step without.
    """
    if selection == "last":
        yield last, read_params(run)
        return
    found = snapshots.read(run)
    if selection == "all" or selection.startswith("every:"):
        every = int(selection.partition(":")[2] or 1)
        yield from (kept for index, kept in enumerate(found) if index % every == 0)
        return
    wanted, seen = [int(word) for word in selection.split(",")], []
    for step, params in found:
        seen.append(step)
        if step in wanted:
            yield step, params
    missing = sorted({*wanted} - {*seen})
    require(not missing, f"{run} has no snapshot of step {missing[0] if missing else ''}; it has {_listed(seen)}")


def _listed(steps: list[int]) -> str:
    return ", ".join(map(str, steps if len(steps) <= 12 else [*steps[:8], "...", *steps[-3:]]))
