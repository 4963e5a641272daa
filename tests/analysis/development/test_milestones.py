"""Milestones and stages: where they are known, and where there are none."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from icl_lab.analysis.development.milestones import Milestone, fit, milestones, of_seeds, stages, within
from icl_lab.analysis.development.smooth_curve import LEAST, Fit, log_step
from tests.analysis.development.curves import OF_A_MEAN, noise, published, spaced, stairs
from tests.thinned import thinned

STEPS = spaced(60)
AT = log_step(STEPS)
ONES = np.ones(len(STEPS))
RISES = {2.5: 50.0, 6.5: 100.0, 10.5: -40.0}  # plateaus between them, at log steps 4.5 and 8.5
BETWEEN = (4.5, 8.5)
PLACE = Milestone(5.0, np.expm1(5.0), 100.0, 200.0, 0.0, 1.0, "both", 1.0, 120.0, 180.0, 0.1, (4.0, 6.0))


def at(place: float, low: float = np.nan, high: float = np.nan, spread: float = 0.1) -> Milestone:
    """A milestone at a log step, with the log steps of its interval."""
    ends = [float(np.expm1(end)) for end in (low, high)]
    return PLACE._replace(place=place, step=float(np.expm1(place)), low=ends[0], high=ends[1], spread=spread)


def inner(found: list[Milestone]) -> list[Milestone]:
    """Those between two changes."""
    return [one for one in found if one.sides == "both"]


# --- milestones ---


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("known", [True, False])
def test_plateaus_between_rises_are_recovered(seed: int, known: bool) -> None:
    found = milestones(fit(STEPS, stairs(STEPS, RISES) + noise(len(STEPS), seed), ONES if known else None))
    between = inner(found)
    np.testing.assert_allclose([one.place for one in between], BETWEEN, atol=0.9)
    for one, place in zip(between, BETWEEN, strict=True):
        assert one.since <= one.step <= one.until
        assert one.support > 0.9
        assert log_step(one.low) - 0.5 < place < log_step(one.high) + 0.5
        assert one.low <= one.high
    assert {one.sides for one in found} <= {"both", "before", "after"}
    assert all(one.sides == "after" for one in found if one.place < 2.5)
    assert all(one.sides == "before" for one in found if one.place > 10.5)


def test_a_narrow_turn_is_a_plateau() -> None:
    """At a maximum the slope passes 0, however steep both sides are."""
    peak = 100 * np.exp(-(np.abs(AT - 7) ** 1.5))
    found = inner(milestones(fit(STEPS, peak + noise(len(STEPS), 0, 0.1), 0.1 * ONES), bound=1e-6))
    assert any(abs(one.place - 7) < 0.2 for one in found)


@pytest.mark.parametrize("seed", thinned(range(8), 8))
@pytest.mark.parametrize("errors", ["known", "unknown"])
@pytest.mark.parametrize("count", [LEAST, 14, 40])
def test_noise_and_lines_with_noise_have_none(count: int, errors: str, seed: int) -> None:
    steps = spaced(count)
    for slope in (0.0, 0.3, -10.0):
        values = slope * log_step(steps) + noise(len(steps), seed)
        assert milestones(fit(steps, values, np.ones(len(steps)) if errors == "known" else None)) == []


@pytest.mark.parametrize("values", [np.zeros(60), 7.5 * ONES[:60], 1e8 + 0 * ONES[:60]])
def test_constants_have_none(values: np.ndarray) -> None:
    steps = spaced(60)
    kept = np.resize(values, len(steps))
    for errors in (None, np.ones(len(steps)), np.zeros(len(steps))):
        assert milestones(fit(steps, kept, errors)) == []


def test_one_rise_has_plateaus_at_the_ends_alone() -> None:
    found = milestones(fit(STEPS, stairs(STEPS, {6.5: 100.0}) + noise(len(STEPS), 0), ONES))
    assert found
    assert inner(found) == []
    for one in found:
        assert one.sides == ("after" if one.place < 6.5 else "before")


def test_a_step_within_the_noise_is_none() -> None:
    """A second rise of 1 with errors of 1 at every checkpoint is not one of 100 with the same."""
    large = stairs(STEPS, {3.0: 100.0, 9.0: 100.0}) + noise(len(STEPS), 1)
    small = stairs(STEPS, {3.0: 100.0, 9.0: 0.5}) + noise(len(STEPS), 1)
    assert len(inner(milestones(fit(STEPS, large, ONES)))) == 1
    assert inner(milestones(fit(STEPS, small, ONES))) == []


def test_support_falls_with_noise() -> None:
    found = []
    for size in (0.5, 8.0):
        curve = stairs(STEPS, {3.0: 40.0, 8.0: 40.0}) + noise(len(STEPS), 3, size)
        found.append(inner(milestones(fit(STEPS, curve, size * ONES)))[0])
    assert found[1].support < found[0].support
    assert found[0].support == 1


def test_nothing_is_a_milestone_far_from_checkpoints() -> None:
    """Between steps 0 and 5000 there is no checkpoint: what the curve does there is the prior's."""
    steps = np.array([0, 5000, 8000, 15_000, 30_000, 60_000, 120_000, 250_000, 500_000], float)
    curve = np.array([50, 0, 40, 80, 100, 101, 100, 60, 20], float)
    found = milestones(fit(steps, curve, np.ones(len(steps)), length=0.7))
    assert found
    assert all(one.step > 2500 for one in found)


