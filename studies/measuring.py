"""Measures claims and their controls on finished runs, analyses runs and tabulates figures, as tasks in processes.

Without a cluster tasks are done in processes of one thread each, whichever executor trains, so that values are bitwise
reproducible; on an accelerator, in this process.
"""

from __future__ import annotations

import math
import pickle
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import jax

from icl_lab.lab import compile_cache
from icl_lab.lab.executors.inline import in_this_process
from icl_lab.lab.executors.processes import in_processes
from icl_lab.lab.executors.signals import RESUME_HINT, exit_when_stopped
from icl_lab.lab.executors.task import Context, Executor, Outcome, Task
from icl_lab.lab.progress import along
from icl_lab.runners.conditions import device_text
from icl_lab.store import rundir
from icl_lab.store.provenance import git_commit
from icl_lab.store.readers import StoreError
from icl_lab.store.rundir import now
from icl_lab.studies.claim import Claim, Measurement, Rival
from icl_lab.studies.curve_rows import Row
from icl_lab.studies.figure import AnyFigure
from icl_lab.studies.runs import Runs, each
from icl_lab.studies.study import Study, load

OfSeed = Path | tuple[Path, ...]


def can_measure(study: Study, claim: Claim, runs_dir: Path, controls: bool = False) -> bool:
    """Whether all runs of a claim and of its control, or of its control alone, have ended."""
    return None not in _runs(study, claim, runs_dir, controls)


def measure(study: Study, claim: Claim, runs_dir: Path, device: str, controls: bool = False) -> Measurement | None:
    """A claim's values and its control's, or its control's alone; None unless all of their runs have ended."""
    began, commit, date = time.perf_counter(), git_commit() or "unknown", str(now())[:10]
    control = of_control(claim)
    if not claim.runs:
        of_seeds = [tuple(float(one.measure(seed)) for seed in study.sampled_seeds) for one in (claim, control)]
        beside = of_seeds[1] if control is not claim else ()
        return Measurement(
            of_seeds[0], study.sampled_seeds, _minutes_since(began), device, date, commit, control_values=beside
        )
    ended = _runs(study, claim, runs_dir, controls)
    if None in ended:
        return None
    values = tuple(_value(claim, runs) for runs in ended[0] or ())
    control_values = tuple(_value(control, runs) for runs in ended[1] or ())
    runs = [run for of_seeds in ended for of_seed in of_seeds or () for place in of_seed for run in each(place)]
    metas = [rundir.read_meta(run) for run in dict.fromkeys(runs)]
    minutes = sum(map(_minutes, metas)) + _minutes_since(began)
    devices, trained_at = (
        " and ".join(sorted({said(meta) for meta in metas})) for said in (_device, lambda meta: str(meta["git_hash"]))
    )
    cells = tuple(dict.fromkeys(run.name for run in runs))
    seeds = () if controls else study.runs_of(claim.run_names[0]).seeds
    return Measurement(values, seeds, minutes, devices, date, commit, trained_at, cells, control_values=control_values)


def of_control(claim: Claim) -> Claim:
    """What is measured on the control's runs: the claim's measure, or its rival's, of all runs."""
    own = isinstance(claim.control, Rival) and claim.control.measure
    return claim._replace(measure=own or claim.measure, among=None) if claim.has_control else claim


def with_control(measurement: Measurement, control: Measurement) -> Measurement:
    """A measurement with a control that was measured later."""
    devices, trained_at = (
        " and ".join(sorted({*earlier.split(" and "), *later.split(" and ")} - {""}))
        for earlier, later in ((measurement.device, control.device), (measurement.trained_at, control.trained_at))
    )
    return measurement._replace(
        control_values=control.control_values,
        minutes=measurement.minutes + control.minutes,
        cells=tuple(dict.fromkeys((*measurement.cells, *control.cells))),
        device=devices,
        trained_at=trained_at,
    )


def _runs(study: Study, claim: Claim, runs_dir: Path, controls: bool) -> list[list[tuple[OfSeed, ...]] | None]:
    """Those of the claim, unless its control alone is asked for, and of its control, by seed; None unless all ended."""
    names = (() if controls else claim.run_names, claim.control_names)
    return [_ended([study.runs_of(name) for name in of_one], runs_dir) for of_one in names]


def _ended(runs: Sequence[Runs], runs_dir: Path) -> list[tuple[OfSeed, ...]] | None:
    """The runs of each seed, in the order of the measure's arguments; None unless all of them have ended.

    Seeds are paired by index, whether or not they are equal; the longer list of seeds is cut.
    """
    if not runs:
        return []
    ended = [of_name.ended(runs_dir) for of_name in runs]
    pairs = list(zip(*(of_name.seeds for of_name in runs), strict=False))
    if any(seed not in of_name for seeds in pairs for of_name, seed in zip(ended, seeds, strict=True)):
        return None
    return [tuple(of_name[seed] for of_name, seed in zip(ended, seeds, strict=True)) for seeds in pairs]


