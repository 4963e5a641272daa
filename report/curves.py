"""The curves of the reproduction's figures: from finished runs to tables of means with intervals, as data.

A curve is a function of one run to {series: (x, y)}; over the seeds of its runs it becomes rows of panel, series, x,
mean, low and high, which `plots.curves` draws.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from analysis import rollout, shifts
from analysis.interpolation import interpolated
from baselines import spectrum
from report import measures
from src.config import DataConfig
from src.statistics import mean_and_interval
from store.rundir import read_metrics

DIVERGED = 100.0  # a loss that is off every axis
TF, GD, GDPP, HALFWAY = "Trained Transformer", "Gradient descent", "GD++", "Interpolated"

Series = Mapping[tuple[str, str], tuple[Sequence[float], Sequence[float]]]  # (panel, series) -> x, y


class Figure(NamedTuple):
    """A figure: its name, the runs it is of, the curves of one of them, and its labels."""

    name: str
    title: str
    runs: tuple[str, ...]
    curves: Callable[[Path, str], Series]
    x_label: str
    y_label: str
    log_x: bool = False
    log_y: bool = False
    profile: str = "quick"


def _rollouts(*dampings: float) -> Callable[[Path, str], Series]:
    def curves(run: Path, name: str) -> Series:
        steps = np.arange(1, measures.ROLLED + 1)
        found = {}
        for damping in dampings:
            panel = f"damping {damping:g}" if len(dampings) > 1 else ""
            losses = measures.rolled_out(run, damping)
            for series, key in ((TF, "tf"), (GD, "gd")):
                found[panel, series] = (steps, rollout.trimmed_mean(losses[key][0]))
        return found

    return curves


def _training(run: Path, name: str) -> Series:
    """Losses and the cosine over training."""
    records = read_metrics(run, ("gd_loss", "model_cos"))
    steps = [record["step"] for record in records]
    lines = (("loss", TF, "test_loss"), ("loss", GD, "gd_loss"), ("cosine with gradient descent's", TF, "model_cos"))
    titled = {"softmax_1_head": "one softmax head, ", "softmax_2_heads": "two softmax heads, "}.get(name, "")
    return {(titled + panel, series): (steps, [r[field] for r in records]) for panel, series, field in lines}


SHIFTED = {
    "input_range": ("range of inputs", (0.5, 0.75, 1.0, 1.25, 1.5, 2.0)),
    "weight_scale": ("scale of the teacher", (0.5, 1.0, 2.0, 3.0, 4.0, 5.0)),
    "other_inputs": ("other inputs, scale", (0.5, 1.0, 2.0, 3.0, 4.0, 5.0)),
    "distractors": ("labels replaced", (0, 2, 4, 6, 8)),
}


def _shifted(run: Path, name: str) -> Series:
    subject = measures.subject_of(run)
    deep = measures.gd_steps(subject.config.model) > 1
    halfway = interpolated(subject, *measures.construction_of(run))
    predictors = {TF: subject.predict, HALFWAY: halfway, GD: subject.gd.predict}
    predictors |= {GDPP: measures.gd_plus_plus_of(run)} if deep else {}
    found = {}
    for shift, (panel, values) in SHIFTED.items():
        losses = shifts.shifted_losses(subject.config, predictors, shift, values)
        found |= {(panel, series): (values, losses[series].mean(axis=1)) for series in predictors}
    return found


def _sizes(run: Path, name: str) -> Series:
    size = measures.subject_of(run).config.data.dim
    return {("", TF): ([size], [measures.loss(run)]), ("", GD): ([size], [measures.loss_of("gd")(run)])}


def _condition_numbers(seed: int) -> Series:
    """The median condition number after a step on the inputs, by gamma."""
    gammas = np.linspace(0, 0.2, 41)
    found = {}
    for pairs in (10, 25, 50, 100):
        values = spectrum.eigenvalues(measures.inputs_of(seed, DataConfig(num_pairs=pairs), 2048))
        after = [np.median(spectrum.condition_number(np.abs(spectrum.after_a_step(values, g)))) for g in gammas]
        found["", f"N = {pairs}"] = (gammas, after)
    return found


FIGURES: tuple[Figure, ...] = (
    Figure("rollout", "One trained layer applied again and again, damping .75", ("one_layer",), _rollouts(0.75), "GD Steps / Transformer Layers", "Loss"),
    Figure("one_layer_training", "One layer over training", ("one_layer",), _training, "training step", ""),
    Figure("sizes", "One layer, N = D", ("one_layer", "size_5", "size_20", "size_35", "size_50"), _sizes, "N = D", "Loss"),
    Figure("one_layer_shifts", "One layer on contexts of another law", ("one_layer",), _shifted, "", "Loss", log_y=True),
    Figure("two_layers_training", "Two recurrent layers over training", ("two_layers",), _training, "training step", ""),
    Figure("two_layers_shifts", "Two recurrent layers on contexts of another law", ("two_layers",), _shifted, "", "Loss", log_y=True),
    Figure("rollout_dampings", "Roll-outs by damping", ("one_layer",), _rollouts(1.0, 0.875, 0.75), "GD Steps / Transformer Layers", "Loss", log_y=True),
    Figure("softmax_training", "Softmax attention over training", ("softmax_1_head", "softmax_2_heads"), _training, "training step", ""),
)  # fmt: skip


def table(figure: Figure, runs: Mapping[str, Sequence[Path]]) -> list[dict[str, Any]]:
    """The rows of a figure's CSV, from the finished runs of each name."""
    found = [figure.curves(run, name) for name in figure.runs for run in runs.get(name, ())]
    return rows_of(found)


def condition_numbers(seeds: Iterable[int]) -> list[dict[str, Any]]:
    """The rows of the spectrum's figure, which needs no training."""
    return rows_of([_condition_numbers(seed) for seed in seeds])


def rows_of(found: Sequence[Series]) -> list[dict[str, Any]]:
    """Means and 95 % t intervals over runs, for each panel, series and x at which none of them has diverged."""
    points: dict[tuple[str, str, float], list[float]] = {}
    for series in found:
        for (panel, name), (xs, ys) in series.items():
            for x, y in zip(xs, ys, strict=True):
                points.setdefault((panel, name, float(x)), []).append(float(y))
    rows = []
    for (panel, name, x), values in points.items():
        if not (np.abs(values) < DIVERGED).all():
            continue
        mean, half = mean_and_interval(np.array(values))
        half = 0.0 if np.isnan(half) else float(half)
        line = {"panel": panel, "series": name, "x": x, "mean": float(mean), "low": mean - half, "high": mean + half}
        rows.append(line | {"seeds": len(values)})
    return rows
