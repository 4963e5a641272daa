"""Goes on from a shorter run: a run that begins takes the state of a finished one beside it that is equal but shorter.

It ends with the bytes of one that was asked for at once. Where these cannot be had it trains from step 0, and a line
says why: the training program depends on the number of steps, records stand at other steps, conditions have changed.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from icl_lab.families.shared_arrays import FROZEN, shared_with
from icl_lab.lab.configs.identity import config_id
from icl_lab.lab.configs.presets import command_of
from icl_lab.lab.configs.run import RunConfig
from icl_lab.runners import llc
from icl_lab.runners.llc import Llc
from icl_lab.runners.pack import batched_hyperparameters, programs
from icl_lab.runners.static_shape import Run, static_shape, training_part, with_values
from icl_lab.src.checks import ConfigError
from icl_lab.src.words import printable
from icl_lab.store import best_params, checkpoint, layout, provenance, rundir, snapshots
from icl_lab.store.atomic import json_text, write_blocks
from icl_lab.store.metrics import metrics
from icl_lab.store.readers import StoreError

EXTENDS = "extends"  # in meta.json: the run whose state this one went on from, the step, and its id
CARRIED = ("run_seconds", "chunk_steps", FROZEN)  # of the meta.json of that run


def extend(run: Run, conditions: Mapping[str, Any], asked: Llc | None = None) -> str:
    """Gives a run that has just begun the state and the records of a shorter one, if it can; returns a line about it.

    The line is "" where there is no shorter run beside it.
    """
    reasons = []
    for source in shorter_runs(run):
        try:
            if not (why := _why_not(source, run, conditions, asked)):
                return _go_on(source, run)
        except StoreError as error:
            why = str(error)
        reasons.append(f"{printable(source)} has the first {_steps(source)} steps of this training, but {why}")
    if not reasons:
        return ""
    command = f"{command_of(run.config)} --init_from {shlex.quote(str(shorter_runs(run)[0]))}"
    return (
        f"{reasons[0]}: this run therefore trains from step 0; to start from the shorter run's parameters, use "
        f"{printable(command)}"
    )


def shorter_runs(run: Run) -> list[Path]:
    """The finished runs beside a run whose configs differ from its own in a smaller number of steps alone.

    The longest comes first.
    """
    found = [path for path in rundir.runs_below(run.directory.parent) if _is_shorter(path, run.config)]
    return sorted(found, key=_steps, reverse=True)


def _is_shorter(path: Path, config: RunConfig) -> bool:
    try:
        if rundir.read_status(path) != "done":
            return False
        there = rundir.read_config(path)
        if type(there) is not type(config) or there.training.steps >= config.training.steps:
            return False
        alike = with_values(config, {"training.steps": there.training.steps})
        return rundir.stored_id(path) == config_id(there) == config_id(alike)
    except StoreError:  # other broken runs do not matter here
        return False
    except ConfigError:  # training of so few steps cannot be asked for, so the run is of other settings
        return False


def _steps(path: Path) -> int:
    steps: int = rundir.read_config(path).training.steps
    return steps


# --- whether the bytes would be those of a run that was asked for at once ---


def _why_not(source: Path, run: Run, conditions: Mapping[str, Any], asked: Llc | None) -> str:
    """Why a run cannot go on from another; "" if it can. `StoreError` where that has lost what it needs."""
    shorter, meta = rundir.read_config(source), rundir.read_meta(source)
    if checkpoint.kept_state(source) is None:
        return "keeps no state of its optimiser (--keep_state=false, or an earlier version)"
    step = checkpoint.steps(source)[-1]
    records = _records_until(run.config, step)
    if shorter.record_steps[: len(records)] != records:
        return "its records are of other steps"
    if run.config.keep_best and best_params.read(source).step not in records:
        return "its best parameters are of a step without a record"
    if provenance.is_bitwise(meta) is not True:
        return "it was itself resumed under other conditions"
    if changed := provenance.changes(source, step, conditions):
        return f"under other conditions: {provenance.describe(changed)}"
    if meta.get(llc.NOTE) != llc.note(asked).get(llc.NOTE):
        return f"its records have other estimates of the LLC (--{llc.PREFIX}every)"
    shared = shared_with(run.config, run.directory, source)
    if _program(shorter, shared) != _program(run.config, shared):
        return f"its training depends on the total number of steps (schedule {run.config.training.schedule})"
    return ""


def _records_until(config: RunConfig, step: int) -> list[int]:
    return [each for each in config.record_steps if each <= step]


def _program(config: RunConfig, shared: Mapping[str, Any]) -> str:
    """The training program of a config, as text, with all that it holds constant."""
    trainer = programs(static_shape(config), 1).trainer
    hyperparameters = batched_hyperparameters([training_part(config)], 1)
    state = jax.eval_shape(trainer.init, hyperparameters, shared)
    return str(trainer.chunk.lower(state, hyperparameters, shared, np.int32(0), np.int32(0)).as_text())


# --- the files ---


def _go_on(source: Path, run: Run) -> str:
    """Writes what the source left up to its last step into the run's directory, the state last; returns the line."""
    meta, step = rundir.read_meta(source), checkpoint.steps(source)[-1]
    arrays = checkpoint.read(source, step)
    wanted = _records_until(run.config, step)
    steps = {*wanted}
    if [record["step"] for record in metrics(source) if record["step"] in steps] != wanted:
        raise StoreError(f"{source / layout.METRICS} lacks records")
    if run.config.snapshots:
        _copy_snapshots(source, run, wanted)
    if run.config.keep_best:
        best_params.copy(source, run.directory)
    write_blocks(run.directory / layout.METRICS, _copied_records(source, steps))
    carried = {name: meta[name] for name in CARRIED if name in meta}
    changed = provenance.changed_files(meta)
    facts = {**carried, **({"sources_changed": changed} if changed else {})}
    origin = {"run": str(source), "step": step, "config_id": rundir.stored_id(source)}
    rundir.update_meta(run.directory, **facts, **{EXTENDS: origin})
    checkpoint.save(run.directory, step, arrays, {"step": step})
    return f"goes on from step {step} with the state of {printable(source)}"


def _copied_records(source: Path, steps: Collection[int]) -> Iterator[bytes]:
    """The lines of the records of these steps."""
    for record in metrics(source):
        if record["step"] in steps:
            yield (json_text(record, indent=None) + "\n").encode()


def _copy_snapshots(source: Path, run: Run, wanted: list[int]) -> None:
    for step, params in snapshots.read(source):
        if step == 0:
            snapshots.begin(run.directory, run.config.record_steps, params)
        if step in wanted:
            snapshots.write(run.directory, step, params)
