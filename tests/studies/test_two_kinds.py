"""Two kinds of runs: the gap's level and power by simulation, what it finds in measured values, and counting."""

import math

import numpy as np
import pytest
from scipy import stats

from icl_lab.studies import two_kinds
from icl_lab.studies.two_kinds import count, gap, power

# measured values of eight seeds: a cosine on Fisher's scale, distances on the log scale
COSINES = (0.99258, 0.99216, 0.99247, 0.96430, 0.99251, 0.95189, 0.99228, 0.95429)
EXACT = (9.0824e-4, 3.7199e-14, 3.9697e-14, 7.3616e-4, 8.7501e-4, 7.7993e-4, 3.7913e-14, 8.8963e-4)
POLYNOMIAL = (7.9603e-3, 3.6780e-3, 8.4567e-3, 8.1538e-3, 3.4738e-3, 3.5671e-3, 3.8668e-3, 3.7633e-3)
CONJUGATE = (0.012401, 0.090002, 0.092550, 0.090645, 0.092617, 0.092509, 0.091058, 0.011418)
SKEWED = (1.4387, 1.4714, 1.4306, 3.3836, 1.4286, 4.1360, 1.5212, 2.8996)
APART = (1.2135, 1.2615, 1.0463, 1.2478, 1.0315, 1.1904, 1.0101, 1.0386)
ALIKE = (1.00238, 1.00280, 1.00300, 1.00192, 1.00238, 1.00148, 1.00124, 1.00145)


def by_hand(values: np.ndarray) -> float:
    """The statistic by a loop over all cuts: the largest gap over SciPy's pooled deviation."""
    ordered = np.sort(values)
    cuts = range(2, len(values) - 1)
    k = max(cuts, key=lambda cut: ordered[cut] - ordered[cut - 1])
    squares = (k - 1) * stats.tvar(ordered[:k]) + (len(values) - k - 1) * stats.tvar(ordered[k:])
    return float((ordered[k] - ordered[k - 1]) / math.sqrt(squares / (len(values) - 2)))


@pytest.mark.parametrize(
    ("values", "scale", "statistic", "below"),
    [(COSINES, "fisher", 15.95, 3), (POLYNOMIAL, "log", 18.6, 5), (CONJUGATE, "log", 75.1, 2)],
)
def test_two_kinds_are_found_in_measured_values(
    values: tuple[float, ...], scale: str, statistic: float, below: int
) -> None:
    found = gap(np.array(values), scale)
    assert found is not None
    assert found.found
    assert found.statistic == pytest.approx(statistic, rel=0.01)  # of values that are rounded to five digits
    transforms = np.arctanh(values) if scale == "fisher" else np.log(values)
    assert found.statistic == pytest.approx(by_hand(transforms))
    assert (found.below, found.above) == (below, 8 - below)
    assert sum(value < found.cut for value in values) == below


def test_a_logarithm_of_round_off_is_a_small_number_and_no_distance() -> None:
    """Three of eight are 4e-14: as 1e-6 each they are a kind, and its distance is that to 1e-6."""
    found = gap(np.array(EXACT), "log")
    assert found is not None
    assert (found.found, found.below) == (True, 3)
    assert found.cut == pytest.approx(math.sqrt(1e-6 * 7.3616e-4))
    noise = gap(np.array([1e-14, 2e-14, 1e-11, 5e-13, 1e-7, 3e-8, 2e-7, 1e-9]), "log")
    assert noise is not None
    assert not noise.found
    ones = gap(1 - np.array([1e-15, 1e-9, 2e-16, 1e-8, 1e-7, 3e-7, 1e-12, 2e-7]), "fisher")
    assert ones is not None
    assert not ones.found


@pytest.mark.parametrize("values", [SKEWED, APART, ALIKE])
def test_in_others_there_is_none(values: tuple[float, ...]) -> None:
    found = gap(np.array(values), "log")
    assert found is not None
    assert found.statistic == pytest.approx(by_hand(np.log(values)))
    assert not found.found


