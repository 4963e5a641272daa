"""Kinks by dynamic programming: the same as by trying all, and where they are known."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icl_lab.analysis.development.change_points import best_knots, change_points, envelope
from icl_lab.analysis.development.smooth_curve import fit, log_step
from tests.analysis.development.curves import OF_A_MEAN, noise, published, spaced

STEPS = spaced(40)
AT = log_step(STEPS)


def chi2(at: np.ndarray, values: np.ndarray, sizes: np.ndarray, knots: tuple[int, ...]) -> float:
    """Of the best curve with these kinks: the values at both ends and at the kinks, joined by np.interp."""
    nodes = at[[0, *knots, len(at) - 1]]
    hats = np.stack([np.interp(at, nodes, unit) for unit in np.eye(len(nodes))], axis=1)
    found = np.linalg.lstsq(hats / sizes[:, None], values / sizes, rcond=None)[0]
    return float((((values - hats @ found) / sizes) ** 2).sum())


@given(st.integers(0, 10**6), st.integers(8, 10))
@settings(max_examples=25)
def test_the_program_finds_what_trying_all_finds(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    at, values = np.cumsum(rng.uniform(0.1, 2.0, count)), np.cumsum(rng.normal(size=count))
    sizes = rng.uniform(0.2, 2.0, count)
    for segments, knots in enumerate(best_knots(at, values, sizes, 4), start=1):
        best = min(chi2(at, values, sizes, tried) for tried in combinations(range(1, count - 1), segments - 1))
        assert len(knots) == segments - 1
        assert chi2(at, values, sizes, tuple(knots)) == pytest.approx(best, rel=1e-6, abs=1e-8)


@given(st.integers(0, 10**6))
@settings(max_examples=30)
def test_the_envelope_has_all_that_are_lowest_somewhere(seed: int) -> None:
    rng = np.random.default_rng(seed)
    parabolas = np.stack([rng.uniform(0.1, 3, 12), rng.normal(size=12), rng.normal(size=12)], axis=1)
    places = np.concatenate([np.linspace(-30, 30, 6001), [-1e6, 1e6]])
    values = parabolas @ np.stack([places**2, places, np.ones_like(places)])
    assert {*np.argmin(values, axis=0).tolist()} <= {*envelope(parabolas)}


def test_known_kinks_are_recovered() -> None:
    """Flat, a rise of 20 a log step between two checkpoints, a fall of 5 from there."""
    first, second = AT[12], AT[24]
    curve = 20 * np.clip(AT - first, 0, second - first) - 5 * np.clip(AT - second, 0, None)
    found = change_points(STEPS, curve + noise(len(AT), 0), np.ones(len(AT)))
    assert len(found.points) == 2
    np.testing.assert_allclose(log_step(np.array([point.step for point in found.points])), [first, second], atol=0.4)
    np.testing.assert_allclose([found.points[0].before, found.points[0].after], [0, 20], atol=1.0)
    np.testing.assert_allclose([found.points[1].before, found.points[1].after], [20, -5], atol=1.0)
    np.testing.assert_allclose(found.values, curve, atol=2.5)
    assert int(np.argmin(found.bic)) == 2


def test_gain_and_bic_are_those_of_trying_without() -> None:
    curve = 20 * np.clip(AT - 4, 0, 4) - 5 * np.clip(AT - 8, 0, None) + noise(len(AT), 1)
    sizes = np.ones(len(AT))
    found = change_points(STEPS, curve, sizes)
    knots = tuple(int(np.flatnonzero(point.step == STEPS)[0]) for point in found.points)
    penalty = 2 * np.log(len(AT))
    own = chi2(AT, curve, sizes, knots)
    assert found.bic[len(knots)] == pytest.approx(own + penalty * (len(knots) + 1))
    for number, point in enumerate(found.points):
        without = chi2(AT, curve, sizes, knots[:number] + knots[number + 1 :])
        assert point.gain == pytest.approx(without - own - penalty)
        assert point.gain > 0


@pytest.mark.parametrize("slope", [0.0, 3.0])
def test_few_lines_with_noise_have_one(slope: float) -> None:
    """BIC is no test of a level: about one in ten has a kink, whose place is the best of many."""
    found = [change_points(STEPS, slope * AT + noise(len(AT), seed), np.ones(len(AT)), 3).points for seed in range(40)]
    assert sum(map(bool, found)) <= 6
    assert change_points(STEPS, slope * AT, np.ones(len(AT))).points == []


@given(st.floats(0.01, 1000), st.floats(-1000, 1000))
@settings(max_examples=10)
def test_shift_and_scale_are_no_matter(scale: float, shift: float) -> None:
    curve = 20 * np.clip(AT - 4, 0, 4) + noise(len(AT), 2)
    first = change_points(STEPS, curve, np.ones(len(AT)))
    second = change_points(STEPS, scale * curve + shift, np.full(len(AT), scale))
    assert [point.step for point in first.points] == [point.step for point in second.points]
    np.testing.assert_allclose([p.after * scale for p in first.points], [p.after for p in second.points], rtol=1e-4)


def test_the_published_curve_has_a_kink_at_its_first_milestone() -> None:
    """Between steps 0 and 984 nothing is published, so that the onset of the rise is all that can be seen of it."""
    steps, llc, half = published()
    for errors in (half, OF_A_MEAN * half, None):
        points = change_points(steps, llc, fit(steps, llc, errors).noise).points
        assert points[0].step == 984
        assert points[0].before < 8 < points[0].after
        assert points[0].gain > 2


def test_the_published_decline_ends_in_a_kink() -> None:
    steps, llc, half = published()
    last = change_points(steps, llc, fit(steps, llc, OF_A_MEAN * half).noise).points[-1]
    assert last.step in (318_000, 399_000)
    assert last.before < -8 < 0 < last.after


@pytest.mark.parametrize(("count", "size", "sentence"), [(2, 1.0, "3 checkpoints or more, not 2"), (9, 0.0, "above 0")])
def test_what_has_no_change_points_is_refused(count: int, size: float, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        change_points(STEPS[:count], AT[:count], np.full(count, size))
