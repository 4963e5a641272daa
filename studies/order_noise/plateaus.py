"""How many runs of each model train, and whether models differ in that: an outcome of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from icl_lab.families.regression.outputs import ALIGNED
from icl_lab.lab.configs.columns import has_trained
from icl_lab.src import intervals, statistics
from icl_lab.studies.contrast import by_name, context_of, results
from icl_lab.studies.order_noise.measures import CONTRASTS

if TYPE_CHECKING:
    import pandas as pd

PLATEAUS = "plateaus.csv"


def plateaus(table: pd.DataFrame) -> list[dict[str, Any]]:
    """A row for each model: trainings, those that trained, their share with a 90 % Clopper-Pearson interval.

    And for each other model p of Fisher's exact test of the two shares, Holm-corrected over the pairs of models. A
    training counts once, in whatever contexts it is tested. Trainings of one seed share tasks and initial weights; the
    test takes them as independent.
    """
    counts = {
        model: (int(outcomes.sum()), len(outcomes))
        for model, outcomes in trained_of(table, has_trained(table)).groupby(level="model", sort=False)
    }
    p_values = _fisher(counts)
    rows = []
    for model, (left, trainings) in counts.items():
        share = intervals.clopper_pearson(left, trainings)
        row = {"model": model, "trainings": trainings, "trained": left}
        row |= {"share": share.estimate, "share_low": share.low, "share_high": share.high}
        rows.append(row | {f"p_{other}": p_values.get(frozenset((model, other))) for other in counts})
    return rows


def rejudged(table: pd.DataFrame, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What the gain changes where the cosine alone judged before: how many runs trained, and verdicts of contrasts."""
    by_cosine = table["align_cos"] >= ALIGNED
    before = by_name(results(table, CONTRASTS, by_cosine))
    verdicts = [
        (row["contrast"], before.get((row["question"], row["contrast"]), {}).get("reading_says"), row["reading_says"])
        for row in rows
    ]
    outcomes = {"before": trained_of(table, by_cosine), "now": trained_of(table, has_trained(table))}
    return {name: int(trained.sum()) for name, trained in outcomes.items()} | {
        "runs": len(outcomes["now"]),
        "verdicts": "\n".join(
            f"- {name}: {old or 'not measured'}, now {new}" for name, old, new in verdicts if old != new
        ),
    }


def trained_of(table: pd.DataFrame, verdicts: pd.Series) -> pd.Series:
    """Whether each run trained, by the rows' verdicts, by model, contexts of the training and seed."""
    trained = [context_of(row, "train_") for row in table.to_dict("records")]
    keys = [table["model"], np.array([str(tuple(context)) for context in trained]), table["seed"]]
    return verdicts.groupby(keys, sort=False).first()


def _fisher(counts: dict[str, tuple[int, int]]) -> dict[frozenset[str], float]:
    from scipy.stats import fisher_exact

    pairs = list(combinations(counts, 2))
    tables = [[[left, n - left] for left, n in (counts[one], counts[other])] for one, other in pairs]
    adjusted = statistics.holm(np.array([fisher_exact(table).pvalue for table in tables]))
    return {frozenset(pair): float(p) for pair, p in zip(pairs, adjusted, strict=True)}
