"""Whether chains mixed, on series that are built: trend, R-hat, effective sample size, divergence, and no movement."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from icl_lab.analysis.llc.mixing import divergence, is_still, mixing, trend

RNG = np.random.default_rng(0)


def test_a_divergence_names_its_first_chain_and_draw() -> None:
    excess = np.ones((8, 440))
    assert divergence(excess) == ""
    excess[5, 30:], excess[2, 17:], excess[6, 17:] = np.nan, np.inf, np.nan
    assert divergence(excess) == "chain 2 diverged at draw 17, as eps is too large for these nbeta and gamma"


def test_trend_is_a_t_of_quarters() -> None:
    """Against SciPy's one-sample t over chains."""
    excess = RNG.standard_normal((8, 400)) + np.linspace(0, 0.3, 400)
    change = excess[:, 300:].mean(1) - excess[:, :100].mean(1)
    assert trend(excess) == pytest.approx(stats.ttest_1samp(change, 0.0).statistic)
    late = excess[:, 300:].mean(1) - excess[:, 200:300].mean(1)
    assert trend(excess, since=-2) == pytest.approx(stats.ttest_1samp(late, 0.0).statistic)
    assert math.isnan(trend(np.ones((8, 400))))  # nothing changes
    assert trend(np.tile(np.arange(400.0), (8, 1))) == math.inf  # all change alike


@given(st.floats(0.01, 100), st.floats(-10, 10))
def test_trend_has_no_unit(scale: float, shift: float) -> None:
    excess = np.random.default_rng(1).standard_normal((6, 80))
    assert trend(scale * excess + shift) == pytest.approx(trend(excess), rel=1e-6)


def test_mixing_of_known_series() -> None:
    independent = RNG.standard_normal((8, 1000))
    still = mixing(independent)
    assert still["r_hat"] == pytest.approx(1.0, abs=0.01)
    assert still["ess"] == pytest.approx(8000, rel=0.1)
    slow = np.zeros((8, 1000))
    for t in range(1, 1000):
        slow[:, t] = 0.9 * slow[:, t - 1] + RNG.standard_normal(8)
    assert mixing(slow)["ess"] == pytest.approx(8000 * 0.1 / 1.9, rel=0.3)  # n (1 - rho) / (1 + rho)
    assert mixing(independent + 3 * np.arange(8)[:, None])["r_hat"] > 2
    drifting = independent + np.linspace(0, 6, 1000)  # split R-hat sees what whole chains hide
    assert mixing(drifting)["r_hat"] > 1.2


def test_chains_of_another_width_have_not_mixed() -> None:
    """Their means agree: R-hat of the distances from the median sees it (Vehtari et al. 2021, Section 3)."""
    values = RNG.standard_normal((8, 1000))
    values[:4] *= 4
    assert mixing(values)["r_hat"] > 1.2


@given(st.integers(0, 2**16))
def test_mixing_is_of_ranks(seed: int) -> None:
    """A heavy tail changes nothing of the effective sample size, nor another unit R-hat."""
    values = np.random.default_rng(seed).standard_normal((4, 50))
    plain, stretched = mixing(values), mixing(np.exp(3 * values))
    assert stretched["ess"] == pytest.approx(plain["ess"], rel=1e-9)
    assert mixing(-2 * values)["r_hat"] == pytest.approx(plain["r_hat"], rel=1e-9)  # exact, so that ties stay ties


def test_mixing_of_nothing_is_not_a_number() -> None:
    for values in (np.ones((8, 40)), np.ones((8, 3)), np.full((8, 40), np.nan)):
        assert all(np.isnan(value) for value in mixing(values).values())


def test_draws_that_differ_by_rounding_have_not_moved() -> None:
    """A millionth of the losses' size, as far as float32 can tell."""
    noise = np.random.default_rng(0).uniform(-1, 1, (4, 44))
    assert is_still(1.05 + 4e-7 * noise)
    assert not is_still(1.05 + 4e-6 * noise)
    assert not is_still(np.full((4, 44), np.nan))
