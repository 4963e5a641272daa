"""Statistics over seeds, against SciPy's tests, Holm's definition, and how often intervals hold what they should."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from icl_lab.src.statistics import (
    Contrast,
    Equivalence,
    contrast,
    equivalence,
    holm,
    mean_and_interval,
    means_and_errors,
)

LOSSES = (
    st.integers(2, 8)
    .flatmap(lambda n: st.tuples(*[hnp.arrays(float, n, elements=st.floats(0.125, 2))] * 2))
    .filter(lambda pair: min(np.std(pair[0] - pair[1]), np.std(pair[0] / pair[1])) > 1e-3)
)
P_VALUES = hnp.arrays(float, st.integers(0, 9), elements=st.floats(0, 1) | st.just(np.nan))


# The t interval


@given(hnp.arrays(float, st.tuples(st.integers(2, 6), st.just(3)), elements=st.floats(-10, 10)))
def test_the_interval_is_students(values: np.ndarray) -> None:
    """t_(n-1) s / sqrt(n), by scipy's own quantile; with five runs t is 2.78."""
    mean, half_width = mean_and_interval(values)
    error = stats.sem(values, axis=0)
    np.testing.assert_allclose(mean, values.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(half_width, stats.t.ppf(0.975, len(values) - 1) * error, rtol=1e-9, atol=1e-12)
    _, five = mean_and_interval(np.array([[1.0], [2], [3], [4], [5]]))
    assert five[0] == pytest.approx(2.776 * np.sqrt(2.5 / 5), rel=1e-3)


@pytest.mark.parametrize("level", [0.9, 0.95])
def test_the_interval_covers_the_mean_as_often_as_it_says(level: float) -> None:
    """20 000 experiments of five seeds: within four binomial standard errors of the level."""
    values = np.random.default_rng(0).normal(3.0, 0.7, (5, 20_000))
    mean, half_width = mean_and_interval(values, level)
    covered = np.mean(np.abs(mean - 3.0) <= half_width)
    assert abs(covered - level) < 4 * np.sqrt(level * (1 - level) / 20_000)


def test_one_run_has_a_mean_and_no_interval() -> None:
    mean, half_width = mean_and_interval(np.array([[1.5, 2.0]]))
    np.testing.assert_array_equal(mean, [1.5, 2.0])
    np.testing.assert_array_equal(half_width, [np.nan, np.nan])
    with pytest.raises(ValueError, match="no values"):
        mean_and_interval(np.empty(0))


# Paired contrasts


@given(LOSSES)
def test_the_contrast_is_scipys_paired_t_test(pair: tuple[np.ndarray, np.ndarray]) -> None:
    treated, control = pair
    differences = treated - control
    found, reference = contrast(treated, control), stats.ttest_rel(treated, control)
    interval = reference.confidence_interval(0.95)
    assert found.n == len(treated)
    assert found.difference == pytest.approx(np.mean(differences), abs=1e-12)
    assert found.p == pytest.approx(reference.pvalue, rel=1e-7)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high), rel=1e-7, abs=1e-9)
    assert found.d_z == pytest.approx(reference.statistic / np.sqrt(len(treated)), rel=1e-7, abs=1e-9)
    base = np.mean(control)
    expected = (found.difference / base, found.low / base, found.high / base)
    assert (found.relative, found.relative_low, found.relative_high) == pytest.approx(expected)
    assert (found.p < 0.05) == (found.low > 0 or found.high < 0)


def test_a_contrast_by_hand() -> None:
    """Differences .1, .2, .3: mean .2, standard deviation .1, t = .2/(.1/sqrt 3) = 3.464, t_2 quantile 4.303."""
    found = contrast(np.array([1.1, 2.2, 3.3]), np.array([1.0, 2.0, 3.0]))
    half = 4.303 * 0.1 / np.sqrt(3)
    expected = (3, 0.2, 0.2 - half, 0.2 + half, 0.0742, 2.0, 0.1, 0.1 - half / 2, 0.1 + half / 2)
    assert found == pytest.approx(expected, rel=1e-3)


def test_identical_arrays_do_not_differ() -> None:
    losses = np.array([0.2, 0.3, 0.25])
    np.testing.assert_equal(contrast(losses, losses), Contrast(3, 0.0, 0.0, 0.0, 1.0, np.nan, 0.0, 0.0, 0.0))


