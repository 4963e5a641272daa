"""Curves over training: losses of a model and its baselines, alignment with gradient descent, development."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from icl_lab.lab.configs.presets import title_of
from icl_lab.lab.configs.registry import family_of, outputs_of
from icl_lab.plots import style
from icl_lab.store import layout
from icl_lab.store.metrics import metrics_columns
from icl_lab.store.readers import read_csv
from icl_lab.store.rundir import read_config

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

ALIGNMENT_COLUMNS = ("step", "preds_diff", "model_diff", "model_cos", "tf_loss", "gd_loss")


# whose a curve is -> how it is drawn
LOOKS: dict[str, dict[str, Any]] = {
    "train": {"color": style.GREY, "linewidth": 1},
    "model": {"color": style.TRANSFORMER},
    "descent": {"color": style.DESCENT, "linestyle": "--"},
    "other": {"color": style.OTHER, "linestyle": "--"},
}


@style.styled
def draw_loss(run: Path) -> Path:
    """loss.png: train and test loss over steps, and that of what the family compares with; a panel for each unit."""
    config = read_config(run)
    panels = outputs_of(family_of(config)).panels_of(config)
    fields = {curve.field for panel in panels for curve in panel.curves}
    columns = metrics_columns(run, sorted({"step", *fields}))
    figure, axes = style.new_figure(columns=len(panels), width=4.2 if len(panels) == 1 else 3.6)
    for drawn, panel in zip(axes[0], panels, strict=True):
        for field, label, whose in panel.curves:
            drawn.plot(columns["step"], columns[field], label=label, **LOOKS[whose])
        drawn.set(xlabel="training step", ylabel=panel.unit, yscale=panel.yscale)
        drawn.set_ylim(bottom=0 if panel.yscale == "linear" else None)
        drawn.locator_params(axis="x", nbins=6)
    style.legend_above(figure)
    style.caption(figure, _caption(run, config.eval_tasks))
    return style.save(figure, layout.figure(run, "loss"), run)


@style.styled
def draw_alignment(run: Path) -> Path:
    """alignment.png: differences of predictions and sensitivities, and the cosine of the latter, over training."""
    config = read_config(run)
    curve = read_csv(run / layout.ALIGNMENT_CURVE, ALIGNMENT_COLUMNS)
    figure, axes = style.new_figure(columns=2, width=3.6)
    left, right = axes[0]
    left.plot(curve["step"], curve["preds_diff"], color=style.TRANSFORMER, label="predictions: mean |difference|")
    left.plot(curve["step"], curve["model_diff"], color=style.OTHER, label="sensitivities: mean ‖difference‖")
    left.set_ylabel("difference to gradient descent")
    left.set_ylim(bottom=0)
    right.plot(curve["step"], curve["model_cos"], color=style.DESCENT)
    right.set_ylabel("cosine of sensitivities")
    right.set_ylim(min(0.0, float(curve["model_cos"].min())), 1.02)
    for panel in (left, right):
        panel.set_xlabel("training step")
    style.legend_above(figure)
    style.caption(figure, _caption(run, config.eval_tasks))
    return style.save(figure, layout.figure(run, "alignment"), run)


def _caption(run: Path, tasks: int) -> str:
    config = read_config(run)
    return f"{title_of(config)}, seed {config.data_seed}, {tasks} test tasks, one run"


MOST_COLUMNS = 4  # of panels
# words of columns in a legend
LETTERS = {
    **{"1_d": "1:D", "d_k": "D:K", "1_k": "1:K", "id": "pool", "ood": "fresh tasks"},
    **{"previous_token_head": "previous-token head", "other_heads": "others of its layer, mean"},
}
NULL, NULL_LOOK = "null", {"color": style.GREY, "linestyle": "--", "linewidth": 1.0}
MANY = 6  # curves of a panel, from which on they are thin
SQUARED = (
    "Errors are squared errors, neither halved nor divided by D, but for the loss, which is the model's own, and "
    "distances, which are divided by D."
)
WIDE = 3  # from the least to the largest value: what spans less has a linear axis


class Metrics(NamedTuple):
    """Columns that match an expression, one curve each; its groups are the label, and equal labels share a colour.

    A curve that is labelled `null` is drawn as what others are compared with.
    """

    title: str
    pattern: str
    logarithmic: bool = False


PANELS = (
    Metrics("loss", "(loss)", True),
    Metrics("squared error at k, noisy labels, pool", r"id_mse_noisy_(\d+)"),
    Metrics("ICL score, pool (negative: learns)", "id_icl_(.+)_figure"),
    Metrics("ICL score 1:K over g of inputs g x", r"gain_(\d+)_icl_over_g_figure"),
    Metrics("mean squared prediction", "(id|ood)_squared_prediction", True),
    Metrics("squared distance / D", "(id|ood)_delta_(.+)", True),
    Metrics("weight norm", "(weight_norm)", True),
    Metrics("trace and top eigenvalue of Hessian", "hessian_(trace|top)", True),
    Metrics("share of the least direction of tokens", "(embedding_smallest_share)"),
    Metrics("share of the top direction of positions", "(position_top_share)"),
    Metrics("tokens' directions among positions", r"embedding_in_positions_(\d+)"),
    Metrics("unembedding: participation, share of top 4", "unembedding_(top_share|participation)"),
    Metrics("mean scale of layer norms", "(.+)_gamma_mean"),
    Metrics("layer norms: scales below .1", "(.+)_gamma_small"),
    Metrics("entropy of heads / that of all visible", r"(layer_\d+)_head_\d+_entropy"),
    Metrics("variability of heads (total variation)", r"(layer_\d+)_head_\d+_variability"),
    Metrics("mass of heads on the previous token", r"(layer_\d+)_head_\d+_previous"),
    Metrics("mass of heads on inputs x", r"(layer_\d+)_head_\d+_inputs"),
    Metrics("KL from a predictor to the model (nats)", "kl_(.+)", True),
    Metrics("divergence from bigrams (nats)", "(bigram_divergence)", True),
    Metrics("n-gram score at n", r"ngram_score_(\d)"),
    Metrics("ICL score (nats; negative: learns)", "(icl_score)|icl_score_(minus)_(.+)(?<!_se)"),
    Metrics("positional ablation (nats)", "(positional_ablation)"),
    Metrics("copy loss (nats; negative: copies)", "(copy_loss)"),
    Metrics("copy accuracy", "(copy_accuracy)|(null)_copy_accuracy"),
    Metrics("previous-token score of heads", r"(layer_\d+)_head_\d+_previous_token|(null)_previous_token"),
    Metrics("attention to the start symbol", r"(layer_\d+)_head_\d+_start_attention|(null)_start_attention"),
    Metrics("prefix-matching score of heads", r"(layer_\d+)_head_\d+_prefix_matching|(null)_prefix_matching"),
    Metrics("match mass of heads", r"(layer_\d+)_head_\d+_match_mass|(null)_match_mass"),
    Metrics("K-composition with heads below", r"(layer_\d+)_head_\d+_k_composition_\d+|(null)_k_composition"),
    Metrics("change of loss without previous-token head", "ablation_(previous_token_head|other_heads)"),
)


def draw_metrics(run: Path) -> Path:
    """figs/developmental_metrics.png, of developmental_metrics.csv."""
    path = run / layout.DEVELOPMENTAL_METRICS
    names = read_csv(path, ("step", "loss", "weight_norm")).columns
    curves = {panel: _labels(panel, names) for panel in PANELS}
    curves = {panel: labels for panel, labels in curves.items() if labels}
    return _draw_metrics(
        run, read_csv(path, ("step", *(name for labels in curves.values() for name in labels))), curves
    )


def _labels(panel: Metrics, names: Sequence[str]) -> dict[str, str]:
    """Column -> label of a panel's curves."""
    matches = {name: re.fullmatch(panel.pattern, name) for name in names}
    return {name: " ".join(map(_word, filter(None, match.groups()))) for name, match in matches.items() if match}


