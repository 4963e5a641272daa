"""Intervals: against SciPy's own and by simulation of what they cover."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from icl_lab.src import intervals

POSITIVE = st.lists(st.floats(0.01, 100.0), min_size=2, max_size=8).map(np.array)


@given(st.lists(st.floats(-100.0, 100.0), min_size=2, max_size=8).map(np.array))
def test_linear_is_the_t_interval_of_scipy(values: np.ndarray) -> None:
    found = intervals.of(values, "linear")
    spread = values.std(ddof=1) / math.sqrt(len(values))
    expected = stats.t.interval(0.9, len(values) - 1, values.mean(), spread) if spread else [values.mean()] * 2
    np.testing.assert_allclose([found.low, found.high], expected, rtol=1e-9, atol=1e-9)
    assert (found.estimate, found.n) == (pytest.approx(values.mean()), len(values))


@given(POSITIVE)
def test_log_is_linear_on_logarithms_and_does_not_depend_on_the_unit(values: np.ndarray) -> None:
    found, logs = intervals.of(values, "log"), intervals.of(np.log(values), "linear")
    np.testing.assert_allclose(found[:3], np.exp(logs[:3]), rtol=1e-9)
    np.testing.assert_allclose(intervals.of(7 * values, "log")[:3], 7 * np.array(found[:3]), rtol=1e-9)


def test_complement_is_log_of_what_is_missing_to_1() -> None:
    values = np.array([0.9, 0.98, -0.5])
    found, rest = intervals.of(values, "complement"), intervals.of(1 - values, "log")
    np.testing.assert_allclose(found[:3], 1 - np.array([rest.estimate, rest.high, rest.low]), rtol=1e-12)
    assert found.high < intervals.of(np.array([0.9, 1.0]), "complement").high <= 1


def test_fisher_is_linear_on_z_and_stays_below_1() -> None:
    values = np.array([0.95, 0.99, 0.999])
    found, z = intervals.of(values, "fisher"), intervals.of(np.arctanh(values), "linear")
    np.testing.assert_allclose(found[:3], np.tanh(z[:3]), rtol=1e-12)
    assert found.high < 1
    assert intervals.of(np.array([1.0, 1.0 + 1e-7]), "fisher").estimate == pytest.approx(1.0)  # of float32


@pytest.mark.parametrize(("successes", "n"), [(0, 5), (5, 5), (8, 8), (3, 8), (10, 10), (1, 3)])
def test_shares_have_the_exact_interval_of_scipy(successes: int, n: int) -> None:
    found = intervals.clopper_pearson(successes, n)
    exact = stats.binomtest(successes, n).proportion_ci(0.9, "exact")
    np.testing.assert_allclose([found.low, found.high], [exact.low, exact.high], rtol=1e-9)
    assert intervals.of(np.array([1.0] * successes + [0.0] * (n - successes)), "share") == found


def test_eight_of_eight_is_at_least_69_percent() -> None:
    assert intervals.clopper_pearson(8, 8).low == pytest.approx(0.05 ** (1 / 8))
    assert round(100 * intervals.clopper_pearson(8, 8).low) == 69


def test_what_cannot_be_is_cut_off() -> None:
    assert intervals.of(np.array([0.0, 0.01, 0.05]), "nonnegative").low == 0
    assert intervals.of(np.array([0.9, 1.0, 0.95, 0.2]), "fraction").high <= 1
    assert intervals.widened(intervals.of(np.array([100.0, 110.0]), "log"), 500, "log").low == 0


@pytest.mark.parametrize(
    ("scale", "ends"), [("rank", (-1, 1)), ("difference", (-1, 1)), ("rank_difference", (-2, 2)), ("change", (-1, 9.8))]
)
def test_of_either_sign_it_is_linear_between_what_is_possible(scale: str, ends: tuple[float, float]) -> None:
    """Of -.9 and .9 the interval is +-6.3138 * .9: t of one degree of freedom."""
    found = intervals.of(np.array([-0.9, 0.9]), scale)
    assert found.estimate == pytest.approx(0)
    half = float(stats.t.ppf(0.95, 1)) * 0.9
    assert (found.low, found.high) == pytest.approx((max(-half, ends[0]), min(half, ends[1])))
    inner = intervals.of(np.array([0.1, 0.11, 0.12]), scale)
    assert inner[:3] == pytest.approx(intervals.of(np.array([0.1, 0.11, 0.12]), "linear")[:3])


def test_where_a_run_diverged_it_is_the_median_by_order_statistics() -> None:
    """Between the smallest and the largest of 5 lies the median with 1 - 2/32; of 4 that is no 90 %."""
    five = intervals.of(np.array([1.0, 2.0, 3.0, 4.0, math.inf]), "log")
    assert five == (3.0, 1.0, math.inf, 5)
    assert intervals.of(np.array([1.0, 2.0, 3.0, math.inf]), "log")[1:3] == (0.0, math.inf)
    eight = intervals.median(np.arange(8.0))  # P(Bin(8, 1/2) < 2) = 9/256 < .05, and < 3: 37/256
    assert (eight.low, eight.high, eight.estimate) == (1.0, 6.0, 3.5)


def test_a_value_alone_has_no_interval() -> None:
    assert intervals.of(np.array([2.0]), "log") == (2.0, 0.0, math.inf, 1)
    assert intervals.of(np.array([0.5]), "fisher")[1:3] == (-1.0, 1.0)


@pytest.mark.parametrize(
    ("values", "scale"),
    [([], "log"), ([math.nan, 1.0], "linear"), ([0.0, 1.0], "log"), ([1.1], "fisher"), ([-1.0], "nonnegative")],
)
def test_what_the_scale_does_not_have_is_an_error(values: list[float], scale: str) -> None:
    with pytest.raises(ValueError, match=r"not defined|not possible"):
        intervals.of(np.array(values, float), scale)
