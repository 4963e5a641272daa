"""Whether attention tells noisy pairs from clean ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icl_lab.studies.order_noise.findings.wording import (
    SHOWN,
    Rows,
    all_equivalent,
    contrasts_of,
    in_percent,
    largest_end,
    short,
    widest,
)
from icl_lab.studies.order_noise.measures import BY_SCORE, COPYING, SCORES

if TYPE_CHECKING:
    import pandas as pd

LARGE = 0.02  # of AUROC: a difference that would need an explanation


def attention(rows: Rows, table: pd.DataFrame) -> tuple[str, bool]:
    """Each score against gradient descent's own."""
    contrasts = {score: contrasts_of(rows, BY_SCORE[score]) for score in SCORES}
    words = ", ".join(f"|{score}| within ±{largest_end(group)}" for score, group in contrasts.items())
    return (
        "**Attention.** Within positions, no score of a layer that does gradient descent separates noisy from clean "
        f"pairs better or worse than gradient descent's own; differences of AUROC: {words} (90 % intervals).",
        all(all_equivalent(group) for group in contrasts.values()),
    )


def copying_layer(rows: Rows, table: pd.DataFrame) -> tuple[str, bool]:
    """What is different in the layer below."""
    contrasts = contrasts_of(rows, COPYING)
    shown = [row for row in contrasts if row["reading_says"] in SHOWN]
    words = "; ".join(f"{short(row)} {in_percent(row)}" for row in shown)
    return (
        f"|contribution| of twolayer's copying layer differs from gradient descent's in {len(shown)} of "
        f"{len(contrasts)} contrasts after Holm's correction{f': {words}' if words else ''}. All are within "
        f"{max(abs(row['difference']) for row in contrasts):.3f} of it; what that layer's query row looks at is not "
        "interpreted.",
        max(max(abs(row["low"]), abs(row["high"])) for row in contrasts) < LARGE,
    )


def attention_after_training(rows: Rows, table: pd.DataFrame) -> tuple[str, bool]:
    """Trained on the noise against trained clean."""
    contrasts = contrasts_of(rows, "attention after training on noise")
    return (
        "**Training on noise does not change that**: the AUROC of |influence| and |contribution| trained on the noise "
        f"is equivalent to that trained clean, in all {len(contrasts)} contrasts ({widest(contrasts)}).",
        all_equivalent(contrasts),
    )


def position_artefact(rows: Rows, table: pd.DataFrame) -> tuple[str, bool]:
    """Raw against within positions."""
    question = "attention and placement"
    raw = contrasts_of(rows, question, "twolayer: ", ", raw")
    matched = contrasts_of(rows, question, ", within positions")
    shown = [row for row in raw if row["reading_says"] in SHOWN]
    return (
        "**A raw AUROC is confounded by position.** Over all pairs, that of twolayer's |influence| trained under label "
        f"noise in one place is up to {max((abs(row['difference']) for row in shown), default=0):.3f} from gradient "
        f"descent's. Within positions all {len(matched)} contrasts are equivalent ({widest(matched)}).",
        len(shown) > 0 and all_equivalent(matched),
    )


def unsupported_attention(rows: Rows, table: pd.DataFrame) -> tuple[str, bool]:
    """No separation beyond gradient descent's."""
    contrasts = [row for score in SCORES for row in contrasts_of(rows, BY_SCORE[score])]
    return (
        "That attention detects noisy pairs: within positions, its scores are as informative as gradient descent's own "
        f"({widest(contrasts)} of AUROC).",
        all_equivalent(contrasts),
    )
