"""The parameters that the runs of a sweep start from: `init_from`, set for all of them or an axis.

It is no field that one sets: what a user names is read once, and a config has its source (`store.weights`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from icl_lab.lab.configs.family import AUTO
from icl_lab.runners.static_shape import Run
from icl_lab.store.weights import Weights, weights_of
from icl_lab.sweeps.axes import INIT_FROM, Axes, Axis, fields
from icl_lab.sweeps.plan import PlannedRun


class Named(NamedTuple):
    """Axes and settings with sources in the place of what a user named, and the parameters of these."""

    swept: dict[Axis, Sequence[Any]]
    settings: dict[str, Any]
    weights: tuple[Weights, ...]


def named(axes: Axes, settings: Mapping[str, Any]) -> Named:
    """Reads what `init_from` names; "auto" is the initialisation. Raises as `weights_of` does, before any training."""
    found: dict[str, Weights] = {}

    def source(given: Any) -> str:
        if isinstance(given, str) and given == AUTO:
            return AUTO
        weights = weights_of(given)
        return found.setdefault(weights.source, weights).source

    swept = {axis: _replaced(axis, values, source) for axis, values in axes.items()}
    fixed = {name: source(value) if name == INIT_FROM else value for name, value in settings.items()}
    return Named(swept, fixed, tuple(found.values()))


def _replaced(axis: Axis, values: Sequence[Any], source: Any) -> Sequence[Any]:
    """The values of an axis, of which those of `init_from` are replaced by their sources."""
    if INIT_FROM not in fields(axis):
        return values
    if isinstance(axis, str):
        return [source(value) for value in values]
    place = axis.index(INIT_FROM)
    return [(*value[:place], source(value[place]), *value[place + 1 :]) for value in values]


def lines(weights: Sequence[Weights]) -> list[str]:
    """A sentence for each of several sources, by which a column `init_from` is read."""
    return [f"init_from {each.source} is {_place(each)}" for each in weights] if len(weights) > 1 else []


def _place(weights: Weights) -> str:
    origin = weights.origin
    return f"{origin['run']}@{origin['step']}" if "run" in origin else str(origin.get("file", "arrays"))


def check(chosen: Iterable[PlannedRun], folder: Path, weights: Sequence[Weights]) -> None:
    """`ConfigError` for parameters that do not fit the model of a run, and if all or none of its own are trained."""
    series = {run.series: run for run in chosen if run.config.init_from or run.config.training.train_only}
    if not series:
        return
    from icl_lab.runners.parameters import check_parameters  # imports JAX

    sources = {each.source: each for each in weights}
    of_shapes = {(run.series.shape, run.config.init_from): run for run in series.values()}
    for run in of_shapes.values():
        check_parameters(Run(folder / run.name, run.config), sources.get(run.config.init_from))