def test_the_same_difference_for_every_seed_is_certain() -> None:
    found = contrast(np.array([1.5, 2.5]), np.array([1.0, 2.0]))
    assert (found.difference, found.low, found.high, found.p) == (0.5, 0.5, 0.5, 0.0)
    assert np.isnan(found.d_z)


@pytest.mark.parametrize("losses", [[0.5], [0.5, np.nan]])
def test_what_has_no_spread_to_measure_has_no_p_value(losses: list[float]) -> None:
    found = contrast(np.array(losses), np.array(losses) - 0.25)
    assert np.isnan([found.low, found.high, found.p, found.d_z, found.relative_low, found.relative_high]).all()
    same = equivalence(np.array(losses), np.array(losses))
    assert np.isnan([same.low, same.high, same.p]).all()
    assert same.equivalent is False


def test_a_single_seed_has_its_difference() -> None:
    found = contrast(np.array([0.5]), np.array([0.25]))
    assert (found.n, found.difference, found.relative) == (1, 0.25, 1.0)
    assert np.isnan(contrast(np.array([1.0, 2.0]), np.array([-1.0, 1.0])).relative)


@given(LOSSES, st.integers(0, 9), st.sampled_from([0.125, 2.0, 16.0]))
def test_seeds_have_no_order_and_losses_no_unit(pair: tuple[np.ndarray, np.ndarray], seed: int, factor: float) -> None:
    treated, control = pair
    order = np.random.default_rng(seed).permutation(len(treated))
    found, permuted = contrast(treated, control), contrast(treated[order], control[order])
    np.testing.assert_allclose(permuted, found, rtol=1e-6, atol=1e-9)
    scaled = contrast(factor * treated, factor * control)
    np.testing.assert_allclose(scaled[1:4], factor * np.array(found[1:4]), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(scaled[4:], found[4:], rtol=1e-9, atol=1e-12)
    first, same = equivalence(treated, control), equivalence(factor * treated[order], factor * control[order])
    np.testing.assert_allclose(same, first, rtol=1e-6, atol=1e-9)


@given(LOSSES)
def test_exchanging_the_conditions_changes_the_sign_alone(pair: tuple[np.ndarray, np.ndarray]) -> None:
    there, back = contrast(*pair), contrast(*pair[::-1])
    np.testing.assert_allclose(
        (back.difference, back.low, back.high, back.p, back.d_z),
        (-there.difference, -there.high, -there.low, there.p, -there.d_z),
        rtol=1e-9,
        atol=1e-12,
    )


def test_p_values_without_an_effect_are_uniform() -> None:
    """4000 contrasts of five seeds, against the uniform law by Kolmogorov and Smirnov."""
    pairs = np.random.default_rng(1).normal(1.0, 0.1, (4000, 2, 5))
    p_values = [contrast(*pair).p for pair in pairs]
    assert stats.kstest(p_values, "uniform").pvalue > 0.01


# Holm


def stepped_down(p_values: np.ndarray) -> list[float]:
    """Holm's adjusted p values by the definition: for each, the largest over all that are no larger."""
    m = len(p_values)
    ordered = sorted(p_values)
    return [max(min(1.0, (m - i) * q) for i, q in enumerate(ordered) if q <= p) for p in p_values]


@given(P_VALUES)
def test_holm_is_its_definition_and_nan_does_not_count(p_values: np.ndarray) -> None:
    adjusted, counted = holm(p_values), ~np.isnan(p_values)
    np.testing.assert_array_equal(np.isnan(adjusted), ~counted)
    np.testing.assert_allclose(adjusted[counted], stepped_down(p_values[counted]), rtol=1e-12)
    assert (adjusted[counted] >= p_values[counted]).all()
    assert (np.diff(adjusted[counted][np.argsort(p_values[counted])]) >= 0).all()


def test_holm_by_hand() -> None:
    """.01 x 4, .02 x 3 = .06, .03 x 2 = .06, .04 x 1 raised to .06."""
    np.testing.assert_allclose(holm(np.array([0.04, 0.01, np.nan, 0.03, 0.02])), [0.06, 0.04, np.nan, 0.06, 0.06])
    np.testing.assert_allclose(holm(np.array([0.5, 0.9])), [1.0, 1.0])
    assert holm(np.array([0.03]))[0] == 0.03


def test_holm_keeps_the_chance_of_any_false_rejection() -> None:
    """10 true nulls, 4000 times: at most 5 % of the families reject any, up to four standard errors."""
    families = np.random.default_rng(2).uniform(size=(4000, 10))
    wrong = np.mean([(holm(family) <= 0.05).any() for family in families])
    assert wrong <= 0.05 + 4 * np.sqrt(0.05 * 0.95 / 4000)
    assert wrong > 0.03


@pytest.mark.parametrize("wrong", [-0.1, 1.5, np.inf])
def test_what_is_no_p_value_is_refused(wrong: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        holm(np.array([0.5, wrong]))


# Equivalence


@given(LOSSES, st.sampled_from([0.01, 0.3, 1.0]))
def test_equivalence_is_two_one_sided_tests(pair: tuple[np.ndarray, np.ndarray], margin: float) -> None:
    """By scipy's one-sample test of each side, and where the 90 % interval lies within the margin."""
    treated, control = pair
    changes = treated / control - 1
    found = equivalence(treated, control, margin)
    above = stats.ttest_1samp(changes, -margin, alternative="greater")
    below = stats.ttest_1samp(changes, margin, alternative="less")
    assert found.p == pytest.approx(max(above.pvalue, below.pvalue), rel=1e-6, abs=1e-9)
    interval = stats.ttest_1samp(changes, 0.0).confidence_interval(0.9)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high), rel=1e-6, abs=1e-9)
    assert found.equivalent == (-margin < interval.low and interval.high < margin)