@pytest.mark.parametrize("n", [8, 10, 16, 40])
def test_one_normal_group_has_a_gap_in_one_study_of_a_thousand(n: int) -> None:
    """200 000 studies: three standard errors of the share, and of the table's value, which moves it by 2 %."""
    studies = 200_000
    values = np.sort(np.random.default_rng(n).standard_normal((studies, n)), axis=1)
    gaps, _, deviations = two_kinds.largest_gaps(values)
    found = float((gaps > two_kinds.critical(n) * deviations).mean())
    assert found == pytest.approx(0.001, abs=3 * math.sqrt(0.001 / studies) + 0.02 * 0.001)


def test_many_gaps_at_once_are_those_of_one_study() -> None:
    values = np.random.default_rng(3).normal(5.0, 0.1, (200, 9))
    gaps, _, deviations = two_kinds.largest_gaps(np.sort(values, axis=1))
    np.testing.assert_allclose(gaps / deviations, [by_hand(row) for row in values], rtol=1e-9)


@pytest.mark.parametrize(("separation", "expected"), [(10.0, 0.47), (15.0, 0.87)])
def test_the_power_is_that_of_the_rule_and_of_an_independent_simulation(separation: float, expected: float) -> None:
    """Eight values: the stated powers to a point; 4000 studies, drawn kind by kind, to three standard errors."""
    found = power(separation, 8)
    assert found == pytest.approx(expected, abs=0.01)
    rng = np.random.default_rng(5)
    hits = 0
    for upper in rng.binomial(8, 0.5, 4000):
        values = np.concatenate([rng.normal(2.0, 0.3, 8 - upper), rng.normal(2.0 + 0.3 * separation, 0.3, upper)])
        study = gap(values, "linear")
        assert study is not None
        hits += study.found
    assert hits / 4000 == pytest.approx(found, abs=3 * math.sqrt(found * (1 - found) / 4000))


def test_few_values_shares_counts_and_what_diverged_are_not_tested() -> None:
    assert gap(np.array(CONJUGATE[:7]), "log") is None
    assert gap(np.array([0.0] * 4 + [1.0] * 4), "share") is None
    assert gap(np.array([1.0] * 4 + [2.0] * 4), "nonnegative") is None
    assert gap(np.array([*CONJUGATE[:7], math.inf]), "log") is None


def test_values_read_from_records_are_known_to_half_their_spacing() -> None:
    """At a spacing of 250, times of 1000.5 and 1250.5 are one record apart; without one they are two kinds."""
    times = np.array([1000.5] * 4 + [1250.5] * 4)
    plain, of_records = gap(times, "linear"), gap(times, "linear", 250.0)
    assert plain is not None
    assert of_records is not None
    assert plain.found
    assert of_records.statistic == pytest.approx(2.0)
    on_logs = gap(times, "log", 250.0)
    assert on_logs is not None
    level = math.sqrt(1000.5 * 1250.5)
    assert on_logs.statistic == pytest.approx(math.log(1250.5 / 1000.5) / math.log(1 + 125 / level))


def test_equal_values_and_their_round_off_are_one_kind() -> None:
    for values in ([0.3] * 8, [0.3] * 4 + [0.3 + 1e-9] * 4):
        found = gap(np.array(values), "linear")
        assert found is not None
        assert not found.found


def test_fresh_values_are_counted_by_the_cut_and_by_the_range() -> None:
    """All above the cut and six of eight in the range: not surely more than half. SciPy's exact interval."""
    fresh = np.array([0.991, 0.992, 0.993, 0.994, 0.995, 0.996, 0.985, 0.986])
    counted = count(fresh, 0.98, 0.99, 1.0)
    assert (counted.on_side.estimate, counted.inside.estimate) == (1.0, 0.75)
    assert counted.inside.low == pytest.approx(stats.binomtest(6, 8).proportion_ci(0.9, "exact").low)
    assert not counted.is_reproduced
    assert count(fresh, 0.98, 0.986, 1.0).is_reproduced  # seven of eight: at least .53
    assert count(fresh, 0.9905, 0.0, 0.99).on_side.estimate == 0.25  # below the cut
    both = count(fresh, 0.99, 0.985, 1.0)  # a range that holds the cut
    assert (both.on_side.estimate, both.inside.estimate) == (0.75, 1.0)  # above it
