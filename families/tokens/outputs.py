"""What a run on sequences of symbols leaves: the columns of its table, its curves, when it has trained, its summary."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from icl_lab.families.summary import counted, header, row
from icl_lab.families.tokens.config import TokensConfig
from icl_lab.lab.configs import columns
from icl_lab.lab.configs.outputs import Analysis, Columns, Criterion, Curve, NamedLoss, Outputs, Panel, Summary

HALF_OF_THE_GAP = 0.5  # from what ignores all but one symbol, or none, to the best predictor
ORDERS = range(1, 6)  # of Kneser-Ney
ROWS = {
    "loss": "trained transformer",
    "pool_loss": "exact posterior of the pool's chains",
    "pool_unigram_loss": "the same, of how often their symbols come",
    "bayes_loss": "exact posterior (Bayes)",
    "induction_constant_loss": "induction head, linear, with a constant",
    "induction_loss": "induction head, linear",
    "unigram_loss": "unigrams of the context",
    "bigram_loss": "bigrams of the language",
    **{f"kneser_ney_{order}_cached_loss": f"Kneser-Ney, order {order}, and the window's own" for order in ORDERS},
    **{f"kneser_ney_{order}_loss": f"Kneser-Ney, order {order}" for order in ORDERS},
    "uniform_loss": "uniform",
    "trigger_accuracy": "accuracy after triggers, transformer",
    "bayes_trigger_accuracy": "accuracy after triggers, Bayes",
}
BEST = ("pool_loss", "bayes_loss", "kneser_ney_5_loss")  # of a source the first that it has
SIMPLE = ("unigram_loss", "bigram_loss", "kneser_ney_1_loss")
MEASURED = ("uniform_loss", *BEST, *SIMPLE, "trigger_accuracy")
LOSS = columns.at("headline", "loss")


def first_of(names: Iterable[str], numbers: Mapping[str, Any]) -> str:
    """The first of these names that there is a number of."""
    return next(name for name in names if name in numbers)


def gap_closed(config: TokensConfig, summary: Summary) -> float | None:
    """The share of the gap between a simple predictor and the best one that a model closes.

    Of chains from unigrams of the context to Bayes, of triggers from the language's bigrams to Bayes, of text from
    unigrams to Kneser-Ney of order 5.
    """
    numbers = summary["headline"]
    losses = [numbers[name] for name in (first_of(SIMPLE, numbers), "loss", first_of(BEST, numbers))]
    if any(loss is None for loss in losses):
        return None
    simple, model, best = losses
    return float((simple - model) / (simple - best)) if simple > best else None


def summary_lines(summary: Mapping[str, Any], run: Path, config: TokensConfig) -> list[str]:
    """The losses of the model and of predictors, and the share of the gap between a simple and the best one."""
    numbers = summary["headline"]
    closed = gap_closed(config, summary)
    share = "" if closed is None else f"share of the gap to the best predictor that is closed: {closed:.3f}"
    rows = ROWS | {"excess": f"transformer less {ROWS[first_of(BEST, numbers)]}"}
    lines = [row(text, numbers, name) for name, text in rows.items() if name in numbers]
    return [header(numbers, "cross-entropy, nats a symbol").replace("tasks", "sequences"), *lines, share]


def meaning(summary: Mapping[str, Any], run: Path, config: TokensConfig) -> str:
    """The model, how much it loses to the best predictor, and how much of the gap to it is closed."""
    numbers, closed = summary["headline"], gap_closed(config, summary)
    if closed is None or not math.isfinite(closed):
        return ""
    simple, best = (ROWS[first_of(names, numbers)] for names in (SIMPLE, BEST))
    excess, share = numbers["excess"], f"{100 * closed:.0f} %" if closed > 0 else "none"
    return (
        f"{counted(config.model.num_layers, 'layer')}, seed {config.data_seed}: {abs(excess):.4f} nats a symbol "
        f"{'above' if excess >= 0 else 'below'} {best}; closes {share} of the gap from {simple}"
    )


CROSS_ENTROPY = Panel(
    "cross-entropy (nats a symbol)", (Curve("train_loss", "train batch", "train"), Curve("eval_loss", "model", "model"))
)


def distances(*curves: Curve) -> Panel:
    """How far a model is from predictors."""
    return Panel("KL from a predictor to the model (nats)", curves, "log")


OUTPUTS = Outputs(
    loss_convention="loss: cross-entropy in nats a symbol, of x_2 .. x_T",
    test_loss=NamedLoss("test_loss", LOSS),
    columns=Columns(
        columns.fields(
            "data.source",
            "data.num_symbols",
            "data.num_tokens",
            "data.chain_order",
            "data.num_chains",
            "model.num_layers",
        ),
        {
            "trained": columns.trained,
            "test_loss_se": columns.at("headline", "loss_se"),
            **columns.headline("excess", "excess_se"),
            **{f"test_{name}": columns.if_there("headline", name) for name in MEASURED},
        },
        {"test_loss": LOSS},
        meanings={
            "source": "what sequences are drawn from",
            "test_loss": "cross-entropy on test sequences, nats a symbol",
            "excess": "test_loss minus the best predictor's: pool posterior, else Bayes, else order-5 Kneser-Ney",
            "test_bayes_loss": "loss of the exact posterior of a fresh chain, or of triggers",
            "test_pool_loss": "loss of the exact posterior of the pool's chains",
            "test_unigram_loss": "loss of the symbol frequencies in the sequence so far",
            "test_bigram_loss": "loss of the language's bigrams, which ignore triggers",
            "test_kneser_ney_1_loss": "loss of the symbol frequencies in the training text",
            "test_kneser_ney_5_loss": "loss of a Kneser-Ney model of order 5 of the training text",
            "test_uniform_loss": "log k",
            "test_trigger_accuracy": "how often the model's likeliest symbol after a repeated trigger is the right one",
        },
    ),
    panels=(
        CROSS_ENTROPY,
        distances(
            Curve("eval_kl_uniform", "uniform", "train"),
            Curve("eval_kl_unigram", "unigrams of the context", "descent"),
            Curve("eval_kl_bayes", "exact posterior", "model"),
        ),
    ),
    source_panels={
        "triggers": (
            CROSS_ENTROPY,
            distances(
                Curve("eval_kl_uniform", "uniform", "train"),
                Curve("eval_kl_bigram", "the language's bigrams", "descent"),
                Curve("eval_kl_bayes", "exact posterior", "model"),
            ),
        ),
        "text": (
            CROSS_ENTROPY,
            distances(
                Curve("eval_kl_kneser_ney_1", "Kneser-Ney, order 1", "train"),
                Curve("eval_kl_kneser_ney_2", "order 2", "descent"),
                Curve("eval_kl_kneser_ney_3", "order 3", "model"),
                Curve("eval_kl_kneser_ney_5", "order 5", "other"),
            ),
        ),
    },
    summary=summary_lines,
    meaning=meaning,
    analyses=(Analysis("vocabulary", when=lambda config, table: config.data.source == "text"),),
    commands=("generate", "implied_prior"),
    criteria=(Criterion("share of the gap to the best predictor", gap_closed, HALF_OF_THE_GAP, at_least=True),),
)
