"""What a run on sequences of symbols leaves: the columns of its table, its curves, when it has trained, its summary."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from icl_lab.families.summary import header, row
from icl_lab.families.tokens.config import TokensConfig
from icl_lab.lab.configs import columns
from icl_lab.lab.configs.outputs import Columns, Criterion, Curve, NamedLoss, Outputs, Panel, Summary

HALF_OF_THE_GAP = 0.5  # from the unigram rule to exact inference: what ignores the order has 0, the exact posterior 1
ROWS = {
    "loss": "trained transformer",
    "bayes_loss": "exact posterior of a fresh chain (Bayes)",
    "pool_loss": "exact posterior of the pool's chains",
    "unigram_loss": "unigrams of the context",
    "uniform_loss": "uniform",
    "excess": "model less the best exact posterior, paired",
}
LOSS = columns.at("headline", "loss")


def gap_closed(config: TokensConfig, summary: Summary) -> float | None:
    """The share of the gap between unigrams and exact inference that a model closes."""
    numbers = summary["headline"]
    losses = [numbers[name] for name in ("unigram_loss", "loss", exact(numbers))]
    if any(loss is None for loss in losses):
        return None
    unigram, model, best = losses
    return float((unigram - model) / (unigram - best)) if unigram > best else None


def exact(numbers: Mapping[str, Any]) -> str:
    """Which loss is exact inference's: of a pool that of its chains."""
    return "pool_loss" if "pool_loss" in numbers else "bayes_loss"


def summary_lines(summary: Mapping[str, Any], run: Path, config: TokensConfig) -> list[str]:
    """The losses of the model and of exact predictors, and the share of the gap between them."""
    numbers = summary["headline"]
    closed = gap_closed(config, summary)
    share = "" if closed is None else f"share of the gap from unigrams to exact inference: {closed:.3f}"
    lines = [row(text, numbers, name) for name, text in ROWS.items() if name in numbers]
    return [header(numbers, "cross-entropy, nats a symbol").replace("tasks", "sequences"), *lines, share]


OUTPUTS = Outputs(
    loss_convention="loss: cross-entropy in nats a symbol, of x_2 .. x_T",
    test_loss=NamedLoss("test_loss", LOSS),
    columns=Columns(
        columns.fields(
            "data.num_symbols", "data.num_tokens", "data.chain_order", "data.num_chains", "model.num_layers"
        ),
        {
            "trained": columns.trained,
            "test_loss_se": columns.at("headline", "loss_se"),
            **columns.headline("excess", "excess_se", "bayes_loss", "unigram_loss", "uniform_loss"),
            "pool_loss": columns.if_there("headline", "pool_loss"),
        },
        {"test_loss": LOSS},
        meanings={
            "test_loss": "cross-entropy on test sequences, nats a symbol",
            "excess": "test_loss less that of the exact posterior, of the pool's chains or else of a fresh one",
            "bayes_loss": "that of the exact posterior of a fresh chain",
            "pool_loss": "that of the exact posterior of the pool's chains",
            "unigram_loss": "that of how often symbols have come so far",
            "uniform_loss": "log k",
        },
    ),
    panels=(
        Panel(
            "cross-entropy (nats a symbol)",
            (Curve("train_loss", "train batch", "train"), Curve("eval_loss", "model", "model")),
        ),
        Panel(
            "KL from an exact predictor to the model (nats)",
            (
                Curve("eval_kl_uniform", "uniform", "train"),
                Curve("eval_kl_unigram", "unigrams of the context", "descent"),
                Curve("eval_kl_bayes", "exact posterior", "model"),
            ),
            "log",
        ),
    ),
    summary=summary_lines,
    criteria=(
        Criterion("share of the gap from unigrams to exact inference", gap_closed, HALF_OF_THE_GAP, at_least=True),
    ),
)
