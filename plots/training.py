"""What happened during training: the loss and that of what it is compared with, and the alignment with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from plots import style
from store import layout
from store.readers import read_csv
from store.rundir import METRICS_FIELDS, read_config, read_metrics

ALIGNMENT_COLUMNS = ("step", "preds_diff", "model_diff", "model_cos", "tf_loss", "gd_loss")


class Curve(NamedTuple):
    """A field of the metrics and how it is drawn."""

    field: str
    label: str
    look: dict[str, Any]


class Panel(NamedTuple):
    """Losses in one unit, which the axis names."""

    unit: str
    curves: tuple[Curve, ...]
    yscale: str = "linear"


TEST = {"color": style.TRANSFORMER}
OTHER = {"color": style.OTHER, "linestyle": "--"}
TRAIN = Curve("train_loss", "train batch", {"color": style.GREY, "linewidth": 1})
HALF_MSE = "loss (half MSE)"
WITH_DESCENT = (
    Panel(
        HALF_MSE,
        (
            TRAIN,
            Curve("test_loss", "Trained Transformer", TEST),
            Curve("gd_loss", "Gradient descent", {"color": style.DESCENT, "linestyle": "--"}),
        ),
    ),
)
POOL = "its pool's tasks"
# family -> the panels of its loss
LOSSES: dict[str, tuple[Panel, ...]] = {
    "regression": WITH_DESCENT,
    "layerwise": WITH_DESCENT,
    "diversity": (
        Panel("loss (half MSE, noise included)", (TRAIN, Curve("test_loss", POOL, TEST))),
        Panel("squared error / D (no noise)", (Curve("id_loss", POOL, TEST), Curve("ood_loss", "fresh tasks", OTHER))),
    ),
    "sine": (
        Panel(
            HALF_MSE,
            (TRAIN, Curve("test_loss", "after the context", TEST), Curve("initial_loss", "before the context", OTHER)),
            "log",
        ),
    ),
}


@style.styled
def draw_loss(run: Path) -> Path:
    """loss.png: train and test loss over steps, and that of what the family compares with; a panel for each unit."""
    config = read_config(run)
    panels = LOSSES[config.family]
    fields = {curve.field for panel in panels for curve in panel.curves}
    records = read_metrics(run, sorted(fields - set(METRICS_FIELDS)))
    figure, axes = style.new_figure(columns=len(panels), width=4.2 if len(panels) == 1 else 3.6)
    for drawn, panel in zip(axes[0], panels, strict=True):
        for field, label, look in panel.curves:
            drawn.plot([r["step"] for r in records], [r[field] for r in records], label=label, **look)
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
