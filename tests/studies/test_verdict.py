"""Verdicts: two one-sided tests, controls, runs that did not learn; and how often each rule errs."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from icl_lab.src import intervals
from icl_lab.studies import error_rates
from icl_lab.studies.claim import UNBOUNDED, Claim, Measurement, Rival, Without
from icl_lab.studies.history import Revision
from icl_lab.studies.study import all_studies
from icl_lab.studies.verdict import before_revision, judge

CLAIMS = [(study, claim) for study in all_studies() for claim in study.claims]


def claim(low: float, high: float, **rules: Any) -> Claim:
    return Claim("c", "1", "says", low, low, high, "derived", float, **({"scale": "linear"} | rules))


def measured(*values: float, control: tuple[float, ...] = ()) -> Measurement:
    return Measurement(values, tuple(range(len(values))), 0.5, "cpu", "2026-01-01", "abc", control_values=control)


def verdict(c: Claim, *values: float, control: tuple[float, ...] = ()) -> str:
    """The verdict, whatever the number of seeds."""
    judged = judge(c, measured(*values, control=control))
    return judged.says if judged.verdict == "provisional" else judged.verdict


def test_reproduced_is_an_interval_inside_the_range_not_a_mean() -> None:
    values = (0.9, 1.0, 1.1)
    half = stats.t.ppf(0.95, 2) * 0.1 / math.sqrt(3)
    assert verdict(claim(1 - half - 1e-9, 1 + half + 1e-9), *values) == "reproduced"
    assert verdict(claim(1 - half + 1e-6, 2), *values) == "undecided"
    assert verdict(claim(1 + half + 1e-6, 2), *values) == "contradicted"
    assert verdict(claim(1 + half - 1e-6, 2), *values) == "undecided"
    assert verdict(claim(0.5, 1.5), 1.0) == "undecided"  # a run alone has no interval
    assert judge(claim(0.5, 1.5), None).verdict == "not run"


def test_it_is_two_one_sided_tests_at_5_percent() -> None:
    """Schuirmann: reproduced exactly where both t tests against the ends reject at 5 %."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        values = rng.normal(rng.uniform(-1.5, 1.5), rng.uniform(0.1, 1.0), rng.integers(2, 9))
        above = stats.ttest_1samp(values, -1.0, alternative="greater").pvalue
        below = stats.ttest_1samp(values, 1.0, alternative="less").pvalue
        assert (verdict(claim(-1, 1), *values) == "reproduced") == (max(above, below) <= 0.05)


def test_no_effect_is_a_verdict_of_its_own() -> None:
    c = claim(0.0, 0.9, scale="log", no_effect=(0.95, 1.05))
    assert verdict(c, 1.0, 1.001, 0.999) == "no effect"
    assert verdict(c, 1.5, 1.501, 1.499) == "contradicted"
    assert verdict(c, 1.0, 1.2, 0.8) == "undecided"
    assert verdict(c, 0.5, 0.501, 0.499) == "reproduced"


def test_a_control_in_the_range_voids_what_would_count() -> None:
    inside, outside, across = (1.0, 1.01, 0.99), (3.0, 3.1), (1.0, 1.6)
    assert verdict(claim(0.5, 1.5), *inside, control=outside) == "reproduced"
    assert verdict(claim(0.5, 1.5), *inside, control=inside) == "uninformative"
    assert verdict(claim(0.5, 1.5), *across, control=inside) == "uninformative"
    assert verdict(claim(0.5, 1.5), *outside, control=inside) == "contradicted"
    assert verdict(claim(0.5, 1.5, no_effect=(2.9, 3.2)), 3.0, 3.01, 3.02, control=inside) == "no effect"
    every = claim(0.5, 1.5, every=True)
    assert verdict(every, *inside, *inside, control=inside) == "uninformative"
    assert verdict(every, *inside, *outside, control=inside) == "contradicted"
    beside = judge(claim(0.5, 1.5), measured(*inside, control=outside)).control
    assert beside is not None
    assert beside.estimate == pytest.approx(3.05)
    unknown = judge(claim(0.5, 1.5), measured(*inside, control=(math.nan,)))
    assert (unknown.verdict, unknown.because) == ("undecided", "its control is not computed")


def test_without_its_control_a_claim_is_not_reproduced() -> None:
    c = claim(0.5, 1.5)._replace(control=Rival("a", runs=("a",)), no_effect=(2.9, 3.2))
    judged = judge(c, measured(1.0, 1.01, 0.99))
    assert (judged.verdict, judged.because) == ("undecided", "its control is not measured")
    assert judged.interval is not None
    assert verdict(c, 1.0, 1.01, 0.99, control=(3.0,)) == "reproduced"
    assert verdict(c, 5.0, 5.01) == "contradicted"
    assert verdict(c, 3.0, 3.01, 3.02) == "no effect"
    assert judge(c, measured(1.0, 1.6)).because == ""
    assert verdict(c._replace(control=Without("none applies")), 1.0, 1.01, 0.99) == "reproduced"


