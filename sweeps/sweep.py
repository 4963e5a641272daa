"""A sweep from Python: a grid of any fields, trained into one table, as `python -m sweeps.run MODEL` does."""

from __future__ import annotations

import os
import signal
from argparse import ArgumentTypeError
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from icl_lab.analysis.run import own_weights
from icl_lab.lab.configs.earlier_names import renamed
from icl_lab.lab.executors import choice
from icl_lab.lab.executors.inline import in_this_process
from icl_lab.lab.executors.remote import Resources
from icl_lab.lab.executors.signals import catch_signals
from icl_lab.lab.guest import as_guest, variables_as_before
from icl_lab.lab.native.kernel import ASKED, AUTO
from icl_lab.src.checks import UserError, one_of, require
from icl_lab.store.outputs import out_file, out_folder
from icl_lab.store.weights import Weights
from icl_lab.sweeps import sources, work
from icl_lab.sweeps.axes import Axis, keys_of, refuse_set
from icl_lab.sweeps.command import planned_points
from icl_lab.sweeps.execution import WIDTH, Execution
from icl_lab.sweeps.grid import Grid


class RunsFailed(UserError):
    """Runs of a sweep have failed; the table has the others."""


def sweep(
    model: str | Sequence[str],
    axes: Mapping[Any, Iterable[Any]] | None = None,
    *,
    seeds: Iterable[int] = (0,),
    settings: Mapping[str, Any] | None = None,
    preset: str = "default",
    runs_dir: str | PathLike[str] | None = None,
    out: str | PathLike[str] | None = None,
    executor: str | None = None,
    width: int | None = None,
    kernel: str = AUTO,
    append: bool = False,
    replace_table: bool = False,
    overwrite: bool = False,
    quiet: bool = False,
) -> Path:
    """Trains one model, or several, at each point of a grid with each seed; returns the path of the table, a CSV.

    axes: {field: values}, each field under its full name, its short name or its flag's name; {(field, field): tuples}
    is one axis whose fields move together. settings: fields with one value for all runs. Runs go below `runs_dir`
    (runs/sweep_MODEL), the table to `out` (results_MODEL.csv); `append` keeps rows of other sweeps there,
    `replace_table` drops them, and `overwrite` trains all runs again. executor, width and kernel mean the same as the
    flags.

    Finished runs are not trained again: after Ctrl-C (a KeyboardInterrupt, as usual), repeat the call to continue.
    `UserError`, with the command's message, for anything that cannot be done. If runs fail, it is raised after the
    table is written.
    """
    models = [model] if isinstance(model, str) else [*model]
    require(bool(models), "model is an empty list; it needs at least one model")
    grid, weights = _grid(models, axes or {}, seeds, settings or {}, preset)
    name = models[0]
    runs, table = str(runs_dir or f"runs/sweep_{name}"), str(out or f"results_{name}.csv")
    try:
        with variables_as_before():
            how = _execution(runs, table, executor, width, kernel)
        how = how._replace(
            weights=weights, append=append, replace_table=replace_table, overwrite=overwrite, quiet=quiet
        )
        in_here = choice.EXECUTORS[how.executor].run is in_this_process
        with as_guest() if in_here else variables_as_before():
            _carry_out(grid, how)
    except ArgumentTypeError as error:
        raise UserError(str(error)) from None
    except OSError as error:
        raise UserError(f"{error.filename or 'a file'}: {error.strerror or error}") from error
    return how.out


def _grid(
    models: Sequence[str],
    axes: Mapping[Any, Iterable[Any]],
    seeds: Iterable[int],
    settings: Mapping[str, Any],
    preset: str,
) -> tuple[Grid, tuple[Weights, ...]]:
    """The grid, whose names are looked up and whose values are checked, and what its runs start from."""
    found: dict[Axis, list[Any]] = {}
    for axis, values in axes.items():
        together = axis if isinstance(axis, tuple) else (axis,)
        require(all(isinstance(name, str) for name in together), f"{axis!r} is not the name of a field")
        found[axis] = _listed(f"the values of {axis}", values)
    fixed = {name: _plain(value) for name, value in settings.items()}
    numbers = _listed("the seeds", seeds)
    require(all(type(seed) is int for seed in numbers), f"the seeds are {numbers!r}; they must be whole numbers")
    grid = Grid(models, found, numbers, preset=preset)
    refuse_set(models[0], found, fixed)
    named = {name: name for name in fixed if renamed(name)} | keys_of(
        models[0], [name for name in fixed if not renamed(name)]
    )
    read = sources.named(found, {named[name]: value for name, value in fixed.items()})
    return Grid(models, read.swept, grid.seeds, read.settings, preset=preset), read.weights


def _listed(what: str, values: Any) -> list[Any]:
    """The values as a list; `ConfigError` for a single one."""
    require(isinstance(values, Iterable) and not isinstance(values, str), f"{what} are {values!r}; give a list of them")
    return [_plain(value) for value in values]


def _plain(value: Any) -> Any:
    """A value as a command has it: numbers without NumPy's types, arrays and lists as tuples, paths as text."""
    value = own_weights(value)
    value = os.fspath(value) if isinstance(value, PathLike) else value
    value = value.tolist() if hasattr(value, "tolist") else value
    return tuple(_plain(each) for each in value) if isinstance(value, list | tuple) else value


def _execution(runs: str, table: str, executor: str | None, width: int | None, kernel: str) -> Execution:
    """Where and how the sweep is carried out; `ArgumentTypeError` for places where nothing can be written."""
    name = executor or choice.default_executor()
    one_of("executor", name, choice.EXECUTORS)
    one_of("kernel", kernel, ASKED)
    require(width is None or WIDTH.has(width), f"width is {width!r}, which is not {WIDTH}")
    folder = out_folder(runs)
    resources = Resources(jobs=folder / ".jobs")
    choice.check(name, resources)
    wide = choice.default_width(name, resources) if width is None else width
    how = Execution(folder, out_file(table), name, wide, (1, 1), dry_run=False, overwrite=False, resources=resources)
    return how._replace(kernel=kernel)


def _carry_out(grid: Grid, how: Execution) -> None:
    """Trains what is left, and writes the table; raises as Python does where a signal has stopped it."""
    points = planned_points(grid, how)
    chosen = work.checked(points, how)
    with catch_signals() as signals:
        ended = work.done(points, chosen, how, signals)
    if signal.SIGINT in signals.received:
        raise KeyboardInterrupt
    for number in signals.received[:1]:
        signal.raise_signal(number)
    if ended.failed:
        name, reason = next(iter(ended.failed.items()))
        share = f"{len(ended.failed)} of {len(chosen)} runs have failed"
        raise RunsFailed(f"{share}, such as {how.folder / name}: {reason}; the same call tries them again")
