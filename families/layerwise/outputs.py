"""What a run of the depth curve leaves: its curve, the columns of its table, when it has trained, its summary."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from icl_lab.families.layerwise.config import UNTRAINED, LayerwiseConfig
from icl_lab.families.regression.outputs import WITH_DESCENT
from icl_lab.families.summary import counted, first_line
from icl_lab.lab.configs import columns
from icl_lab.lab.configs.outputs import Analysis, Columns, Criterion, NamedLoss, Outputs, Results, Summary
from icl_lab.src import loss_conventions

DRAWN = ("trimmed_mean", "trimmed_sem", "median")  # the first of them in the figure

MEASURED: dict[str, Callable[[Results], Any]] = {  # after the last layer, of a roll-out too
    "trained": columns.trained,
    "test_loss": columns.halved("layerwise", "mse", -1),
    "test_loss_se": columns.halved("layerwise", "sem", -1),
    "gd_mse": columns.at("layerwise", "gd", "mse", -1),
    "test_gd_loss": columns.halved("layerwise", "gd", "mse", -1),
    "test_ridge_loss": columns.halved("layerwise", "references", "ridge", "mse", -1),
}

MEANINGS_OF_COLUMNS = {
    "test_mse": "mean squared error on the test set, after the last layer",
    "test_loss": "half of it",
    "gd_mse": "`test_mse` of as many steps of gradient descent",
    "test_gd_loss": "half of it, of as many steps of gradient descent",
}


def last_layer(config: LayerwiseConfig, summary: Summary) -> float | None:
    """The loss relative to zero's: a stack's after its last layer, a rolled-out layer's after its first application."""
    curve = summary["layerwise"]
    loss = curve["trimmed_mean"][0 if curve["rolled_out"] else -1]
    return columns.ratio(loss, curve["references"]["zero"]["mse"][0])


def summary_lines(summary: Mapping[str, Any], run: Path, config: LayerwiseConfig) -> list[str]:
    """The losses of the transformer and of its baselines."""
    curve = summary["layerwise"]
    kind = f"rolled out with damping {curve['damping']:g}" if curve["rolled_out"] else f"{curve['layers']} layers"
    lines = [
        f"{kind}: {curve['verdict']}",
        f"{'MSE on ' + str(curve['num_tasks']) + ' test tasks':<32}mean    ± s.e.    median GD's mean     TF/GD",
    ]
    for layer in (layer for layer in range(curve["layers"]) if layer + 1 in (1, 2, 4, 8, 12, 24, curve["layers"])):
        numbers = (curve[name][layer] for name in DRAWN)
        gd, ratio = curve["gd"]["trimmed_mean"][layer], curve["ratio_to_gd"][layer]
        lines.append(f"  layer {layer + 1:<20}" + "".join(f"{number:10.4g}" for number in (*numbers, gd, ratio)))
    for name, label in {"ridge": "ridge (Bayes)", "zero": "zero"}.items():
        numbers = (curve["references"][name][statistic][0] for statistic in DRAWN)
        lines.append(f"  {label:<26}" + "".join(f"{number:10.4g}" for number in numbers))
    return [*lines, f"mean: {loss_conventions.TRIMMED_MEAN}, as figs/layerwise.png draws it"]


def meaning(summary: Mapping[str, Any], run: Path, config: LayerwiseConfig) -> str:
    """The stack, and its error after the last layer, compared with as many steps of gradient descent."""
    curve, layers = summary["layerwise"], config.model.num_layers
    steps = f"{counted(curve['layers'], 'step')} of gradient descent"
    stack = f"{counted(layers, 'layer')}{', rolled out' * curve['rolled_out']}"
    return first_line(stack, config.data_seed, curve["trimmed_mean"][-1], {steps: curve["gd"]["trimmed_mean"][-1]})


OUTPUTS = Outputs(
    loss_convention=loss_conventions.LOSS_AND_MSE,
    test_loss=NamedLoss("test_mse", columns.at("layerwise", "mse", -1)),
    columns=Columns(
        {},
        MEASURED,
        {"test_mse": columns.at("layerwise", "mse", -1)},
        columns.fields("model.num_layers", "training.steps"),
        meanings=MEANINGS_OF_COLUMNS,
    ),
    panels=(WITH_DESCENT,),
    summary=summary_lines,
    meaning=meaning,
    analyses=(Analysis("layerwise", ("layerwise",)),),
    commands=("layerwise",),
    criteria=(Criterion("last layer's MSE over that of zero", last_layer, UNTRAINED),),
)
