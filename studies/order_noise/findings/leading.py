"""The five findings that the page begins with: a sentence or two each, with a number and its interval."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icl_lab.src.config import PLACEMENTS
from icl_lab.studies.order_noise.findings.wording import (
    Rows,
    all_equivalent,
    auroc,
    contrasts_of,
    in_percent,
    is_equivalent,
    largest_end,
)
from icl_lab.studies.order_noise.measures import BY_SCORE, SCORES
from icl_lab.studies.order_noise.runs import MODELS, NOISE, RATE, RATES

if TYPE_CHECKING:
    import pandas as pd

LINEAR, CODED = MODELS[:2], MODELS[1:]


def learns_the_order(rows: Rows, table: pd.DataFrame) -> tuple[str, bool]:
    """Trained in an order, tested in it and in random order."""
    same, random = (
        rows["order in training", f"twolayer: trained easy2hard, tested {tested}"] for tested in ("easy2hard", "random")
    )
    return (
        f"Trained with easy pairs first, twolayer's loss changes by {in_percent(same)} in that order and by "
        f"{in_percent(random)} in random order.",
        same["reading_says"] == "lower" and random["reading_says"] == "higher",
    )


def order_alone(rows: Rows, table: pd.DataFrame) -> tuple[str, bool]:
    """Orders and placements at evaluation alone."""
    contrasts = [
        row
        for model in CODED
        for row in (
            *contrasts_of(rows, "order at evaluation", f"{model}: "),
            *contrasts_of(rows, "placement", f"{model}: ", "at evaluation"),
        )
    ]
    return (
        "Trained in random order, no model's loss changes by 1 % in another order or placement: lsa1's not at all, "
        f"those of lsa1_pe and twolayer by at most {largest_end(contrasts)} in {len(contrasts)} contrasts "
        "(90 % intervals).",
        all_equivalent(contrasts),
    )


def noise_like_descent(rows: Rows, table: pd.DataFrame) -> tuple[str, bool]:
    """Trained clean, tested on noise, against one step that is best on clean tasks."""
    linear, two = (
        [
            row
            for model in models
            for row in contrasts_of(rows, "noise at evaluation", f"{model}: ", "/ gd_clean_step")
            if "against" not in row["contrast"]
        ]
        for models in (LINEAR, MODELS[2:])
    )
    same, worst = sum(map(is_equivalent, linear)), max(two, key=lambda row: row["change"])
    return (
        "Trained clean and tested on noise, the linear models match one GD step tuned on clean contexts within 1 % in "
        f"{same} of {len(linear)} conditions, twolayer in {sum(map(is_equivalent, two))} of {len(two)}; its loss "
        f"differs most by {in_percent(worst)}.",
        all_equivalent(linear) and worst["change"] < 0.02,
    )


def shorter_steps(rows: Rows, table: pd.DataFrame) -> tuple[str, bool]:
    """Trained on noise, the step shrinks."""
    contrasts = [
        row for model in MODELS for row in contrasts_of(rows, "the step a model takes", f"{model}: ", "trained clean")
    ]
    shorter = [row for row in contrasts if row["reading_says"] == "lower"]
    most = rows["the step a model takes", f"lsa1: {NOISE[1]} {RATES[-1]:g}, against trained clean"]
    return (
        f"Trained on noise, models take smaller steps, in {len(shorter)} of {len(contrasts)} contrasts after Holm's "
        f"correction: with half the pairs random, lsa1's step size changes by {in_percent(most)}.",
        len(shorter) >= 12 and most["reading_says"] == "lower",
    )


def no_detection(rows: Rows, table: pd.DataFrame) -> tuple[str, bool]:
    """AUROC of the scores against gradient descent's own."""
    contrasts = [row for score in SCORES for row in contrasts_of(rows, BY_SCORE[score])]
    reached = ""
    noisy = table[
        (table["eval_noise_mode"] == NOISE[1]) & (table["eval_p"] == RATE) & (table["eval_placement"] == PLACEMENTS[0])
    ]
    if noisy["loo_gd_auroc"].notna().any():
        best, one_out = (auroc(noisy, name) for name in ("mask_bayes_auroc", "loo_gd_auroc"))
        reached = (
            f" Of random pairs at p = .25, mixed, the posterior over masks reaches {best}, the leave-one-out error "
            f"{one_out}."
        )
    return (
        "Attention, contribution and influence detect corrupted pairs no better than gradient descent's own scores: "
        f"AUROC differs by at most {largest_end(contrasts)} in {len(contrasts)} contrasts (90 % intervals).{reached}",
        all_equivalent(contrasts),
    )
