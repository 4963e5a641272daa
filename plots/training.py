"""What happened during training: the loss beside that of what it is held against, and the alignment with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from plots import style
from store import layout
from store.readers import read_csv
from store.rundir import read_config, read_metrics

ALIGNMENT_COLUMNS = ("step", "preds_diff", "model_diff", "model_cos", "tf_loss", "gd_loss")


class Losses(NamedTuple):
    """How a family's losses are drawn: the label of the test's; another field, its label and colour; the axis."""

    test: str
    other: str
    other_label: str
    colour: str
    axis: dict[str, Any]


BESIDE_DESCENT = Losses("Trained Transformer", "gd_loss", "Gradient descent", style.DESCENT, {"ylim": (0, None)})
LOSSES = {
    "regression": BESIDE_DESCENT,
    "layerwise": BESIDE_DESCENT,
    "diversity": Losses(
        "its pool's tasks (half MSE)", "ood_loss", "fresh tasks (MSE/D)", style.OTHER, {"ylim": (0, None)}
    ),
    "sine": Losses("after the context", "initial_loss", "before the context", style.OTHER, {"yscale": "log"}),
}


@style.styled
def draw_loss(run: Path) -> Path:
    """loss.png: train and test loss over steps, and that of what the family holds it against on the same contexts."""
    config = read_config(run)
    drawn = LOSSES[config.family]
    records = read_metrics(run, [drawn.other])
    steps = [record["step"] for record in records]
    figure, axes = style.new_figure()
    panel = axes[0, 0]
    panel.plot(steps, [r["train_loss"] for r in records], color=style.GREY, linewidth=1, label="train batch")
    panel.plot(steps, [r["test_loss"] for r in records], color=style.TRANSFORMER, label=drawn.test)
    panel.plot(steps, [r[drawn.other] for r in records], color=drawn.colour, linestyle="--", label=drawn.other_label)
    panel.set(xlabel="training step", ylabel="loss (half MSE)", **drawn.axis)
    panel.locator_params(axis="x", nbins=6)
    panel.legend()
    style.caption(figure, _caption(run, config.eval_tasks))
    return style.save(figure, layout.figure(run, "loss"))


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
    left.legend()
    right.plot(curve["step"], curve["model_cos"], color=style.DESCENT)
    right.set_ylabel("cosine of sensitivities")
    right.set_ylim(min(0.0, float(curve["model_cos"].min())), 1.02)
    for panel in (left, right):
        panel.set_xlabel("training step")
    style.caption(figure, _caption(run, config.eval_tasks))
    return style.save(figure, layout.figure(run, "alignment"))


def _caption(run: Path, tasks: int) -> str:
    config = read_config(run)
    return f"{config.name}, seed {config.data_seed}, {tasks} test tasks, one run"
