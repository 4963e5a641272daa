"""Shares of runs that trained, by model: which trainings are counted, against SciPy and a table made by hand."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from icl_lab.studies.order_noise.plateaus import plateaus


def cells(model: str, verdicts: list[str], **settings: object) -> pd.DataFrame:
    """The rows of a model's trainings, a seed each."""
    row = {"train_ordering": "random", "train_noise_mode": "clean", "train_p": 0.0, "train_placement": "mixed"}
    row |= {"train_difficulty": "gd_error", "model": model}
    row |= {"eval_ordering": "easy2hard"}
    return pd.DataFrame([row | settings | {"seed": seed, "trained": trained} for seed, trained in enumerate(verdicts)])


STUCK, LEARNT = "false", "true"


def test_shares_and_the_exact_test() -> None:
    """19 of 20 against 11 of 20 and 20 of 20: Clopper-Pearson's interval and Fisher's p, times Holm's factors."""
    table = pd.concat(
        [
            cells("one", [LEARNT] * 19 + [STUCK]),
            cells("two", [LEARNT] * 11 + [STUCK] * 9),
            cells("three", [LEARNT] * 20),
        ]
    )
    rows = {row["model"]: row for row in plateaus(table)}
    assert [(row["trained"], row["trainings"]) for row in rows.values()] == [(19, 20), (11, 20), (20, 20)]
    interval = stats.binomtest(11, 20).proportion_ci(0.9, "exact")
    assert (rows["two"]["share_low"], rows["two"]["share_high"]) == pytest.approx((interval.low, interval.high))
    p = {
        pair: stats.fisher_exact([[a, 20 - a], [b, 20 - b]]).pvalue
        for pair, (a, b) in {"one two": (19, 11), "one three": (19, 20), "two three": (11, 20)}.items()
    }
    assert p["two three"] < p["one two"] < p["one three"]
    assert rows["three"]["p_two"] == rows["two"]["p_three"] == pytest.approx(3 * p["two three"])
    assert rows["one"]["p_two"] == pytest.approx(2 * p["one two"])
    assert rows["one"]["p_three"] == pytest.approx(p["one three"])
    assert rows["one"]["p_one"] is None


def test_a_training_counts_once() -> None:
    """In however many contexts it is tested; and placement is none of a clean training's settings."""
    once = cells("one", [LEARNT, STUCK])
    again = [once.assign(train_placement="clean_first"), once.assign(train_p=0.25), once]
    noisy = cells("one", [LEARNT, LEARNT], train_noise_mode="label_noise", train_p=0.25)
    (row,) = plateaus(pd.concat([once, *again, noisy, noisy.assign(train_placement="noisy_first")]))
    assert (row["trainings"], row["trained"]) == (6, 5)
    assert np.isclose(row["share"], 5 / 6)
