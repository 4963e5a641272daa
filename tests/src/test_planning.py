"""Seeds for a stated power: against SciPy's noncentral t and binomial distributions, and by simulation."""

import math

import numpy as np
import pytest
from scipy import stats

from icl_lab.src import intervals, planning

VALUES = np.array([0.9, 1.0, 1.2, 1.05, 0.95])


def upper_deviation(values: np.ndarray) -> float:
    degrees = len(values) - 1
    return float(values.std(ddof=1) * math.sqrt(degrees / stats.chi2.ppf(0.2, degrees)))


@pytest.mark.parametrize(("low", "high"), [(0.85, math.inf), (-math.inf, 0.9), (1.2, math.inf)])
def test_one_end_is_the_noncentral_t_test(low: float, high: float) -> None:
    """The smallest n whose t test against the nearer end has a power of 90 %."""
    edge = low if math.isfinite(low) else high
    distance = abs(VALUES.mean() - edge) / upper_deviation(VALUES)

    def power(n: int) -> float:
        return float(stats.nct.sf(stats.t.ppf(0.95, n - 1), n - 1, distance * math.sqrt(n)))

    needed = planning.n_for_power(VALUES, "linear", low, high)
    assert needed is not None
    assert 8 < needed < 1000
    assert power(needed) >= 0.9 > power(needed - 1)
    found = planning.power_of(VALUES.mean(), upper_deviation(VALUES), needed, low, high)
    assert found == pytest.approx(power(needed), abs=1e-5)  # the quadrature's error


@pytest.mark.parametrize(
    ("mean", "deviation", "n", "level"),
    [(0.1, 0.9, 8, 0.9), (0.4, 0.8, 12, 0.958), (0.0, 1.2, 10, 0.9), (1.4, 1, 9, 0.9)],
)
def test_two_ends_by_simulation(mean: float, deviation: float, n: int, level: float) -> None:
    """Of 40 000 studies' intervals, the share inside (outside, for a mean outside) within three standard errors."""
    values = np.random.default_rng(0).normal(mean, deviation, (n, 40_000))
    half = stats.t.ppf((1 + level) / 2, n - 1) * values.std(axis=0, ddof=1) / math.sqrt(n)
    low, high = values.mean(axis=0) - half, values.mean(axis=0) + half
    decides = (low >= -1) & (high <= 1) if abs(mean) < 1 else (low > 1) | (high < -1)
    power = planning.power_of(mean, deviation, n, -1.0, 1.0, level)
    assert 0.05 < power < 0.99
    assert power == pytest.approx(decides.mean(), abs=3 * math.sqrt(power * (1 - power) / 40_000))


@pytest.mark.parametrize(
    ("share", "low", "high"), [(0.75, 0.5, 1.0), (0.9, 0.5, 1.0), (0.25, 0.5, 1.0), (0.5, 0.0, 0.8), (0.5, 0.2, 0.8)]
)
def test_shares_are_the_binomial_chance_of_counts_that_decide(share: float, low: float, high: float) -> None:
    for n in (8, 13, 40):
        expected = 0.0
        for hits in range(n + 1):
            found = intervals.clopper_pearson(hits, n)
            inside, outside = low <= found.low and found.high <= high, found.high < low or found.low > high
            expected += stats.binom.pmf(hits, n, share) * (inside if low <= share <= high else outside)
        powers = planning.share_powers(share, np.array([n]), low, high)
        assert powers == pytest.approx(expected, abs=1e-12)


def test_a_share_needs_the_first_n_with_the_power() -> None:
    values = np.array([1.0, 1.0, 1.0, 0.0])
    needed = planning.n_for_power(values, "share", 0.5, 1.0)
    assert needed is not None
    powers = planning.share_powers(0.75, np.arange(8, needed + 1), 0.5, 1.0)
    assert powers[-1] >= 0.9 > powers[:-1].max()
    assert planning.n_for_power(values, "share", 0.75, 1.0) == planning.MOST_SEEDS + 1  # on the edge
    assert planning.n_for_power(np.ones(4), "share", 0.5, 1.0) == 8


def test_more_power_a_narrower_level_and_a_wider_grid_need_more_seeds() -> None:
    plain = planning.n_for_power(VALUES, "log", 0.9, 1.2)
    assert plain is not None
    assert planning.n_for_power(np.exp(VALUES), "log", math.exp(0.9), math.exp(1.2)) == planning.n_for_power(
        VALUES, "linear", 0.9, 1.2
    )
    for more in ({"power": 0.95}, {"level": 0.958}, {"spacing": 0.02}):
        needed = planning.n_for_power(VALUES, "log", 0.9, 1.2, **more)
        assert needed is not None
        assert needed > plain


def test_an_end_at_a_bound_is_none() -> None:
    """No interval of a fraction passes 1: as many seeds as without an upper end."""
    values = np.array([0.9, 0.99, 0.95, 0.85])
    needed = planning.n_for_power(values, "fraction", 0.85, 1.0)
    assert needed == planning.n_for_power(values, "linear", 0.85, 50.0)
    assert needed is not None
    assert 8 < needed < 1000
    assert planning.n_for_power(values, "fraction", 0.0, 0.97, spacing=0.01) == planning.n_for_power(
        values, "linear", -50.0, 0.97, spacing=0.01
    )
    above_1_by_rounding = np.array([1.0, 1.0 + 2e-7, 1.0 + 4e-7])
    assert planning.n_for_power(above_1_by_rounding, "fraction", 0.85, 1.0) == 8


def test_where_no_number_of_seeds_decides_or_nothing_is_known_it_is_said() -> None:
    more = planning.MOST_SEEDS + 1
    assert planning.n_for_power(VALUES, "linear", float(VALUES.mean()), 3.0) == more
    assert planning.n_for_power(VALUES, "linear", 1.0, 1.05, spacing=0.1) == more
    assert planning.n_for_power(np.array([1.0]), "log", 0.0, 2.0) is None
    assert planning.n_for_power(np.array([1.0, math.inf]), "log", 0.0, 2.0) is None
    assert planning.n_for_power(np.ones(3), "log", 0.5, 2.0) == 8  # without a spread the fewest