def test_what_is_said_of_every_run_needs_five_and_is_contradicted_by_one() -> None:
    every = claim(0.0, 4000.0, every=True, scale="log")
    assert verdict(every, *[500.0] * 5) == "reproduced"
    assert verdict(every, *[500.0] * 4) == "undecided"
    assert verdict(every, *[500.0] * 9, 5000.0) == "contradicted"
    share = judge(every, measured(*[500.0] * 8)).share
    assert share is not None
    assert round(share.low, 2) == 0.69


def test_of_runs_that_did_not_learn_nothing_is_said() -> None:
    c = claim(0.9, 1.1, scale="log", among=bool)
    judged = judge(c, measured(1.0, 1.01, math.nan, 0.99))
    assert (judged.verdict, judged.interval and judged.interval.n, judged.n_all) == ("provisional", 3, 4)
    assert verdict(c, math.nan, math.nan) == "undecided"
    assert verdict(c._replace(among=None), 1.0, 1.0, math.nan) == "undecided"


def test_what_diverged_is_never_reproduced_nor_contradicted_by_few() -> None:
    c = claim(0.0, 1.0, scale="log")
    assert verdict(c, *[math.inf] * 3) == "undecided"
    assert verdict(c, *[math.inf] * 5) == "contradicted"
    assert verdict(c, *[0.5] * 7, math.inf) == "reproduced"  # the median of eight, by order statistics


@pytest.mark.parametrize(("study", "c"), CLAIMS, ids=[c.name for _, c in CLAIMS])
def test_no_claim_is_reproduced_by_what_diverged(study: Any, c: Claim) -> None:
    for value in (math.inf, -math.inf, math.nan):
        if c.scale == "share" or (value < 0 and c.scale != "linear"):
            continue
        assert verdict(c, *[value] * 8) in ("undecided", "contradicted")


def test_a_time_read_from_records_is_known_to_half_their_spacing() -> None:
    at_500 = (500.0,) * 8
    assert verdict(claim(300.0, 700.0, scale="log", spacing=500), *at_500) == "undecided"
    assert verdict(claim(249.9, 750.1, scale="log", spacing=500), *at_500) == "reproduced"
    assert verdict(claim(1000.0, 3000.0, scale="log", spacing=500), *at_500) == "contradicted"


def test_of_a_revised_range_both_verdicts_stand() -> None:
    c = claim(0.5, 1.5)
    assert before_revision(c, Revision(0.5, 1.5, "", ""), measured(1.0, 1.01)) == ""
    assert before_revision(c, Revision(5.0, 6.0, "abc", "why"), measured(1.0, 1.01)) == "contradicted"


def test_undecided_says_how_many_seeds_would_decide() -> None:
    judged = judge(claim(0.0, 1.0), measured(0.5, 0.9, 0.8))
    assert judged.verdict == "undecided"
    assert judged.n_needed is not None
    assert judged.n_needed >= 8
    assert judge(claim(0.0, 1.0), measured(0.5, 0.51, 0.49)).n_needed is None
    share = judge(claim(0.5, 1.0, scale="share"), measured(1, 1, 1, 0, 1, 1, 1, 0))
    assert share.verdict == "undecided"
    assert share.n_needed is not None
    assert 25 < share.n_needed < 45


def test_a_value_among_those_that_learnt_comes_with_their_share() -> None:
    for study in all_studies():
        shares = {c.runs for c in study.claims if c.scale == "share"}
        assert {c.runs for c in study.claims if c.among} <= shares


def test_every_effect_has_a_control_or_says_why_not() -> None:
    for _, c in CLAIMS:
        has_one = bool(c.control_names)
        assert has_one != bool(c.uncontrolled), c.name


def test_positive_values_with_an_upper_end_have_their_interval_on_the_log_scale() -> None:
    values = (0.1, 0.2, 0.9)
    for scale, open_above in (("nonnegative", UNBOUNDED), ("fraction", 0.75)):
        found = judge(claim(0.0, 0.45, scale=scale), measured(*values))
        assert found.interval == intervals.clipped(intervals.of(np.array(values), "log"), intervals.SCALES[scale])
        with_zero = judge(claim(0.0, 0.45, scale=scale), measured(0.0, *values))
        assert with_zero.interval == intervals.of(np.array([0.0, *values]), scale)
        without = judge(claim(0.05, open_above, scale=scale), measured(*values))
        assert without.interval == intervals.of(np.array(values), scale)
    assert judge(claim(-1.0, 0.45), measured(*values)).interval == intervals.of(np.array(values), "linear")


def test_a_mean_of_raw_losses_would_err_twice_as_often() -> None:
    """Why positive values are on the log scale: on the linear one, skewed values at the edge pass too often."""
    rng = np.random.default_rng(0)
    wrong = [verdict(claim(-9.0, math.exp(0.5)), *rng.lognormal(0, 1, 5)) == "reproduced" for _ in range(600)]
    right = [verdict(claim(0.0, 1.0, scale="log"), *rng.lognormal(0, 1, 5)) == "reproduced" for _ in range(600)]
    assert np.mean(wrong) > 0.15
    assert np.mean(right) < error_rates.allowed(600)


def test_unbounded_is_above_any_measured_value() -> None:
    assert verdict(claim(2.0, UNBOUNDED, scale="log"), 3.0, 3.1, 2.9) == "reproduced"