def _value(claim: Claim, runs: Sequence[OfSeed]) -> float | None:
    """The measure; infinite where a run diverged, nan of a run that the claim leaves out.

    None where it cannot be computed for a run that a claim on those that learnt does not leave out.
    """
    if not all(rundir.read_status(run) == "done" for of_seed in runs for run in each(of_seed)):
        return float("inf")
    if claim.among is not None and claim.among(runs[0]) != 1:
        return float("nan")
    value = float(claim.measure(*runs))
    return None if math.isnan(value) and claim.among is not None else value


def _device(meta: Mapping[str, Any]) -> str:
    """What a run was trained on, and in how wide a pack, for the same cell in another one differs by rounding."""
    width = int(meta["pack_width"])
    return str(meta["device"]) if width == 1 else f"{meta['device']}, in packs of {width}"


def _minutes(meta: Mapping[str, Any]) -> float:
    """What a run took to compile and train; those of a pack share its time."""
    return (float(meta["run_seconds"]) / int(meta["pack_width"]) + float(meta["compile_seconds"])) / 60


def _minutes_since(began: float) -> float:
    return (time.perf_counter() - began) / 60


# --- as tasks ---


def measured(
    study: Study, claims: Sequence[Claim], runs_dir: Path, cluster: Executor | None = None, controls: bool = False
) -> Iterator[tuple[Claim, Measurement | None]]:
    """Each claim with its measurement, in the order in which they are done; None unless all of its runs have ended.

    controls: of its control alone.

    What a measure raises is raised here; `StoreError` for a process that dies.
    """
    by_name = {claim.name: claim for claim in claims}
    for outcome in _done(
        "measured", control_task if controls else measure_task, study, list(by_name), runs_dir, cluster
    ):
        yield by_name[outcome.task.name], outcome.value


def analysed(study: Study, runs: Sequence[str], runs_dir: Path, cluster: Executor | None = None) -> Iterator[str]:
    """Analyses these runs, each RUNS/CELL, with the study's analysis of RUNS; gives them as they are done."""
    outcomes = _done("analysed", analyse_task, study, runs, runs_dir, cluster)
    for outcome in along(outcomes, len(runs), "runs"):
        yield outcome.task.name


def tabulated(
    study: Study, figures: Sequence[AnyFigure], runs_dir: Path, cluster: Executor | None = None
) -> Iterator[tuple[AnyFigure, list[Row]]]:
    """Each figure with the rows of its table, in the order in which they are done."""
    by_name = {figure.name: figure for figure in figures}
    for outcome in _done("tabulated", figure_task, study, list(by_name), runs_dir, cluster):
        yield by_name[outcome.task.name], outcome.value


def measure_task(
    context: Context, study: bytes, name: str, runs_dir: Path, controls: bool = False
) -> Measurement | None:
    """Measures a claim, by its name, or its control alone."""
    compile_cache.enable()
    loaded_study = _study(study)
    return measure(
        loaded_study, {claim.name: claim for claim in loaded_study.claims}[name], runs_dir, device_text(), controls
    )


def control_task(context: Context, study: bytes, name: str, runs_dir: Path) -> Measurement | None:
    """Measures a claim's control."""
    return measure_task(context, study, name, runs_dir, controls=True)


def analyse_task(context: Context, study: bytes, name: str, runs_dir: Path) -> None:
    """Analyses a run, RUNS/CELL."""
    compile_cache.enable()
    runs, _, cell = name.partition("/")
    _study(study).analyses[runs](runs_dir / cell)


def figure_task(context: Context, study: bytes, name: str, runs_dir: Path) -> list[Row]:
    """The rows of a figure's table, by its name."""
    compile_cache.enable()
    loaded_study = _study(study)
    figure = {figure.name: figure for figure in loaded_study.figures}[name]
    return figure.rows(loaded_study.finished(figure.run_names, runs_dir))


@lru_cache(maxsize=1)
def _study(again: bytes) -> Study:
    """A study, from the pickled function that makes it: it is made once in a process."""
    study: Study = pickle.loads(again)()
    return study


def _done(
    past: str,
    does: Callable[..., Any],
    study: Study,
    names: Sequence[str],
    runs_dir: Path,
    cluster: Executor | None,
) -> Iterator[Outcome]:
    """The outcome of a task for each name, in the order in which they end; raises what a task has raised.

    On a signal, running tasks are finished and their outcomes yielded before the process ends.
    """
    again = pickle.dumps(study.again or partial(load, study.name))
    tasks = [
        Task(name, f"{__name__}:{does.__name__}", {"study": again, "name": name, "runs_dir": runs_dir})
        for name in names
    ]
    run = cluster or (in_processes if jax.default_backend() == "cpu" else in_this_process)
    with exit_when_stopped(RESUME_HINT) as signals:
        for outcome in run(tasks, lambda amount: None, signals):
            if outcome.died:
                raise StoreError(
                    f"the process that {past} {outcome.task.name} has died; run the same command again to continue"
                )
            if outcome.error is not None:
                raise outcome.error
            if not (outcome.stopped and outcome.value is None):  # else it may not have begun
                yield outcome
