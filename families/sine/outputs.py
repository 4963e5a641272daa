"""What a run of sines leaves: its analyses, the columns of its table, when it has trained, and its summary."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from icl_lab.families.sine.config import SineConfig
from icl_lab.families.summary import first_line, header, row
from icl_lab.lab.configs import columns
from icl_lab.lab.configs.outputs import Analysis, Columns, Criterion, Curve, NamedLoss, Outputs, Panel
from icl_lab.src import loss_conventions

SINE_LEFT = 0.5  # of the loss of predicting zero. A predictor that knows the mean function E y = E[a] (2/pi) cos x, and
# ignores the context, has 1 - (E[a]^2 / E[a^2]) (2/pi)^2 E[cos^2 x] / E[sin^2(x + phi)] = .67 of it
MEASURED = {
    "trained": columns.trained,
    "test_loss": columns.at("headline", "loss"),
    "test_loss_se": columns.at("headline", "loss_se"),
}


def summary_lines(summary: Mapping[str, Any], run: Path, config: SineConfig) -> list[str]:
    """The losses after and before the context, and of zero."""
    numbers, on_grid = summary["headline"], summary["functions"]
    rows = {"after the context": "loss", "before the context": "initial_loss", "zero": "zero_loss"}
    return [
        header(numbers),
        *(row(label, numbers, name, digits=5) for label, name in rows.items()),
        f"one fixed sine, over the range: loss {on_grid['before_loss']:.5f} before its context, "
        f"{on_grid['after_loss']:.5f} after",
    ]


def meaning(summary: Mapping[str, Any], run: Path, config: SineConfig) -> str:
    """How the loss after the context compares with that before it."""
    numbers = summary["headline"]
    others = {"its loss before the context": numbers["initial_loss"]}
    return first_line("sines", config.data_seed, numbers["loss"], others)


OUTPUTS = Outputs(
    loss_convention=loss_conventions.LOSS_AND_MSE,
    test_loss=NamedLoss("test_loss", columns.at("headline", "loss")),
    columns=Columns({}, MEASURED, {"test_mse": columns.doubled("headline", "loss")}, columns.fields("training.steps")),
    panels=(
        Panel(
            "loss (half MSE)",
            (
                Curve("train_loss", "train batch", "train"),
                Curve("eval_loss", "after the context", "model"),
                Curve("eval_initial_loss", "before the context", "other"),
            ),
            "log",
        ),
    ),
    summary=summary_lines,
    meaning=meaning,
    analyses=(Analysis("sine_functions", ("functions",)),),
    commands=("compare_sine",),
    criteria=(
        Criterion(
            "loss after the context over that of zero",
            columns.over("headline", "loss", "zero_loss"),
            SINE_LEFT,
        ),
    ),
)
