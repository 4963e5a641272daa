"""How the loss grows with the noise, and what training on it changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from studies.order_noise.findings.wording import (
    SHOWN,
    Row,
    Rows,
    all_equivalent,
    contrasts_of,
    equivalent_counts,
    in_percent,
    listed,
    treated_over_control,
    widest,
)
from studies.order_noise.runs import MODELS, NOISE, RATE, RATES

if TYPE_CHECKING:
    import pandas as pd

LINEAR = MODELS[:2]


def noise_growth(rows: Rows, table: pd.DataFrame) -> tuple[str, bool]:
    """Losses of clean-trained models by p."""
    clean = {
        model: rows["noise in training", f"{model}: {NOISE[0]} {RATE:g}, tested clean"]["control"] for model in MODELS
    }
    parts, rising = [], True
    for mode in NOISE:
        losses = {
            model: [
                clean[model],
                *(rows["noise at evaluation", f"{model}: {mode} {p:g} / gd_clean_step"]["treated"] for p in RATES),
            ]
            for model in MODELS
        }
        rising &= all(values == sorted(values) for values in losses.values())
        words = ", ".join(f"{model} {' '.join(f'{value:.3f}' for value in values)}" for model, values in losses.items())
        parts.append(f"{mode.replace('_', ' ')}: {words}")
    return f"**Noise.** Trained clean, the loss at p = 0, .1, .25 and .5 is, under {'; under '.join(parts)}.", rising


def noise_is_gd(rows: Rows, table: pd.DataFrame) -> tuple[str, bool]:
    """Against gradient descent, at the clean step and at the tuned one, and whether the distance grows."""
    question = "noise at evaluation"
    clean, tuned, growth = (
        {model: contrasts_of(rows, question, f"{model}: ", word) for model in MODELS}
        for word in ("/ gd_clean_step", "/ gd_tuned_step", "against the same clean")
    )
    clean = {model: [row for row in own if "against" not in row["contrast"]] for model, own in clean.items()}
    furthest = max((row for own in clean.values() for row in own), key=lambda row: abs(row["change"]))
    grown = [row for own in growth.values() for row in own]
    return (
        "For the linear layers that is gradient descent at the step that is best on clean tasks, which knows nothing "
        f"of the noise: equivalent within ±1 % on the same contexts, {equivalent_counts(clean)} corruptions (to "
        f"gradient descent at the tuned step, {equivalent_counts(tuned)}); the furthest is {furthest['contrast']}, "
        f"{in_percent(furthest)}. The ratio to gradient descent's loss does not grow with the noise in lsa1: against "
        f"the same ratio on clean contexts it is equivalent, {equivalent_counts(growth)} ({widest(grown)}).",
        all(all_equivalent(clean[model]) for model in LINEAR) and all_equivalent(growth["lsa1"]),
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
    """Trained on the noise: the step moves to the tuned one, and the loss to its."""
    found = {model: contrasts_of(rows, "noise in training", f"{model}: ", "/ gd_tuned_step") for model in MODELS}
    moved, best = (
        {model: contrasts_of(rows, "the step a model takes", f"{model}: ", word) for model in MODELS}
        for word in ("against trained clean", "against the tuned step")
    )
    gained = [row for row in contrasts_of(rows, "noise in training", ", tested on it") if "/" not in row["contrast"]]
    gained = [row for row in gained if row["verdict"] == "lower"]
    shorter = [row for own in moved.values() for row in own if row["verdict"] == "lower"]
    most = rows["the step a model takes", f"lsa1: {NOISE[1]} {RATES[-1]:g}, against trained clean"]
    return (
        "**Training on noise** shortens the step that a model takes, in steps of gradient descent, shown after Holm's "
        f"correction in {len(shorter)} of {sum(map(len, moved.values()))} contrasts (half the pairs random: lsa1 "
        f"{in_percent(most)}). It moves to near the step tuned to that corruption: over it by {_span(best['lsa1'])} "
        f"for lsa1, {_span(best['lsa1_pe'])} for lsa1_pe and {_span(best['twolayer'])} for twolayer (means by "
        f"corruption; shown to be within 1 %: {equivalent_counts(best)}). The loss is then gradient descent's at the "
        f"tuned step within 1 %: {equivalent_counts(found)}. It is shown to pay, on the noise trained on, in "
        f"{len(gained)} contrasts: {_named(gained)}.",
        len(shorter) >= 12 and all_equivalent(found["lsa1"]) and len(gained) > 0,
    )


def _span(rows: Sequence[Row]) -> str:
    changes = [100 * row["change"] for row in rows]
    return f"{min(changes):+.1f} to {max(changes):+.1f} %"


def noise_training_cost(rows: Rows, table: pd.DataFrame) -> tuple[str, bool]:
    """Trained on the noise, tested clean."""
    found = contrasts_of(rows, "noise in training", ", tested clean")
    shown = [row for row in found if row["verdict"] == "higher"]
    return (
        f"On clean contexts training on noise is shown to cost in {len(shown)} of {len(found)} contrasts: "
        f"{_named(shown)}.",
        len(shown) > 0 and not any(row["verdict"] == "lower" for row in found),
    )


def _named(rows: Sequence[Row]) -> str:
    return "; ".join(f"{row['contrast'].partition(',')[0]} {in_percent(row)}" for row in rows)


def order_times_noise(rows: Rows, table: pd.DataFrame) -> tuple[str, bool]:
    """Order under label noise."""
    own = [row for model in MODELS[1:] for row in contrasts_of(rows, "order x noise", f"{model}: ")]
    interactions = [row for row in own if "effect without" in row["contrast"]]
    orders = [row for row in own if row not in interactions]
    shown = [row for row in own if row["verdict"] in SHOWN]
    return (
        f"**Order under label noise** (p = {RATE:g}, trained clean) does what it does without: all {len(interactions)} "
        f"ratios of the two effects in lsa1_pe and twolayer are equivalent to 1 ({widest(interactions)}). The "
        f"{len(orders)} orders themselves, oracle placements by residual among them, change the loss by less than 1 % "
        f"({widest(orders)}); differences shown after Holm's correction: {listed(shown) if shown else 'none'}.",
        all_equivalent(interactions) and all_equivalent(orders),
    )
