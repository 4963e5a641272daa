"""What a run of an autoencoder leaves: the columns of its table, when it has trained, and its summary."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from icl_lab.families.autoencoder.config import AutoencoderConfig
from icl_lab.families.languages.flags import strings_lines
from icl_lab.families.summary import header, row
from icl_lab.lab.configs import columns
from icl_lab.lab.configs.outputs import Analysis, Columns, Criterion, Curve, NamedLoss, Outputs, Panel, Summary

DECODES = 0.8  # of the symbols of unseen strings: below, a code says little of its string


def why_undefined(config: AutoencoderConfig, summary: Summary) -> str | None:
    """Why no accuracy of symbols says whether an autoencoder decodes, or None."""
    headline = summary["headline"]
    if "symbol_accuracy" in headline:
        reason: str | None = headline.get("symbol_accuracy_reason")
        return reason
    return "an earlier version wrote the summary, whose token_accuracy counts pads; train the run again"


def summary_lines(summary: Mapping[str, Any], run: Path, config: AutoencoderConfig) -> list[str]:
    """The loss and the accuracies on unseen strings."""
    numbers = summary["headline"]
    kind = "cross-entropy of a symbol, nats" if config.model.input == "one_hot" else "half squared error of a symbol"
    return [
        header(numbers, kind).replace("test tasks", "unseen strings"),
        row("autoencoder", numbers, "loss"),
        row("symbol accuracy", numbers, "symbol_accuracy"),
        row("token accuracy, pads included", numbers, "token_accuracy"),
        *strings_lines(config, summary),
    ]


def meaning(summary: Mapping[str, Any], run: Path, config: AutoencoderConfig) -> str:
    """The share of symbols that it decodes."""
    share = summary["headline"].get("symbol_accuracy", math.nan)
    if not math.isfinite(share):
        return ""
    return f"an autoencoder, seed {config.data_seed}: decodes {100 * share:.1f} % of the symbols of unseen strings"


OUTPUTS = Outputs(
    loss_convention="loss: mean over strings of a symbol's cross-entropy in nats, or for raw_index of half its squared "
    "error",
    test_loss=NamedLoss("test_loss", columns.at("headline", "loss")),
    columns=Columns(
        {"input": lambda config: config.model.input, "code_dim": lambda config: config.model.dim},
        {
            "token_accuracy": columns.at("headline", "token_accuracy"),
            "symbol_accuracy": columns.if_there("headline", "symbol_accuracy"),
            "test_loss_se": columns.at("headline", "loss_se"),
        },
        {"test_loss": columns.at("headline", "loss")},
        meanings={
            "token_accuracy": "fraction of positions in unseen strings, padding included, that are decoded correctly",
            "symbol_accuracy": "fraction of symbols in unseen strings that are decoded correctly",
            "test_loss": "loss on unseen strings",
        },
    ),
    panels=(
        Panel(
            "loss of a symbol",
            (Curve("train_loss", "train batch", "train"), Curve("eval_loss", "unseen strings", "model")),
            "log",
        ),
        Panel("token accuracy, pads included", (Curve("eval_accuracy", "unseen strings", "model"),)),
    ),
    summary=summary_lines,
    meaning=meaning,
    analyses=(Analysis("strings", ("strings",)),),
    criteria=(
        Criterion("symbol accuracy", lambda config, summary: summary["headline"].get("symbol_accuracy"), DECODES, True),
    ),
    undefined=why_undefined,
)
