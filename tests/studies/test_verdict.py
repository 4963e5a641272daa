"""Verdicts: two one-sided tests, controls, runs that did not learn; and how often each rule errs."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from icl_lab.src import intervals
from icl_lab.studies import error_rates
from icl_lab.studies.claim import OURS, THEORY, UNBOUNDED, Claim, Measurement, Rival, Without
from icl_lab.studies.history import Revision
from icl_lab.studies.study import all_studies
from icl_lab.studies.verdict import Judgement, before_revision, judge

CLAIMS = [(study, claim) for study in all_studies() for claim in study.claims]
ONE_GROUP = np.linspace(-1, 1, 8)  # of eight seeds, without a gap


def claim(low: float, high: float, **rules: Any) -> Claim:
    return Claim("c", "1", "says", low, low, high, "derived", float, **({"scale": "linear"} | rules))


def measured(*values: float, control: tuple[float, ...] = ()) -> Measurement:
    return Measurement(values, tuple(range(len(values))), 0.5, "cpu", "2026-01-01", "abc", control_values=control)


def verdict(c: Claim, *values: float, control: tuple[float, ...] = ()) -> str:
    """The verdict, whatever the number of seeds and the scale of the setting."""
    judged = judge(c, measured(*values, control=control))
    return judged.says if judged.verdict in ("provisional", "not at the paper's scale") else judged.verdict


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
    assert verdict(c, 1.0, 1.01, 0.99, control=(3.0, 3.01)) == "reproduced"
    assert verdict(c, 1.0, 1.01, 0.99, control=(3.0,)) == "uninformative"  # a value alone may be anything
    assert verdict(c, 5.0, 5.01) == "contradicted"
    assert verdict(c, 3.0, 3.01, 3.02) == "no effect"
    assert judge(c, measured(1.0, 1.6)).because == ""
    assert verdict(c._replace(control=Without("none applies")), 1.0, 1.01, 0.99) == "reproduced"


def both(judged: Judgement) -> tuple[str, str]:
    return judged.verdict, judged.says


@pytest.mark.parametrize(("level", "says"), [(1.0, "reproduced"), (5.0, "contradicted"), (3.0, "no effect")])
def test_below_8_seeds_a_verdict_is_provisional(level: float, says: str) -> None:
    c = claim(0.5, 1.5, no_effect=(2.9, 3.1))
    values = level + 0.01 * ONE_GROUP
    assert [both(judge(c, measured(*values[:n]))) for n in (3, 7)] == [("provisional", says)] * 2
    assert both(judge(c, measured(*values))) == (says, says)
    learnt = c._replace(among=bool)  # of nine runs two did not learn, which leaves seven
    assert both(judge(learnt, measured(*values[:7], math.nan, math.nan))) == ("provisional", says)


def test_what_is_undecided_is_not_provisional() -> None:
    assert both(judge(claim(0.5, 1.5), measured(1.0, 1.6))) == ("undecided", "undecided")


def test_theory_and_our_own_predictions_come_true_and_papers_are_reproduced() -> None:
    values = 1 + 0.01 * ONE_GROUP
    words = {"derived": "reproduced", "text": "reproduced", THEORY: "as predicted"}
    assert {source: judge(claim(0.5, 1.5)._replace(source=source), measured(*values)).verdict for source in words} == (
        words
    )
    own = claim(0.5, 1.5, about="ours", paper=OURS)
    assert judge(own, measured(*values)).verdict == "as predicted"
    assert judge(own, measured(*(4 + values))).verdict == "contradicted"


def test_a_rival_voids_by_its_interval_and_untrained_networks_by_their_estimate() -> None:
    """The interval's lower end by SciPy's t distribution, just inside the range and just outside."""
    values, others = 1 + 0.01 * ONE_GROUP, 2 + ONE_GROUP
    end = stats.t.interval(0.9, 7, others.mean(), stats.sem(others))[0]
    found = measured(*values, control=tuple(others))
    for high, verdict_with_rival in ((end + 1e-9, "uninformative"), (end - 1e-9, "reproduced")):
        weak = claim(0.5, high)
        judged = judge(weak._replace(control=Rival("another")), found)
        assert both(judged) == (verdict_with_rival, "reproduced")
        assert judged.because == ("its rival reaches the range" if verdict_with_rival == "uninformative" else "")
        assert judge(weak, found).verdict == "reproduced"
    for high, with_untrained in ((2 + 1e-9, "uninformative"), (2 - 1e-9, "reproduced")):
        assert judge(claim(0.5, high), found).verdict == with_untrained


@pytest.mark.parametrize(("sign", "expected"), [(-1, "uninformative"), (1, "undecided")])
def test_a_rival_that_is_not_clear_of_the_model_seed_by_seed_voids(sign: int, expected: str) -> None:
    """Outside the range itself; the same values in another order are clear of it. By SciPy's paired t test of logs.

    Of a reproduced claim the two intervals are apart, and the differences then always are.
    """
    logs, rivals = -0.02 + 0.3 * ONE_GROUP, 0.2 + 0.25 * sign * ONE_GROUP
    c = claim(0.5, 1.0, scale="log", control=Rival("another"))
    judged = judge(c, measured(*np.exp(logs), control=tuple(np.exp(rivals))))
    assert judged.control is not None
    assert judged.control.low > 1.0
    assert judged.difference is not None
    paired = stats.ttest_rel(logs, rivals).confidence_interval(0.9)
    assert judged.difference[1:3] == pytest.approx(paired, abs=1e-9)
    assert (paired.low <= 0 <= paired.high) == (expected == "uninformative")
    assert both(judged) == (expected, "undecided")
    assert judged.because == ("it does not differ from its rival" if sign < 0 else "")
    weak = c._replace(control=Without("none applies"))
    assert judge(weak, measured(*np.exp(logs), control=tuple(np.exp(rivals)))).difference is None


def test_differences_from_a_rival_need_the_same_seeds_and_numbers() -> None:
    c, values = claim(0.5, 1.0, scale="log", control=Rival("another"), among=bool), np.exp(ONE_GROUP)
    assert judge(c, measured(*values, control=(2.0, 2.1))).difference is None
    assert judge(c, measured(*values, control=(*values[1:], math.inf))).difference is None
    left_out = judge(c, measured(*values[:7], math.nan, control=(*(2 * values[:7]), 9.0))).difference
    assert left_out is not None
    assert left_out == pytest.approx((-math.log(2), -math.log(2), -math.log(2), 7))


def test_a_contradiction_and_no_effect_count_whatever_the_rival() -> None:
    c = claim(0.5, 1.5, no_effect=(2.9, 3.1), control=Rival("another"))
    for level, says in ((5.0, "contradicted"), (3.0, "no effect")):
        values = level + 0.01 * ONE_GROUP
        judged = judge(c, measured(*values, control=tuple(1 + 0.1 * values)))
        assert (both(judged), judged.because) == ((says, says), "")


@pytest.mark.parametrize(("level", "says"), [(1.0, "reproduced"), (5.0, "contradicted"), (3.0, "no effect")])
def test_a_smaller_setting_decides_nothing_of_the_papers_either_way(level: float, says: str) -> None:
    c = claim(0.5, 1.5, no_effect=(2.9, 3.1), smaller="a tenth of the steps")
    for n in (3, 8):
        judged = judge(c, measured(*(level + 0.01 * ONE_GROUP[:n])))
        assert both(judged) == ("not at the paper's scale", says)
    assert judge(c, measured(1.0, 1.6)).verdict == "undecided"
    void = judge(c._replace(control=Rival("another")), measured(*(level + 0.01 * ONE_GROUP), control=(1.0, 1.01)))
    assert void.verdict == ("uninformative" if says == "reproduced" else "not at the paper's scale")


def test_a_gap_between_two_kinds_withholds_the_verdict_of_a_mean_at_which_no_run_lies() -> None:
    """Four runs near 1 and four near 2, far apart for their deviation; spread evenly the same mean is reproduced."""
    kinds = np.concatenate([1 + 0.01 * ONE_GROUP[:4], 2 + 0.01 * ONE_GROUP[4:]])
    judged = judge(claim(0.5, 3.0), measured(*kinds))
    assert (both(judged), judged.n_needed) == (("undecided", "undecided"), None)
    assert judged.because.startswith("its runs are of two kinds, apart at 1.5")
    assert judged.gap is not None
    assert judged.gap.found
    assert (judged.gap.below, judged.gap.above) == (4, 4)
    assert judge(claim(0.5, 3.0), measured(*(1.5 + 0.5 * ONE_GROUP))).verdict == "reproduced"


@pytest.mark.parametrize(("inside", "expected"), [(25, "two kinds"), (26, "reproduced")])
def test_fresh_values_are_counted_by_the_cut(inside: int, expected: str) -> None:
    """Clopper and Pearson's lower end of the share in the range passes a half between 25 and 26 of 40, by SciPy."""
    c = claim(0.5, 1.4, cut=1.5)
    judged = judge(c, measured(*[1.0] * inside, *[2.0] * (40 - inside)))
    exact = stats.binomtest(inside, 40).proportion_ci(0.9, "exact")
    assert judged.kinds is not None
    assert judged.kinds == judged.share
    assert (judged.kinds.low, judged.kinds.high) == pytest.approx((exact.low, exact.high), abs=1e-12)
    assert (exact.low > 0.5) == (expected == "reproduced")
    assert both(judged) == (expected, expected)
    assert judged.gap is None


