"""What the order of the pairs does, at evaluation and in training."""

from __future__ import annotations

from typing import TYPE_CHECKING

from report.contrasts import EXACT
from report.order_noise_claims.words import Rows, all_equivalent, contrasts_of, in_percent, listed, loss_ratios, widest
from report.study import MODELS, SORTED

if TYPE_CHECKING:
    import pandas as pd

PLATEAU = 1.5  # times gradient descent's loss: a model that has not begun to learn is at 2
CLEAN_LSA1, CLEAN_TWOLAYER = 1.01, 1.08  # the loss over gradient descent's that a clean run may have at most


def sanity(rows: Rows, table: pd.DataFrame) -> tuple[str, bool]:
    """Clean runs reach gradient descent."""
    one, codes, two = (loss_ratios(table, model, "random", "random") for model in MODELS)
    return (
        "Trained and tested clean in random order, the loss over gradient descent's on the same tasks is "
        f"{one.min():.4f} to {one.max():.4f} for lsa1, {codes.min():.4f} to {codes.max():.4f} for lsa1_pe and "
        f"{two.min():.4f} to {two.max():.4f} for twolayer, over {len(one)} seeds each.",
        bool(one.max() <= CLEAN_LSA1 and two.max() <= CLEAN_TWOLAYER and codes.max() <= CLEAN_TWOLAYER),
    )


def order_lsa1(rows: Rows, table: pd.DataFrame) -> tuple[str, bool]:
    """No effect at all."""
    exact = [row for row in rows.values() if row["kind"] == "exact"]
    largest = max(row["largest_change"] for row in exact)
    return (
        f"**lsa1: exactly none.** In {len(exact)} contrasts of order and placement, clean and noisy, the largest "
        f"change of any seed's loss is {largest:g} of it, at the table's seven digits. Without codes a linear layer "
        "sums over the pairs.",
        largest <= EXACT,
    )


def order_lsa1_pe(rows: Rows, table: pd.DataFrame) -> tuple[str, bool]:
    """Equivalence."""
    found = contrasts_of(rows, "order at evaluation", "lsa1_pe: ")
    return (
        f"**lsa1_pe: none beyond ±1 %.** All {len(found)} orders are equivalent to random order (90 % intervals within "
        f"±{widest(found):.2f} %). Its optimum is gradient descent for every order, so what is left measures how far "
        "training stopped from the optimum.",
        len(found) == len(SORTED) and all_equivalent(found),
    )


def order_twolayer(rows: Rows, table: pd.DataFrame) -> tuple[str, bool]:
    """Measured."""
    found = contrasts_of(rows, "order at evaluation", "twolayer: ")
    return f"**twolayer, measured:** {listed(found)}.", len(found) == len(SORTED)


def curriculum_linear(rows: Rows, table: pd.DataFrame) -> tuple[str, bool]:
    """Equivalence."""
    found = [row for model in ("lsa1: ", "lsa1_pe: ") for row in contrasts_of(rows, "order in training", model)]
    return (
        f"**A curriculum in training does nothing to the linear layers**: in all {len(found)} contrasts lsa1 and "
        "lsa1_pe trained in another order are equivalent to themselves trained in random order, tested in either "
        f"(90 % intervals within ±{widest(found):.2f} %).",
        len(found) == 4 * len(SORTED) and all_equivalent(found),
    )


def curriculum_twolayer(rows: Rows, table: pd.DataFrame) -> tuple[str, bool]:
    """It learns the order: better in it than gradient descent, worse than before in random order."""
    same = [rows["order in training", f"twolayer: trained {o}, tested {o}"] for o in SORTED]
    random = [rows["order in training", f"twolayer: trained {o}, tested random"] for o in SORTED]
    shown = [row for row in (*same, *random) if "hard2easy" not in row["contrast"]]
    easy = loss_ratios(table, "twolayer", "easy2hard", "easy2hard")
    return (
        f"**twolayer learns the order it is trained in.** Tested in the same order: {listed(same)}. Tested in random "
        f"order: {listed(random)}. Trained and tested in easy2hard it ends below gradient descent, at {easy.min():.3f} "
        f"to {easy.max():.3f} of its loss: the position says which pairs a step from the others finds easy, and codes "
        "let it be used.",
        easy.max() < 1 and {row["verdict"] for row in shown} == {"lower", "higher"} and same[1]["verdict"] == "lower",
    )


def plateau(rows: Rows, table: pd.DataFrame) -> tuple[str, bool]:
    """Trainings that had not begun to learn."""
    stuck = table[table["loss_ratio"] > PLATEAU]
    stuck = stuck[(stuck["train_ordering"] == stuck["eval_ordering"]) & (stuck["train_noise_mode"] == "clean")]
    hard = loss_ratios(table, "twolayer", "hard2easy", "hard2easy")
    left = hard[hard < PLATEAU]
    return (
        f"{len(hard) - len(left)} of {len(hard)} twolayer trainings in hard2easy order is still on the plateau after "
        f"5000 steps, which is what makes its intervals wide; the others end at {left.min():.3f} to "
        f"{left.max():.3f} of gradient descent's loss, tested in that order. No other training on clean contexts is.",
        len(hard) - len(left) == 1 and set(stuck["train_ordering"]) == {"hard2easy"} and left.max() < 1,
    )


def unsupported_curriculum(rows: Rows, table: pd.DataFrame) -> tuple[str, bool]:
    """No order in training helps on random order."""
    found = [row for model in MODELS for row in contrasts_of(rows, "order in training", f"{model}: ", "tested random")]
    best = min(found, key=lambda row: row["change"])
    return (
        "That a curriculum in training makes a better in-context learner: tested in random order, no model trained in "
        f"another order beats itself trained in random order in any of {len(found)} contrasts (the best is "
        f"{best['contrast']}, {in_percent(best)}).",
        all(row["verdict"] != "lower" and row["change_high"] >= 0 for row in found),
    )