@given(st.floats(1e-3, 1e3), st.floats(-1e3, 1e3))
@settings(max_examples=3)
def test_shift_and_scale_of_the_llc_are_no_matter(scale: float, shift: float) -> None:
    curve = stairs(STEPS, RISES) + noise(len(STEPS), 0)
    first = milestones(fit(STEPS, curve, ONES), count=40)
    second = milestones(fit(STEPS, scale * curve + scale * shift, scale * ONES), count=40)
    assert [one.sides for one in first] == [one.sides for one in second]
    np.testing.assert_allclose([one.place for one in first], [one.place for one in second], atol=0.04)
    np.testing.assert_allclose([one.slope_se * scale for one in first], [one.slope_se for one in second], rtol=0.01)


@given(st.floats(0.2, 50.0))
@settings(max_examples=3)
def test_a_longer_schedule_moves_milestones_by_its_logarithm(factor: float) -> None:
    steps = np.geomspace(1e3, 1e8, 50)
    curve = stairs(steps, {9.0: 50.0, 12.0: 50.0, 16.0: -50.0}) + noise(50, 0)
    first = milestones(fit(steps, curve, np.ones(50)), count=40)
    second = milestones(fit(factor * steps, curve, np.ones(50)), count=40)
    assert first
    moved = [other.place - one.place for one, other in zip(first, second, strict=True)]
    np.testing.assert_allclose(moved, np.log(factor), atol=0.04)


def test_the_bound_is_in_heights_of_the_curve() -> None:
    """Between two rises the curve still rises by 5 a log step: a plateau only for a bound that is as steep."""
    curve = stairs(STEPS, {3.0: 100.0, 10.0: 100.0}, 0.7) + 5 * AT
    fitted = fit(STEPS, curve + noise(len(STEPS), 0, 0.5), 0.5 * ONES)
    slope, height = 5.0, float(np.ptp(fitted.mean))
    assert inner(milestones(fitted, bound=0.5 * slope / height)) == []
    assert len(inner(milestones(fitted, bound=1.5 * slope / height))) == 1


@pytest.mark.parametrize("wrong", [{"bound": 0.0}, {"z": -1.0}, {"count": 0}])
def test_rules_that_make_no_sense_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must be above 0"):
        milestones(fit(STEPS, AT, ONES), **wrong)


# --- the published curve ---


def overlapping(found: list[Milestone], low: float, high: float) -> list[Milestone]:
    """Milestones whose 90 % interval reaches into a range of steps."""
    return [one for one in found if one.low <= high and one.high >= low]


@pytest.mark.parametrize(("share", "length"), [(1.0, 0.5), (OF_A_MEAN, 0.5), (OF_A_MEAN, None)])
def test_the_published_plateaus(share: float, length: float | None) -> None:
    """About 1k, 31k to 56k, 320k to 400k. Midpoints and half ranges over seeds stand for a curve and its errors."""
    steps, llc, half = published()
    found = milestones(fit(steps, llc, share * half, length))
    assert len(found) == 3
    first, second, third = found
    assert overlapping([first], 900, 1100)
    assert first.step < 1400
    assert 31_000 < second.step < 56_000
    assert overlapping([third], 320_000, 400_000)
    assert 300_000 < third.step < 450_000
    assert min(one.support for one in found) > 0.8


def test_half_ranges_as_errors_hide_the_last_published_plateau() -> None:
    """They are the spread of the seeds, which neighbouring steps share, and larger than a mean's error by 2.6.

    With the likeliest length scale the decline then goes on to the end; a shorter one (test above) finds its end.
    """
    steps, llc, half = published()
    found = milestones(fit(steps, llc, half))
    assert [one.sides for one in found] == ["after", "both"]
    assert overlapping([found[0]], 900, 1100)
    assert 31_000 < found[1].step < 56_000


def test_stages_of_the_published_curve_rise_and_fall() -> None:
    """LR1 cannot be told from no change (step 0 has -2.7 to 12.6); LR2 rises by 149, LR3 and 4 fall by 56."""
    steps, llc, half = published()
    fitted = fit(steps, llc, OF_A_MEAN * half)
    table = stages(fitted, milestones(fitted), -llc / 66.7)
    assert [one.type for one in table[:3]] == ["undecided", "A", "B"]
    assert table[1].delta_llc == pytest.approx(149, abs=10)
    assert table[2].delta_llc == pytest.approx(-56, abs=10)