def _word(group: str) -> str:
    return LETTERS.get(group, group.replace("_", " "))


@style.styled
def _draw_metrics(run: Path, table: pd.DataFrame, curves: Mapping[Metrics, Mapping[str, str]]) -> Path:
    rows = -(-len(curves) // MOST_COLUMNS)
    figure, axes = style.new_figure(rows, MOST_COLUMNS, width=3.0, height=2.2)
    for place, (panel, labels) in zip(axes.flat, curves.items(), strict=False):
        _draw_panel(place, table, panel, labels)
    for place in axes.flat[len(curves) :]:
        place.set_axis_off()
    said = [f"{run.name}: {len(table)} checkpoints."]
    if any("squared" in panel.title for panel in curves):
        said.append(SQUARED)
    said.append("Heads are drawn by layer.")
    if any(NULL in labels.values() for labels in curves.values()):
        said.append("Dashed: nulls, which are uniform attention, random weights and chance.")
    style.caption(figure, " ".join(said))
    return style.save(figure, run / layout.DEVELOPMENTAL_METRICS_FIGURE, run)


def _draw_panel(axes: Axes, table: pd.DataFrame, panel: Metrics, labels: Mapping[str, str]) -> None:
    colours, shown = style.in_order(label for label in labels.values() if label != NULL), set[str]()
    for name, label in labels.items():
        look = {"color": colours.get(label), "linewidth": 1.6 if len(labels) < MANY else 0.9}
        entry = None if label in shown else style.plain(label)
        axes.plot(table["step"], table[name], **(NULL_LOOK if label == NULL else look), label=entry)
        shown.add(label)
    style.over_steps(axes)
    values = table[list(labels)].to_numpy()
    if panel.logarithmic and values.min() > 0 and values.max() > WIDE * values.min():
        axes.set_yscale("log")
    axes.set_title(panel.title, fontsize=8)
    axes.xaxis.label.set_fontsize(8)
    axes.tick_params(labelsize=7, which="both")
    if len(shown) > 1:
        columns = 1 + len(shown) // 6
        legend = axes.legend(fontsize=6, ncols=columns, labelspacing=0.2, handlelength=1.2, frameon=True)
        legend.get_frame().set(edgecolor="none", alpha=0.75)
