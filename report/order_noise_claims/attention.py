"""Whether attention tells noisy pairs from clean ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from report.order_noise_claims.words import Rows, contrasts_of

if TYPE_CHECKING:
    import pandas as pd

NO_SEPARATION = 0.02  # of AUROC


def attention(rows: Rows, table: pd.DataFrame) -> tuple[str, bool]:
    """Against gradient descent's own."""
    found = contrasts_of(rows, "attention and noise")
    own, descent = ([row[side] for row in found] for side in ("treated", "control"))
    differing = [row for row in found if row["verdict"] != "no difference shown"]
    largest = max(found, key=lambda row: abs(row["difference"]))
    return (
        "**Attention.** Within positions, |influence| tells noisy pairs from clean ones with an AUROC of "
        f"{min(own):.3f} to {max(own):.3f} over models, corruptions and training; gradient descent's own is "
        f"{min(descent):.3f} to {max(descent):.3f}. {len(differing)} of {len(found)} contrasts differ from gradient "
        f"descent after Holm's correction, none by more than {abs(largest['difference']):.3f} ({largest['contrast']}).",
        all(abs(row["difference"]) <= abs(largest["difference"]) for row in differing),
    )


def position_artefact(rows: Rows, table: pd.DataFrame) -> tuple[str, bool]:
    """Raw against matched, trained and tested with the noisy pairs in place."""
    chosen = (table["train_noise_mode"] == "label_noise") & (table["train_placement"] != "mixed")
    chosen &= (table["train_placement"] == table["eval_placement"]) & (table["model"] == "twolayer")
    means = table[chosen].groupby("train_placement")[["auroc_raw", "auroc", "gd_auroc"]].mean()
    words = "; ".join(
        f"{name} raw {row['auroc_raw']:.3f}, within positions {row['auroc']:.3f}, gradient descent "
        f"{row['gd_auroc']:.3f}"
        for name, row in means.iterrows()
    )
    return (
        f"A raw AUROC tells where pairs stand: twolayer trained and tested with label noise in one place, {words}.",
        len(means) == 2 and all(abs(means["auroc_raw"] - 0.5) > abs(means["auroc"] - means["gd_auroc"])),
    )


def unsupported_attention(rows: Rows, table: pd.DataFrame) -> tuple[str, bool]:
    """No separation to speak of."""
    largest = max(abs(row["difference"]) for row in contrasts_of(rows, "attention and noise"))
    return (
        "That attention finds noisy pairs: what is left once position is accounted for is gradient descent's own to "
        f"within {largest:.3f} of AUROC.",
        largest < NO_SEPARATION,
    )
