"""Errors of the rules under the looks that were taken; many studies at once are judged as each of them is."""

import numpy as np
import pytest
from scipy import stats

from icl_lab.src import intervals
from icl_lab.studies import decisions, error_rates, worst_cases
from icl_lab.studies.claim import Claim, Measurement
from icl_lab.studies.verdict import verdict_of
from icl_lab.studies.worst_cases import Case, after_looks

AS_NUMBER = {"reproduced": 1, "contradicted": -1, "undecided": 0}
JUDGED = [case for case in worst_cases.cases() if case.decide is after_looks]
DRAWS = 4000


def values_of(case: Case, studies: int, n: int) -> np.ndarray:
    return case.draw(np.random.default_rng(1), (studies, n))


def one_by_one(claim: Claim, values: np.ndarray, looks: tuple[int, ...]) -> list[int]:
    """What the numbers of each study say at its first look with a verdict."""

    def at(row: np.ndarray, n: int) -> int:
        study = Measurement(tuple(row[:n]), tuple(range(n)), 0.0, "", "", "")
        return AS_NUMBER[verdict_of(claim, study, looks).says]

    return [next((found for n in looks if (found := at(row, n))), 0) for row in values]


@pytest.mark.parametrize("case", JUDGED, ids=[f"{case.rule}, {case.distribution}" for case in JUDGED])
def test_many_studies_at_once_are_judged_as_each_of_them_is(case: Case) -> None:
    """At one look and at several, whose intervals are wider."""
    values = values_of(case, 40, 8)
    for looks in ((3,), (8,), (3, 8), (3, 5, 8)):
        assert after_looks(case.claim, values, looks).tolist() == one_by_one(case.claim, values, looks)


@pytest.mark.parametrize("rule", ["linear, an upper end", "median, an upper end", "share of runs, at least 0.5"])
def test_at_other_levels_intervals_are_of_that_level(rule: str) -> None:
    case = next(case for case in JUDGED if case.rule == rule)
    values, claim = values_of(case, 60, 8), case.claim
    for level in (0.5, 0.958):
        found = [intervals.of(row, claim.scale, level) for row in values]
        inside = [claim.low <= one.low and one.high <= claim.high and np.isfinite(one.estimate) for one in found]
        outside = [one.high < claim.low or one.low > claim.high for one in found]
        assert decisions.decisions(claim, values, level).tolist() == (np.array(inside, int) - outside).tolist()


def test_a_study_stops_at_its_first_verdict() -> None:
    """Three values well inside, then five outside; and three that say nothing, then the verdict of eight."""
    claim = JUDGED[0].claim  # at most 1
    first = np.array([[0.0, 0.4, -0.4, 4.0, 5.0, 6.0, 5.0, 4.5], [0.9, 1.1, 1.3, 2.0, 3.0, 4.0, 2.5, 3.5]])
    assert after_looks(claim, first, (3, 8)).tolist() == [1, -1]
    assert after_looks(claim, first, (8,)).tolist() == [-1, -1]


def test_no_rule_errs_in_more_than_5_percent_under_the_looks_that_were_taken() -> None:
    """Both errors, within three standard errors of the simulation; what was given up errs more often."""
    found = error_rates.rates(DRAWS)
    assert [row for row in found if error_rates.exceeds(row)] == []
    used = {(row["rule"], row["looks"]): row for row in found if row["used"]}
    assert {looks for _, looks in used} >= {"3", "5", "8", "10", "40", "3 5", "3 8", "5 8", "3 5 8"}
    exact = used["linear, an upper end", "3 5 8"]  # a rule whose values have the distribution of its theory
    for name in ("reproduced_wrongly", "contradicted_wrongly"):
        assert exact[name] == pytest.approx(0.05, abs=exact["allowed"] - 0.05)
    unused = {(row["rule"], row["distribution"], row["looks"]): row for row in found if not row["used"]}
    allowed = exact["allowed"]
    assert unused["mean of all", "a third of runs stuck", "3"]["reproduced_wrongly"] > allowed
    assert unused["linear, an upper end", "lognormal", "3"]["reproduced_wrongly"] > allowed
    assert unused["linear, a lower end", "lognormal", "8"]["contradicted_wrongly"] > allowed
    assert unused["the level of one look", "normal", "3 5 8"]["contradicted_wrongly"] > 0.09


def test_either_error_counts() -> None:
    right = {"used": 1, "allowed": 0.06, "reproduced_wrongly": 0.05, "contradicted_wrongly": 0.05}
    assert not error_rates.exceeds(right)
    assert error_rates.exceeds(right | {"reproduced_wrongly": 0.07})
    assert error_rates.exceeds(right | {"contradicted_wrongly": 0.07})
    assert not error_rates.exceeds(right | {"contradicted_wrongly": 0.07, "used": 0})


def test_counts_by_a_cut_err_as_the_binomial_distribution_says() -> None:
    """Of 8 with chance 1/2 inside: 7 or 8 exceed half, in 9 of 256 studies."""
    case = next(case for case in worst_cases.cases() if case.rule == "counted by a cut")
    row = next(row for row in error_rates.rows(case, DRAWS) if row["looks"] == "8")
    exact = stats.binom.sf(6, 8, 0.5)
    assert exact == 9 / 256
    assert row["reproduced_wrongly"] == pytest.approx(exact, abs=3 * np.sqrt(exact * (1 - exact) / DRAWS))
    assert row["contradicted_wrongly"] == 0
