"""What the order of the pairs does, at evaluation and in training."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icl_lab.lab.configs.columns import has_trained
from icl_lab.studies.contrast import EXACT
from icl_lab.studies.order_noise.findings.wording import (
    SHOWN,
    Rows,
    all_equivalent,
    contrasts_of,
    in_percent,
    loss_ratios,
    none_lower,
    span,
    widest,
)
from icl_lab.studies.order_noise.runs import MODELS, SORTED

if TYPE_CHECKING:
    import pandas as pd

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
        f"**Effect of order on lsa1: exactly none.** In {len(exact)} contrasts of order and placement at evaluation, "
        f"clean and noisy, the largest change of any seed's loss is {largest:g}, at seven digits. Without positional "
        "encodings a linear layer sums over the pairs.",
        largest <= EXACT,
    )


def order_lsa1_pe(rows: Rows, table: pd.DataFrame) -> tuple[str, bool]:
    """Equivalence."""
    contrasts = contrasts_of(rows, "order at evaluation", "lsa1_pe: ")
    return (
        f"**Effect of order on lsa1_pe: none beyond ±1 %.** All {len(contrasts)} orders are equivalent to random order "
        f"({widest(contrasts)}). Its optimum is gradient descent for every order, so an effect of order is a distance "
        "from the optimum.",
        len(contrasts) == len(SORTED) and all_equivalent(contrasts),
    )


def order_twolayer(rows: Rows, table: pd.DataFrame) -> tuple[str, bool]:
    """Small, whether or not it is significant after Holm's correction."""
    contrasts = contrasts_of(rows, "order at evaluation", "twolayer: ")
    shown = [row for row in contrasts if row["reading_says"] in SHOWN]
    return (
        f"**Effect of order on twolayer: within ±1 %** ({widest(contrasts)}). Of {len(contrasts)} differences "
        f"{len(shown)} are significant after Holm's correction.",
        len(contrasts) == len(SORTED) and all_equivalent(contrasts),
    )


def curriculum_linear(rows: Rows, table: pd.DataFrame) -> tuple[str, bool]:
    """Equivalence."""
    contrasts = [row for model in ("lsa1: ", "lsa1_pe: ") for row in contrasts_of(rows, "order in training", model)]
    return (
        "**A curriculum in training leaves the linear layers where they are.** lsa1 and lsa1_pe trained in another "
        f"order are equivalent to themselves trained in random order, in all {len(contrasts)} contrasts "
        f"({widest(contrasts)}).",
        len(contrasts) == 4 * len(SORTED) and all_equivalent(contrasts),
    )


def curriculum_twolayer(rows: Rows, table: pd.DataFrame) -> tuple[str, bool]:
    """It learns the order: better in it than gradient descent, worse than before in random order."""
    same = [rows["order in training", f"twolayer: trained {o}, tested {o}"] for o in SORTED]
    random = [rows["order in training", f"twolayer: trained {o}, tested random"] for o in SORTED]
    easy = loss_ratios(table, "twolayer", "easy2hard", "easy2hard")
    easy_same, easy_random = same[SORTED.index("easy2hard")], random[SORTED.index("easy2hard")]
    return (
        f"**twolayer learns the order it is trained in.** Tested in it the loss changes by {span(same)}, in random "
        f"order by {span(random)}. Trained and tested in easy2hard it ends at "
        f"{easy.min():.3f} to {easy.max():.3f} of gradient descent's.",
        easy.max() < 1 and easy_same["reading_says"] == "lower" and easy_random["reading_says"] == "higher",
    )


def plateau(rows: Rows, table: pd.DataFrame) -> tuple[str, bool]:
    """Runs that have not trained, of all; each once."""
    trainings, stuck = _trainings(table)
    counts = ", ".join(
        f"{model} {sum(stuck['model'] == model)} of {sum(trainings['model'] == model)}" for model in MODELS
    )
    clean = (trainings["train_ordering"] == "random") & (trainings["train_noise_mode"] == "clean")
    return (
        f"**Training.** {len(stuck)} of {len(trainings)} runs have not trained after 5000 steps: "
        f"{counts}. None is of the {sum(clean)} trained clean in random order.",
        0 < len(stuck) < 0.1 * len(trainings) and not set(stuck.index) & set(trainings[clean].index),
    )


def stuck_in_words(table: pd.DataFrame) -> str:
    """The runs that have not trained, each with its model, seed, order and noise."""
    return "; ".join(
        f"{row['model']} seed {row['seed']:.0f}, {_trained(row)}" for _, row in _trainings(table)[1].iterrows()
    )


def _trainings(table: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """All trainings, each once, and those of them that have not trained."""
    placed = table["train_placement"].where(table["train_noise_mode"] != "clean", "mixed")
    settings = ["model", "seed", *(f"train_{name}" for name in ("ordering", "noise_mode", "p", "placement"))]
    trainings = table.assign(train_placement=placed).drop_duplicates(settings)
    return trainings, trainings[~has_trained(table)[trainings.index]]


def _trained(row: pd.Series) -> str:
    noise = f"{row['train_noise_mode']} {row['train_p']:g}" if row["train_noise_mode"] != "clean" else "clean"
    placement = f", {row['train_placement']}" if row["train_placement"] != "mixed" else ""
    return f"{row['train_ordering']}, {noise}{placement}"


def unsupported_curriculum(rows: Rows, table: pd.DataFrame) -> tuple[str, bool]:
    """No order in training helps on random order."""
    contrasts = [
        row for model in MODELS for row in contrasts_of(rows, "order in training", f"{model}: ", "tested random")
    ]
    best = min(contrasts, key=lambda row: row["change"])
    return (
        f"That a curriculum in training makes a better in-context learner: none of {len(contrasts)} contrasts shows a "
        "lower loss in random order than after training in random order. The best is "
        f"{best['contrast']}, {in_percent(best)}, {best['reading_says']}.",
        none_lower(contrasts),
    )
