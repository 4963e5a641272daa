"""How the loss grows with the noise, and what training on it changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from icl_lab.studies.order_noise.findings.wording import (
    Row,
    Rows,
    all_equivalent,
    contrasts_of,
    equivalent_counts,
    in_percent,
    none_lower,
    of_trained,
    span,
    treated_over_control,
    widest,
)
from icl_lab.studies.order_noise.runs import MODELS, NOISE, RATE, RATES

if TYPE_CHECKING:
    import pandas as pd

LINEAR = MODELS[:2]


def noise_growth(rows: Rows, table: pd.DataFrame) -> tuple[str, bool]:
    """Losses of clean-trained models by p."""
    clean = {
        model: rows["noise in training", f"{model}: {NOISE[0]} {RATE:g}, tested clean"]["control"] for model in MODELS
    }
    losses = {
        (model, mode): [
            clean[model],
            *(rows["noise at evaluation", f"{model}: {mode} {p:g} / gd_clean_step"]["treated"] for p in RATES),
        ]
        for model in MODELS
        for mode in NOISE
    }
    label, pairs = (losses[MODELS[0], mode][-1] for mode in NOISE)
    return (
        "**Noise.** Trained clean, every model's loss rises with the share of noisy pairs. That of lsa1 goes from "
        f"{clean[MODELS[0]]:.3f} without to {label:.3f} under label noise and {pairs:.3f} under random pairs, at p = "
        f"{RATES[-1]:g}.",
        all(bool((np.diff(values) >= 0).all()) for values in losses.values()),
    )


def noise_is_gd(rows: Rows, table: pd.DataFrame) -> tuple[str, bool]:
    """Against gradient descent at the clean step."""
    contrasts = {model: contrasts_of(rows, "noise at evaluation", f"{model}: ", "/ gd_clean_step") for model in MODELS}
    contrasts = {
        model: [row for row in group if "against" not in row["contrast"]] for model, group in contrasts.items()
    }
    furthest = max((row for group in contrasts.values() for row in group), key=lambda row: abs(row["change"]))
    return (
        "For the linear layers that is gradient descent's loss at the clean step, within 1 %: "
        f"{equivalent_counts(contrasts)} corruptions. Furthest is {furthest['contrast']}, {in_percent(furthest)}.",
        all(all_equivalent(contrasts[model]) for model in LINEAR),
    )


def noise_does_not_grow(rows: Rows, table: pd.DataFrame) -> tuple[str, bool]:
    """The ratio to gradient descent, on noise and clean."""
    contrasts = contrasts_of(rows, "noise at evaluation", "lsa1: ", "against the same clean")
    return (
        "The ratio of lsa1's loss to gradient descent's does not grow with the noise: it is equivalent to that on "
        f"clean contexts in all {len(contrasts)} corruptions ({widest(contrasts)}).",
        all_equivalent(contrasts),
    )


def far_from_bayes(rows: Rows, table: pd.DataFrame) -> tuple[str, bool]:
    """Against the linear MMSE predictor and the Bayesian."""
    contrasts = [
        row for name in ("linear_mmse", "mask_bayes") for row in contrasts_of(rows, "noise at evaluation", f"/ {name}")
    ]
    words = []
    for mode in NOISE:
        linear, bayes = (
            treated_over_control(rows, "noise at evaluation", f"lsa1: {mode} {RATE:g} / {name}")
            for name in ("linear_mmse", "mask_bayes")
        )
        words.append(f"{linear:.2f} and {bayes:.2f} times their loss under {mode.replace('_', ' ')}")
    return (
        "All stay above the linear MMSE predictor and the Bayesian over masks, in all "
        f"{len(contrasts)} contrasts; lsa1 at p = {RATE:g}: {', '.join(words)}.",
        all(row["reading_says"] == "higher" for row in contrasts),
    )


def noise_training(rows: Rows, table: pd.DataFrame) -> tuple[str, bool]:
    """Trained on the noise: the step moves to the tuned one."""
    moved, best = (
        {model: contrasts_of(rows, "the step a model takes", f"{model}: ", word) for model in MODELS}
        for word in ("against trained clean", "against the tuned step")
    )
    shorter = [row for group in moved.values() for row in group if row["reading_says"] == "lower"]
    return (
        f"**Training on noise** shortens the step, in {len(shorter)} of {sum(map(len, moved.values()))} contrasts, to "
        "near the one tuned to that corruption: the difference is "
        f"{', '.join(f'{span(group)} for {model}' for model, group in best.items())}.",
        len(shorter) >= 12,
    )


def noise_training_loss(rows: Rows, table: pd.DataFrame) -> tuple[str, bool]:
    """Trained on the noise: the loss is that of the tuned step."""
    contrasts = {model: contrasts_of(rows, "noise in training", f"{model}: ", "/ gd_tuned_step") for model in MODELS}
    return (
        "The loss is then that of gradient descent at the tuned step, within 1 %: "
        f"{equivalent_counts(contrasts)} corruptions.",
        all_equivalent(contrasts["lsa1"]),
    )


def noise_training_pays(rows: Rows, table: pd.DataFrame) -> tuple[str, bool]:
    """Trained on the noise, tested on it."""
    contrasts = [row for row in contrasts_of(rows, "noise in training", ", tested on it") if "/" not in row["contrast"]]
    gained = [row for row in contrasts if row["reading_says"] == "lower"]
    return (
        f"Tested on the training noise, training on it lowers the loss significantly in {len(gained)} of "
        f"{len(contrasts)} contrasts: {_named(gained)}.",
        len(gained) > 0,
    )


def noise_training_cost(rows: Rows, table: pd.DataFrame) -> tuple[str, bool]:
    """Trained on the noise, tested clean."""
    contrasts = contrasts_of(rows, "noise in training", ", tested clean")
    shown = [row for row in contrasts if row["reading_says"] == "higher"]
    return (
        f"Tested clean, training on noise costs in {len(shown)} of {len(contrasts)}, of the seeds that trained: "
        f"{'; '.join(f'{_name(row)} {of_trained(row)}' for row in shown)}.",
        len(shown) > 0 and none_lower(contrasts),
    )


def _named(rows: Sequence[Row]) -> str:
    return "; ".join(f"{_name(row)} {in_percent(row)}" for row in rows)


def _name(row: Row) -> str:
    return str(row["contrast"]).partition(",")[0]


def order_times_noise(rows: Rows, table: pd.DataFrame) -> tuple[str, bool]:
    """Order under label noise."""
    contrasts = [row for model in MODELS[1:] for row in contrasts_of(rows, "order x noise", f"{model}: ")]
    interactions = [row for row in contrasts if "effect without" in row["contrast"]]
    orders = [row for row in contrasts if row not in interactions]
    return (
        f"**Order under label noise** does what it does without: all {len(interactions)} ratios of the two effects are "
        f"equivalent to 1 ({widest(interactions)}). The {len(orders)} orders change the loss by less than 1 % "
        f"({widest(orders)}).",
        all_equivalent(interactions) and all_equivalent(orders),
    )
