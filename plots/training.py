"""Training curves: losses of the model and its baselines, and the alignment with gradient descent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from icl_lab.lab.configs.registry import family_of, outputs_of
from icl_lab.plots import style
from icl_lab.store import layout
from icl_lab.store.readers import read_csv
from icl_lab.store.rundir import metrics_columns, read_config

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
    panels = outputs_of(family_of(config)).panels
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
    return f"{config.name}, seed {config.data_seed}, {tasks} test tasks, one run"
