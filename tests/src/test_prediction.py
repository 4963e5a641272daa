"""Prediction intervals: coverage by simulation, closed forms of SciPy, and the power with which a shift is found."""

import math

import numpy as np
import pytest
from scipy import stats

from icl_lab.src import intervals
from icl_lab.src.prediction import prediction_interval, shift_found

STUDIES = 4000
THREE_ERRORS = 3 * math.sqrt(0.9 * 0.1 / STUDIES)


@pytest.mark.parametrize(("m", "n"), [(8, 3), (5, 5), (10, 20)])
def test_it_holds_the_mean_of_further_values_in_90_percent(m: int, n: int) -> None:
    """On the log scale: the geometric mean of lognormal values."""
    logs = np.random.default_rng(1).normal(0.5, 0.8, (STUDIES, m + n))
    holds = []
    for row in logs:
        found = prediction_interval(np.exp(row[:m]), n, "log")
        holds.append(found.low <= np.exp(row[m:].mean()) <= found.high)
    assert np.mean(holds) == pytest.approx(0.9, abs=THREE_ERRORS)


def test_of_many_further_values_it_is_the_interval_of_the_mean() -> None:
    values = np.array([0.91, 0.95, 0.97, 0.9])
    np.testing.assert_allclose(prediction_interval(values, 10**12, "fisher"), intervals.of(values, "fisher"), rtol=1e-6)


def test_of_one_further_value_it_is_the_t_interval_of_a_value() -> None:
    values = np.array([1.0, 2.0, 4.0, 3.0])
    expected = stats.t.interval(0.9, 3, 2.5, values.std(ddof=1) * math.sqrt(1.25))
    np.testing.assert_allclose(prediction_interval(values, 1, "linear")[1:3], expected, rtol=1e-12)


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
def test_a_share_is_held_at_least_nearly_as_often(share: float) -> None:
    """Discrete, so it may cover more; an exact sum over both counts. Jeffreys' prior may fall short by 2 points."""
    m, n = 8, 8
    hits = np.arange(n + 1)
    covered = 0.0
    for k in range(m + 1):
        found = prediction_interval(np.array([1.0] * k + [0.0] * (m - k)), n, "share")
        holds = (found.low - 1e-9 <= hits / n) & (hits / n <= found.high + 1e-9)
        covered += stats.binom.pmf(k, m, share) * stats.binom.pmf(hits, n, share)[holds].sum()
    assert covered >= 0.88


def test_a_share_is_the_beta_binomial_by_its_own_integral() -> None:
    """P(hits) = int C(n, hits) p^(hits + k - 1/2) (1 - p)^(n - hits + m - k - 1/2) dp / B(k + 1/2, m - k + 1/2)."""
    found = prediction_interval(np.array([1.0] * 5 + [0.0] * 3), 6, "share")
    p = (np.arange(200_000) + 0.5) / 200_000
    posterior = stats.beta.pdf(p, 5.5, 3.5)
    cdf = np.cumsum([(stats.binom.pmf(hits, 6, p) * posterior).mean() for hits in range(7)])
    assert found.low * 6 == pytest.approx(int(np.argmax(cdf >= 0.05)))
    assert found.high * 6 == pytest.approx(int(np.argmax(cdf >= 0.95)))


def test_the_shift_is_found_with_80_percent() -> None:
    """For a true deviation of s = .5, by simulating both samples; the shift on the other side is its mirror image."""
    m, n = 8, 3
    values = np.array([-1.0, 1.0] * 4) * 0.5 * math.sqrt(7 / 8)
    below, above = shift_found(values, n, "linear")
    assert below == pytest.approx(-above)
    rng = np.random.default_rng(2)
    old, new = rng.normal(0, 0.5, (STUDIES * 5, m)), rng.normal(above, 0.5, (STUDIES * 5, n))
    half = stats.t.ppf(0.95, m - 1) * old.std(axis=1, ddof=1) * math.sqrt(1 / m + 1 / n)
    found = new.mean(axis=1) - old.mean(axis=1) > half
    assert found.mean() == pytest.approx(0.8, abs=3 * math.sqrt(0.16 / (5 * STUDIES)))


def test_a_shift_is_given_on_the_values_own_scale() -> None:
    logs = np.array([0.1, 0.3, 0.2, 0.25])
    np.testing.assert_allclose(shift_found(np.exp(logs), 3, "log"), np.exp(shift_found(logs, 3, "linear")), rtol=1e-9)


def test_a_shift_of_a_share_is_found_with_80_percent_and_not_where_every_count_is_predicted() -> None:
    values = np.array([1.0] * 6 + [0.0] * 2)
    predicted, (below, above) = prediction_interval(values, 10, "share"), shift_found(values, 10, "share")
    assert stats.binom.cdf(round(predicted.low * 10) - 1, 10, below) == pytest.approx(0.8)
    assert math.isnan(above)  # 10 of 10 hits are predicted
    low = shift_found(1 - values, 10, "share")
    assert (math.isnan(low[0]), low[1]) == (True, pytest.approx(1 - below))


def test_nothing_is_predicted_of_a_value_alone_or_of_what_diverged() -> None:
    for values in (np.array([0.5]), np.array([0.5, math.inf])):
        assert prediction_interval(values, 3, "log")[1:3] == (0.0, math.inf)
        assert np.isnan(shift_found(values, 3, "log")).all()


def test_an_impossible_shift_is_not_given() -> None:
    below, above = shift_found(np.array([0.0, 0.1, 0.02, 0.0]), 3, "fraction")
    assert math.isnan(below)
    assert 0.1 < above < 1
    assert prediction_interval(np.array([0.0, 0.1, 0.02, 0.0]), 3, "fraction").low == 0
