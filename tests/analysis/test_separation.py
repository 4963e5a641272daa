"""AUROC within positions, against scikit-learn and closed forms."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from icl_lab.analysis.separation import matched_auroc, pair_counts, position_auroc, raw_auroc, separation


def draws(seed, contexts=400, pairs=5, p=0.3):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(contexts, pairs)), rng.random((contexts, pairs)) < p


@given(st.lists(st.tuples(st.integers(0, 4), st.booleans(), st.integers(0, 3)), min_size=2, max_size=12))
def test_weighted_counts_are_those_of_repeated_contexts(rows):
    """A weight is a number of copies; the count itself is compared pair by pair. Ties count half."""
    scores, hit, weights = (np.array(column) for column in zip(*rows, strict=True))
    clean = np.repeat(scores[~hit], weights[~hit])
    noisy = np.repeat(scores[hit], weights[hit])
    expected = sum((a > b) + 0.5 * (a == b) for a in clean for b in noisy)
    count, total = pair_counts(scores.astype(float), hit, weights[:, None].astype(float))
    assert count[0] == pytest.approx(expected)
    assert total[0] == len(clean) * len(noisy)


def test_one_position_is_scikit_learns_auroc():
    scores, hit = draws(0, pairs=1)
    scores = scores - 0.7 * hit
    found = matched_auroc(scores, hit, np.ones((400, 1)))[0]
    assert found == pytest.approx(roc_auc_score(~hit.ravel(), scores.ravel()), abs=1e-12)
    assert raw_auroc(scores, hit) == pytest.approx(found, abs=1e-12)


def test_positions_weigh_by_their_pairs():
    scores, hit = draws(1)
    scores = scores - np.arange(5) * hit
    parts = [roc_auc_score(~hit[:, j], scores[:, j]) for j in range(5)]
    weights = [hit[:, j].sum() * (~hit[:, j]).sum() for j in range(5)]
    expected = np.average(parts, weights=weights)
    assert matched_auroc(scores, hit, np.ones((400, 1)))[0] == pytest.approx(expected, abs=1e-12)


def test_a_score_that_knows_the_position_alone_is_unmasked():
    """Noisy pairs stand last and the score falls with position: that is seen raw and by position, not matched."""
    rng = np.random.default_rng(2)
    hit = rng.random((2000, 5)) < np.linspace(0.05, 0.95, 5)
    scores = rng.normal(size=hit.shape) - 2 * np.arange(5)
    numbers = separation(scores, hit, scores, seed=0)
    low, high = numbers["auroc_interval"]
    assert low < 0.5 < high
    assert numbers["auroc_raw"] > 0.8
    assert numbers["auroc_position"] > 0.8
    assert numbers["twin_change_noisy"] == numbers["twin_change_clean"] == 0


def test_the_position_control_uses_other_contexts():
    """On pure noise, means over the same contexts would already separate; over others they do not."""
    scores, hit = draws(3, contexts=40, pairs=40, p=0.5)
    assert position_auroc(scores, hit) == pytest.approx(0.5, abs=0.06)  # 800 pairs: standard error .02


def test_perfect_separation_and_the_change_against_the_twin():
    twin, hit = draws(4)
    numbers = separation(np.where(hit, twin - 100, twin), hit, twin, seed=0)
    assert numbers["auroc"] == 1
    assert numbers["twin_change_noisy"] == pytest.approx(-100)
    assert numbers["twin_change_clean"] == 0
    assert numbers["clean_mean"] == pytest.approx(twin[~hit].mean())


@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_without_both_kinds_there_is_no_auroc(rate):
    scores, hit = draws(5, p=rate)
    numbers = separation(scores, hit, scores, seed=0)
    assert np.isnan(
        [numbers["auroc"], numbers["auroc_raw"], numbers["auroc_position"], *numbers["auroc_interval"]]
    ).all()


def test_the_interval_covers_the_truth_about_as_often_as_it_says():
    """Normal scores shifted by d have AUROC Phi(d / sqrt 2); 95 % intervals over 60 draws miss at most 9 times."""
    from scipy.stats import binom, norm

    truth, missed = norm.cdf(0.5 / np.sqrt(2)), 0
    for seed in range(60):
        scores, hit = draws(seed, contexts=200)
        low, high = separation(scores - 0.5 * hit, hit, scores, seed)["auroc_interval"]
        missed += not low < truth < high
    assert missed <= binom.ppf(0.999, 60, 0.05)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_scores_that_are_not_finite_separate_nothing(bad):
    scores, hit = draws(4)
    scores[7, 2] = bad
    found = separation(scores, hit, scores, 0)
    assert np.isnan([found["auroc"], found["auroc_raw"], *found["auroc_interval"]]).all()
    assert np.isnan(position_auroc(scores[::-1], hit[::-1]))