# --- stages ---


def test_stages_join_the_first_checkpoint_to_the_last() -> None:
    fitted = fit(STEPS, stairs(STEPS, RISES) + noise(len(STEPS), 0), ONES)
    found = milestones(fitted)
    table = stages(fitted, found, stairs(STEPS, {5.0: -1.0}))
    assert [one.start for one in table] == pytest.approx([0, *(one.step for one in found)])
    assert [one.end for one in table] == pytest.approx([*(one.step for one in found), STEPS[-1]])
    assert all(one.end == other.start for one, other in pairwise(table))
    assert sum(one.delta_llc for one in table) == pytest.approx(fitted.mean[-1] - fitted.mean[0])
    decided = [one for one in table if one.type != "undecided"]
    assert [one.type for one in decided] == ["A", "A", "B"]
    np.testing.assert_allclose([one.delta_llc for one in decided], [50, 100, -40], atol=4)
    for one in table:
        assert (one.type == "undecided") == (abs(one.delta_llc) <= 3 * one.delta_llc_se)


def test_what_is_undecided_is_a_matter_of_standard_errors() -> None:
    fitted = fit(STEPS, stairs(STEPS, RISES) + noise(len(STEPS), 0), ONES)
    (whole,) = stages(fitted, [], AT)
    assert whole.type == "A"
    assert whole.delta_llc == pytest.approx(110, abs=3)
    assert stages(fitted, [], AT, z=1.01 * whole.delta_llc / whole.delta_llc_se)[0].type == "undecided"
    assert stages(fitted, [], AT, z=0.99 * whole.delta_llc / whole.delta_llc_se)[0].type == "A"


def test_the_losss_change_and_its_error_are_those_of_a_line() -> None:
    """Of loss 2 - u/10 between places u = 4 and 7, known to .3 and .4: -.3, and hypot(.03, .04)."""
    fitted = fit(STEPS, stairs(STEPS, RISES), ONES)
    own = [at(4.0, spread=0.3), at(7.0, spread=0.4)]
    first, middle, last = stages(fitted, own, 2 - AT / 10)
    assert middle.delta_loss == pytest.approx(-0.3)
    assert middle.delta_loss_se == pytest.approx(0.05)
    assert first.delta_loss == pytest.approx(-0.4)
    assert first.delta_loss_se == pytest.approx(0.03)
    assert last.delta_loss_se == pytest.approx(0.04)


# --- nulls and seeds ---


def fits_of(curve: np.ndarray, loss: np.ndarray) -> tuple[Fit, Fit]:
    return fit(STEPS, curve, ONES), fit(STEPS, -133.3 * loss, ONES)


def test_a_saturated_chain_has_the_milestones_of_the_loss() -> None:
    loss = stairs(STEPS, {3.0: -0.5, 9.0: -0.7})
    llc, alone = fits_of(5 - 133.3 * loss + noise(len(STEPS), 0), loss)
    own, of_loss = inner(milestones(llc)), milestones(alone)
    assert len(own) == 1
    assert within(own[0], of_loss) is not None


def test_a_plateau_that_the_loss_lacks_is_the_llcs() -> None:
    loss = 2 - AT / 10
    llc, alone = fits_of(stairs(STEPS, {3.0: 50.0, 9.0: 50.0}) + noise(len(STEPS), 0), loss)
    own = inner(milestones(llc))
    assert len(own) == 1
    assert within(own[0], milestones(alone)) is None


def test_within_is_the_nearest_that_overlaps() -> None:
    own = at(5.0, 4.8, 5.3)
    assert within(own, [at(7.0, 6.0, 8.0)]) is None
    assert within(own, [at(7.0, 5.2, 8.0)]) is not None
    near, far = at(5.2, 5.1, 5.3), at(4.5, 4.4, 4.9)
    assert within(own, [far, near]) is near
    assert within(own, [at(5.1)]) is not None
    assert within(own, [at(5.6)]) is None
    assert within(own, []) is None


def test_seeds_are_matched_by_the_nearest_in_the_basin() -> None:
    """The t interval is SciPy's, of the log steps."""
    own = at(5.0)._replace(basin=(4.0, 6.0))
    seeds = [[own], [at(5.4), at(4.1)], [at(4.8)], [at(7.0)], []]
    found = of_seeds(own, seeds)
    places = np.array([5.0, 5.4, 4.8])
    low, high = stats.t.interval(0.9, 2, places.mean(), stats.sem(places))
    assert (found.seeds, found.having, found.share) == (5, 3, 0.6)
    np.testing.assert_allclose(log_step(np.array([found.step, found.low, found.high])), [places.mean(), low, high])
    alone = of_seeds(own, [[own], []])
    assert (alone.having, alone.step) == (1, pytest.approx(own.step))
    assert np.isnan(alone.low)
    assert of_seeds(own, [[], []]).share == 0
