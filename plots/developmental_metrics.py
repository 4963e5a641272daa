"""A run's developmental metrics over training, a panel for each kind that it has."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from icl_lab.plots import style
from icl_lab.store import layout
from icl_lab.store.readers import read_csv

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

COLUMNS = 4  # of panels
LETTERS = {"1_d": "1:D", "d_k": "D:K", "1_k": "1:K", "id": "pool", "ood": "fresh tasks"}  # words of columns in a legend
MANY = 6  # curves of a panel, from which on they are thin
WIDE = 3  # from the least to the largest value: what spans less has a linear axis


class Panel(NamedTuple):
    """Columns that match an expression, one curve each; its groups are the label, and equal labels share a colour."""

    title: str
    pattern: str
    logarithmic: bool = False


PANELS = (
    Panel("loss", "(loss)", True),
    Panel("squared error at k, noisy labels, pool", r"id_mse_noisy_(\d+)"),
    Panel("ICL score, pool (negative: learns)", "id_icl_(.+)_figure"),
    Panel("ICL score 1:K over g of inputs g x", r"gain_(\d+)_icl_over_g_figure"),
    Panel("mean squared prediction", "(id|ood)_squared_prediction", True),
    Panel("squared distance / D", "(id|ood)_delta_(.+)", True),
    Panel("weight norm", "(weight_norm)", True),
    Panel("trace and top eigenvalue of Hessian", "hessian_(trace|top)", True),
    Panel("share of the least direction of tokens", "(embedding_smallest_share)"),
    Panel("share of the top direction of positions", "(position_top_share)"),
    Panel("tokens' directions among positions", r"embedding_in_positions_(\d+)"),
    Panel("unembedding: participation, share of top 4", "unembedding_(top_share|participation)"),
    Panel("mean scale of layer norms", "(.+)_gamma_mean"),
    Panel("layer norms: scales below .1", "(.+)_gamma_small"),
    Panel("entropy of heads / that of all visible", r"(layer_\d+)_head_\d+_entropy"),
    Panel("variability of heads (total variation)", r"(layer_\d+)_head_\d+_variability"),
    Panel("mass of heads on the previous token", r"(layer_\d+)_head_\d+_previous"),
    Panel("mass of heads on inputs x", r"(layer_\d+)_head_\d+_inputs"),
)


def draw_metrics(run: Path) -> Path:
    """figs/developmental_metrics.png, of developmental_metrics.csv."""
    path = run / layout.DEVELOPMENTAL_METRICS
    names = read_csv(path, ("step", "loss", "weight_norm")).columns
    curves = {panel: _labels(panel, names) for panel in PANELS}
    curves = {panel: labels for panel, labels in curves.items() if labels}
    return _draw(run, read_csv(path, ("step", *(name for labels in curves.values() for name in labels))), curves)


def _labels(panel: Panel, names: Sequence[str]) -> dict[str, str]:
    """Column -> label of a panel's curves."""
    matches = {name: re.fullmatch(panel.pattern, name) for name in names}
    return {name: " ".join(map(_word, match.groups())) for name, match in matches.items() if match}


def _word(group: str) -> str:
    return LETTERS.get(group, group.replace("_", " "))


@style.styled
def _draw(run: Path, table: pd.DataFrame, curves: Mapping[Panel, Mapping[str, str]]) -> Path:
    rows = -(-len(curves) // COLUMNS)
    figure, axes = style.new_figure(rows, COLUMNS, width=3.0, height=2.2)
    for place, (panel, labels) in zip(axes.flat, curves.items(), strict=False):
        _panel(place, table, panel, labels)
    for place in axes.flat[len(curves) :]:
        place.set_axis_off()
    style.caption(
        figure,
        f"{run.name}: {len(table)} checkpoints. Errors are squared errors, neither halved nor divided by D, but for "
        "the loss, which is the model's own, and distances, which are divided by D. Heads are drawn by layer.",
    )
    return style.save(figure, run / layout.DEVELOPMENTAL_METRICS_FIGURE, run)


def _panel(axes: Axes, table: pd.DataFrame, panel: Panel, labels: Mapping[str, str]) -> None:
    colours, shown = style.in_order(labels.values()), set[str]()
    for name, label in labels.items():
        width = 1.6 if len(labels) < MANY else 0.9
        entry = None if label in shown else style.plain(label)
        axes.plot(table["step"], table[name], color=colours[label], linewidth=width, label=entry)
        shown.add(label)
    axes.set_xscale("symlog", linthresh=1)
    axes.set_xlim(left=-0.5)
    values = table[list(labels)].to_numpy()
    if panel.logarithmic and values.min() > 0 and values.max() > WIDE * values.min():
        axes.set_yscale("log")
    axes.set_title(panel.title, fontsize=8)
    axes.set_xlabel("training step", fontsize=8)
    axes.tick_params(labelsize=7, which="both")
    if len(shown) > 1:
        axes.legend(fontsize=6, ncols=1 + len(shown) // 6, labelspacing=0.2, handlelength=1.2)