def test_exact_zeros_are_equivalent_and_a_constant_change_is_where_it_is() -> None:
    losses = np.array([0.25, 0.5, 1.0])
    assert equivalence(losses, losses) == Equivalence(3, 0.0, 0.0, 0.0, 0.0, True)
    assert equivalence(losses * 1.5, losses) == Equivalence(3, 0.5, 0.5, 0.5, 1.0, False)
    assert equivalence(losses * 1.5, losses, 0.5).equivalent is False  # on the margin is not within it
    assert equivalence(losses * 1.5, losses, 0.51).equivalent is True


def test_changes_are_relative_to_each_seeds_own_control() -> None:
    """Losses of very different size, each half a percent up: equivalent within one percent, and not within .4."""
    control = np.array([0.1, 1.0, 10.0, 100.0])
    treated = control * np.array([1.0049, 1.0051, 1.0049, 1.0051])
    assert equivalence(treated, control).equivalent is True
    assert equivalence(treated, control, 0.004).equivalent is False


def test_at_the_margin_equivalence_is_claimed_in_one_case_of_twenty() -> None:
    changes = np.random.default_rng(3).normal(0.01, 0.002, (4000, 5))
    claimed = np.mean([equivalence(1 + change, np.ones(5)).equivalent for change in changes])
    assert abs(claimed - 0.05) < 4 * np.sqrt(0.05 * 0.95 / 4000)


def test_what_is_not_paired_is_refused() -> None:
    for test in (contrast, equivalence):
        with pytest.raises(ValueError, match=r"shapes \(2,\) and \(3,\)"):
            test(np.ones(2), np.ones(3))
        with pytest.raises(ValueError, match="not one value for each"):
            test(np.ones((2, 2)), np.ones((2, 2)))
    with pytest.raises(ValueError, match="margin is 0"):
        equivalence(np.ones(2), np.ones(2), 0)
    with pytest.raises(ValueError, match="control of 0"):
        equivalence(np.ones(2), np.array([0.0, 1.0]))


def test_means_and_their_errors_are_numpys_in_float64() -> None:
    values = {"one": np.array([1, 2, 4, 8], np.float32), "other": np.array([0.5, -0.5, 3.0])}
    assert means_and_errors(values) == {
        **{"one": 3.75, "one_se": np.std([1, 2, 4, 8], ddof=1) / 2},
        **{"other": 1.0, "other_se": np.std([0.5, -0.5, 3.0], ddof=1) / np.sqrt(3)},
    }