def test_a_kind_that_reaches_beyond_the_range_is_counted_but_not_as_inside() -> None:
    judged = judge(claim(0.5, 1.4, cut=1.5), measured(*[1.0] * 20, *[1.45] * 16, *[2.0] * 4))
    assert judged.kinds is not None
    assert judged.share is not None
    assert (judged.kinds.estimate, judged.share.estimate) == (0.9, 0.5)
    assert judged.verdict == "two kinds"


def test_of_fresh_values_on_one_side_of_the_cut_the_mean_speaks() -> None:
    c = claim(0.5, 1.4, cut=1.5)
    assert judge(c, measured(*(1 + 0.01 * ONE_GROUP))).verdict == "reproduced"
    assert judge(c, measured(*(2 + 0.01 * ONE_GROUP))).verdict == "contradicted"
    assert judge(c, measured(*(1.4 + 0.01 * ONE_GROUP))).verdict == "undecided"


def test_looks_widen_the_interval_that_is_judged_by() -> None:
    """Three looks, at 3, 5 and 8 seeds, leave each a one-sided level of .0212: an interval of 95.8 %, by SciPy."""
    values = 1 + 0.1 * ONE_GROUP
    once, thrice = (stats.t.interval(of, 7, 1.0, stats.sem(values)) for of in (0.9, 1 - 2 * 0.0212))
    judged = judge(claim(0.5, 1.5), measured(*values), (3, 5, 8)).interval
    assert judged is not None
    assert judged[1:3] == pytest.approx(thrice, rel=1e-12)
    between = claim((once[0] + thrice[0]) / 2, (once[1] + thrice[1]) / 2)
    assert judge(between, measured(*values), (8,)).verdict == "reproduced"
    assert judge(between, measured(*values), (3, 5, 8)).verdict == "undecided"
    every = judge(claim(0.0, 2.0, every=True), measured(*values), (3, 5, 8)).share
    assert every is not None
    assert every.low == pytest.approx(0.0212 ** (1 / 8), rel=1e-9)  # all of 8: p^8 is the level


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


def test_what_theory_derives_is_of_no_scale_and_what_we_find_is_of_our_own() -> None:
    """Only a paper's number, or our bound for its sentence, needs the paper's setting."""
    smaller = [c for _, c in CLAIMS if c.smaller]
    assert {c.origin for c in smaller} <= {"plot reading", "text", "bound"}
    assert {c.about for c in smaller} == {"paper"}


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
    assert before_revision(c, Revision(5.0, 6.0, "abc", "why"), None) == ""


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
        assert c.has_control != isinstance(c.control, Without), c.name
        assert not isinstance(c.control, Without) or c.control.reason, c.name


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
