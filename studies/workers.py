"""Analysing runs, measuring claims and reading figures' numbers off runs, as tasks.

Without a cluster they are done in processes of one thread each, whichever executor trains, so that values are bitwise
reproducible; on an accelerator, in this process.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import jax

from icl_lab.lab import compile_cache
from icl_lab.lab.executors.inline import in_this_process
from icl_lab.lab.executors.processes import in_processes
from icl_lab.lab.executors.signals import RESUME_HINT, exit_when_stopped
from icl_lab.lab.executors.task import Context, Executor, Outcome, Task
from icl_lab.runners.loop import device_text
from icl_lab.store.readers import StoreError
from icl_lab.studies.claim import Claim, Measurement
from icl_lab.studies.curve_rows import Row
from icl_lab.studies.figure import AnyFigure
from icl_lab.studies.measuring import measure
from icl_lab.studies.study import Study, load


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
    for outcome in _done("analysed", analyse_task, study, runs, runs_dir, cluster):
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
                raise StoreError(f"the process that {past} {outcome.task.name} has died; the same command goes on")
            if outcome.error is not None:
                raise outcome.error
            if not (outcome.stopped and outcome.value is None):  # else it may not have begun
                yield outcome
