"""The threshold of task diversity: lines whose crossing is known, ties, several crossings, none, intervals by SciPy."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from icl_lab.analysis.transience import TIE, crossing

M = 2.0 ** np.arange(6)


def of_ratios(*rows: list[float], m: np.ndarray = M):
    """The crossing of seeds with these log ratios of large to small."""
    ratios = np.array(rows, float)
    small = np.exp(np.random.default_rng(0).normal(size=ratios.shape))
    return crossing(m[: ratios.shape[1]], small, small * np.exp(ratios))


@given(st.floats(0.05, 4.95), st.floats(0.01, 3), st.sampled_from([(0, 1, 2, 3, 4, 5), (0, 0.5, 4, 5), (-2, 7)]))
def test_a_line_crosses_where_it_does(where: float, slope: float, log2_m: tuple[float, ...]) -> None:
    """log(large/small) = slope (c - log2 M), at whichever M it is measured."""
    x = np.array(log2_m, float)
    found = of_ratios(slope * (where - x), m=2**x)
    assert found.log2_m == pytest.approx(where, abs=1e-3)  # the abscissa a tie may move by
    assert found.of_mean == found.per_seed[0] == found.log2_m


def test_a_crossing_by_hand() -> None:
    """From log 2 at M = 4 to -log 4 at M = 16: a third of the way from 2 to 4."""
    found = crossing(np.array([4, 16]), np.array([[0.1, 0.4]]), np.array([[0.2, 0.1]]))
    assert found.log2_m == pytest.approx(2 + 2 / 3)
    assert found.crossed == 1
    assert np.isnan([found.low, found.high]).all()


def test_the_last_crossing_counts() -> None:
    """Small pools are on dMMSE after either budget, and the sign of their ratio is noise."""
    assert of_ratios([-1, 1, -1, 1, -3]).log2_m == pytest.approx(3.25)
    assert of_ratios([1, -1, 3, -1, 1]).log2_m == pytest.approx(2.75)  # what rises again above is no crossing


def test_ties_are_no_change_and_no_change_is_not_above_zero() -> None:
    tie = TIE / 2
    assert of_ratios([1, tie, tie, tie]).log2_m == 1
    assert of_ratios([1, -tie, -1, -1]).log2_m == 1
    assert of_ratios([tie, 1, -1, tie]).log2_m == pytest.approx(1.5)
    assert of_ratios([2 * TIE, -2 * TIE]).log2_m == pytest.approx(0.5, abs=1e-6)
    assert np.isnan(of_ratios([tie, -tie, tie, -1]).log2_m)
    assert np.isnan(of_ratios([0, 0, 0]).log2_m)


def test_seeds_without_a_crossing_are_counted_out() -> None:
    """Never above zero, and never not above it, have none; the others' mean and interval are scipy's."""
    found = of_ratios([1, 1, -1], [-1, -1, -1], [1, -1, -1], [1, 2, 3], [2, 1, -3])
    expected = np.array([1.5, 0.5, 1.25])
    np.testing.assert_allclose(found.per_seed, [1.5, np.nan, 0.5, np.nan, 1.25])
    assert found.crossed == 3
    assert found.log2_m == pytest.approx(expected.mean())
    assert (found.low, found.high) == pytest.approx(stats.t.interval(0.95, 2, expected.mean(), stats.sem(expected)))
    assert found.of_mean == pytest.approx(1 + 0.4 / (0.4 + 0.6))  # means .8, .4, -.6


def test_no_seed_with_a_crossing_gives_none_though_the_mean_may_have_one() -> None:
    found = of_ratios([3, 1, 0.5], [-1, -2, -3])
    assert found.crossed == 0
    assert np.isnan([found.log2_m, found.low, found.high, *found.per_seed]).all()
    assert found.of_mean == pytest.approx(1 - 0.5 / 1.5)  # means 1, -.5, -1.25


@given(hnp.arrays(float, (3, 6), elements=st.floats(-2, 2)), st.permutations(range(3)), st.integers(-2, 5))
def test_seeds_have_no_order_losses_no_unit_and_m_moves_the_threshold(ratios, order, doublings) -> None:
    first = of_ratios(*ratios)
    again = of_ratios(*ratios[list(order)], m=M * 2.0**doublings)
    np.testing.assert_allclose(again.per_seed, first.per_seed[list(order)] + doublings, atol=1e-6)
    np.testing.assert_allclose(
        [again.log2_m, again.low, again.high, again.of_mean],
        np.array([first.log2_m, first.low, first.high, first.of_mean]) + doublings,
        atol=1e-6,
    )


@given(hnp.arrays(float, 6, elements=st.floats(-2, 2)))
def test_a_crossing_lies_between_its_signs_and_nothing_above_it_falls_again(ratios: np.ndarray) -> None:
    assume(not np.isclose(np.abs(ratios), TIE, rtol=1e-3).any())  # losses that have such a ratio are not exact
    found = of_ratios(ratios).log2_m
    signs = np.where(np.abs(ratios) <= TIE, 0, np.sign(ratios)) > 0
    falls = [i for i in range(5) if signs[i] and not signs[i + 1]]
    if falls:
        assert falls[-1] <= found <= falls[-1] + 1
    else:
        assert np.isnan(found)


@pytest.mark.parametrize(
    ("m", "small", "large", "message"),
    [
        ([1, 2], [[1.0, 1.0]], [[1.0]], "not \\[seeds, M\\]"),
        ([1, 2, 4], [[1.0, 1.0]], [[1.0, 1.0]], "not \\[seeds, M\\]"),
        ([1, 2], [1.0, 1.0], [1.0, 1.0], "not \\[seeds, M\\]"),
        ([1, 2], np.ones((0, 2)), np.ones((0, 2)), "not \\[seeds, M\\]"),
        ([2, 1], [[1.0, 1.0]], [[1.0, 1.0]], "increasing"),
        ([0, 1], [[1.0, 1.0]], [[1.0, 1.0]], "above 0"),
        ([1, np.inf], [[1.0, 1.0]], [[1.0, 1.0]], "finite"),
        ([1, 2], [[0.0, 1.0]], [[1.0, 1.0]], "Delta must be"),
        ([1, 2], [[1.0, 1.0]], [[1.0, np.nan]], "Delta must be"),
    ],
)
def test_what_has_no_threshold_is_refused(m: list, small: list, large: list, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        crossing(np.array(m, float), np.array(small), np.array(large))
