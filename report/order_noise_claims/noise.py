"""How the loss grows with the noise, and what training on it changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from report.order_noise_claims.words import (
    Rows,
    all_equivalent,
    contrasts_of,
    equivalent_counts,
    in_percent,
    treated_over_control,
    widest,
)
from report.study import MODELS, NOISE, RATE, RATES
from src.statistics import ALPHA

if TYPE_CHECKING:
    import pandas as pd


def noise_growth(rows: Rows, table: pd.DataFrame) -> tuple[str, bool]:
    """Losses of clean-trained models by p."""
    parts, rising = [], True
    for mode in NOISE:
        losses = {
            model: [rows["noise at evaluation", f"{model}: {mode} {p:g} / gd_clean_step"]["treated"] for p in RATES]
            for model in MODELS
        }
        rising &= all(values == sorted(values) for values in losses.values())
        words = ", ".join(f"{model} {' '.join(f'{value:.3f}' for value in values)}" for model, values in losses.items())
        parts.append(f"{mode.replace('_', ' ')}: {words}")
    return f"**Noise.** Trained clean, the loss at p = .1, .25 and .5 is, under {'; under '.join(parts)}.", rising


def noise_is_gd(rows: Rows, table: pd.DataFrame) -> tuple[str, bool]:
    """Against gradient descent at the clean step."""
    found = {model: contrasts_of(rows, "noise at evaluation", f"{model}: ", "/ gd_clean_step") for model in MODELS}
    furthest = max((row for own in found.values() for row in own), key=lambda row: abs(row["change"]))
    return (
        "That is gradient descent at the step that is best on clean tasks, which knows nothing of the noise: "
        f"equivalent within ±1 % on the same contexts, {equivalent_counts(found)} corruptions; the furthest is "
        f"{furthest['contrast']}, {in_percent(furthest)}.",
        all_equivalent(found["lsa1"]) and all_equivalent(found["lsa1_pe"]) and abs(furthest["change"]) < 0.02,
    )


def far_from_bayes(rows: Rows, table: pd.DataFrame) -> tuple[str, bool]:
    """Against the linear MMSE predictor and the Bayesian."""
    found = [
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
        "All stay above the linear MMSE predictor and the Bayesian over masks, in every one of "
        f"{len(found)} contrasts; lsa1 at p = {RATE:g}: {', '.join(words)}.",
        all(row["verdict"] == "higher" for row in found),
    )


def noise_training(rows: Rows, table: pd.DataFrame) -> tuple[str, bool]:
    """Trained on the noise, against the tuned step."""
    found = {model: contrasts_of(rows, "noise in training", f"{model}: ", "/ gd_tuned_step") for model in MODELS}
    most = rows["noise in training", "lsa1: random_pairs 0.5, tested on it"]
    return (
        "**Training on noise** moves the linear layers' step and nothing else: tested on it they are equivalent to "
        f"gradient descent at the step tuned to that corruption; {equivalent_counts(found)} corruptions. Against "
        f"training clean, half the pairs random, that gains lsa1 {in_percent(most)}.",
        all_equivalent(found["lsa1"]) and all_equivalent(found["lsa1_pe"]) and most["verdict"] == "lower",
    )


def noise_training_cost(rows: Rows, table: pd.DataFrame) -> tuple[str, bool]:
    """Trained on the noise, tested clean."""
    found = [rows["noise in training", f"lsa1: {mode} {RATES[-1]:g}, tested clean"] for mode in NOISE]
    words = (f"on {mode.replace('_', ' ')} {in_percent(row)}" for mode, row in zip(NOISE, found, strict=True))
    return (
        f"It costs on clean contexts: lsa1 trained at p = {RATES[-1]:g} {', '.join(words)}.",
        all(row["low"] > 0 for row in found),
    )


def order_times_noise(rows: Rows, table: pd.DataFrame) -> tuple[str, bool]:
    """Order under label noise."""
    found = [row for model in ("lsa1_pe", "twolayer") for row in contrasts_of(rows, "order x noise", f"{model}: ")]
    differing = [row for row in found if row["verdict"] in ("higher", "lower")]
    return (
        f"**Order under label noise** (p = {RATE:g}, trained clean) does what it does without: all {len(found)} "
        f"contrasts of lsa1_pe and twolayer, interactions among them, are within ±{widest(found):.2f} %, and "
        f"{len(differing)} differ after Holm's correction.",
        all(row["p_equivalence"] < ALPHA for row in found) and not differing,
    )
