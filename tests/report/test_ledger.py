"""The ledger: what counts as reproduced, what is kept, and that its definitions make sense."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from report import measuring
from report.claims import CLAIMS, RUNS
from report.ledger import (
    PROFILES,
    VON_OSWALD,
    Claim,
    Measurement,
    of_profile,
    read_measurements,
    row,
    verdict,
    write_ledger,
)
from report.remarks import REMARKS
from report.studies import STUDIES
from store.readers import StoreError
from sweeps.plan import cells, plan
from tests.doors import Ran

REPORT = Path(measuring.__file__).parent


def claim(low: float, high: float, profile: str = "quick") -> Claim:
    return Claim("c", "1", "says", 1.0, low, high, "derived", float, profile=profile)


def measured(*values: float) -> Measurement:
    return Measurement(values, tuple(range(len(values))), 0.5, "cpu", "2026-01-01", "abc", "def", ("a-1", "b-2"))


def test_reproduced_is_a_mean_in_the_range_whatever_its_spread() -> None:
    assert verdict(claim(0.9, 1.1), measured(0.5, 1.0, 1.5)) == "reproduced"
    assert verdict(claim(1.0, 1.0), measured(1.0, 1.0)) == "reproduced"  # both ends are in it
    assert verdict(claim(0.9, 1e9), measured(1e9)) == "reproduced"


def test_partly_is_a_seed_inside_and_an_interval_that_reaches_the_range() -> None:
    values = np.array([1.0, *[2.0] * 4])
    half = stats.t.interval(0.95, 4, 0, values.std(ddof=1) / np.sqrt(5))[1]
    assert 1.8 - half == pytest.approx(1.245, abs=1e-3)
    assert verdict(claim(0.0, 1.25), measured(*values)) == "partly"
    assert verdict(claim(0.0, 1.24), measured(*values)) == "not"  # a seed is inside, but the mean is clearly not
    assert verdict(claim(0.0, 1.0), measured(1.1)) == "not"  # a value alone has no interval
    assert verdict(claim(0.0, 1.0), measured(math.nan, 0.5)) == "not"
    assert verdict(claim(0.0, 1.0), measured(math.inf, 0.5)) == "not"
    assert verdict(claim(0.0, 1.0), measured(1.01, 1.5, 2.0)) == "not"  # wide, but no seed is inside
    assert verdict(claim(0.0, 1.0), None) == "not run"


def test_a_mean_may_have_to_be_so_many_standard_errors_from_0() -> None:
    """1, 2, 3 have a mean of 2 and a standard error of 1 / sqrt(3): 3.46 of them from 0."""
    values = measured(1.0, 2.0, 3.0)
    assert verdict(claim(1.5, 9.0)._replace(errors=3.4), values) == "reproduced"
    assert verdict(claim(1.5, 9.0)._replace(errors=3.5), values) == "partly"


def test_what_is_said_of_every_seed_is_judged_by_each() -> None:
    every = claim(0.0, 4000.0)._replace(every=True)
    assert verdict(every, measured(*[500.0] * 9, 3900.0)) == "reproduced"
    assert verdict(every, measured(*[500.0] * 9, 5000.0)) == "partly"
    assert verdict(every, measured(5000.0, 6000.0)) == "not"


@pytest.mark.parametrize("c", CLAIMS, ids=lambda c: c.name)
def test_no_claim_is_reproduced_by_what_diverged(c: Claim) -> None:
    for value in (math.inf, -math.inf, math.nan):
        assert verdict(c, measured(value, value, value)) == "not"


def test_what_was_measured_is_read_back_and_the_rest_is_not_run(tmp_path: Path) -> None:
    one, other = claim(0, 1), claim(0, 1)._replace(name="other")
    found = measured(0.25, 1 / 3)
    write_ledger(tmp_path / "claims.csv", [row(one, found), row(other, None)])
    assert read_measurements(tmp_path / "claims.csv") == {"c": found}
    assert read_measurements(tmp_path / "none.csv") == {}


def test_a_damaged_ledger_is_named(tmp_path: Path) -> None:
    path = tmp_path / "claims.csv"
    write_ledger(path, [row(claim(0, 1), measured(0.25))])
    path.write_text(path.read_text().replace("[0.25]", "[0.25"))
    with pytest.raises(StoreError, match=r"claims\.csv is not a ledger of claims"):
        read_measurements(path)


def test_a_measurement_of_runs_that_are_not_todays_is_not_run(tmp_path: Path) -> None:
    trained = next(c for c in CLAIMS if c.runs)
    names = tuple(cell.name for cell in measuring.cells_of(trained.runs))
    for cells_then, expected in ((names, {trained.name}), (("lsa1_seed0-0",), set())):
        write_ledger(tmp_path / "claims.csv", [row(trained, measured(1.0)._replace(cells=cells_then))])
        assert set(measuring.known(tmp_path)) == expected


def test_profiles_hold_each_other() -> None:
    items = [claim(0, 1, profile) for profile in PROFILES]
    assert [len(of_profile(items, profile)) for profile in PROFILES] == [1, 2, 3]


def test_definitions() -> None:
    assert len({c.name for c in CLAIMS}) == len(CLAIMS)
    for c in CLAIMS:
        assert c.low < c.high, c.name
        assert c.low <= c.expected <= c.high, c.name
        assert math.isfinite(c.high), c.name
        assert not c.runs or c.runs in RUNS, c.name
    assert {name for c in CLAIMS for name in (c.runs, c.beside) if name} == set(RUNS)
    assert all(RUNS[c.runs].seeds == RUNS[c.beside].seeds for c in CLAIMS if c.beside)
    assert all(len(runs.seeds) >= 3 for runs in RUNS.values())
    assert sum(bool(c.runs) for c in CLAIMS) >= 0.7 * len(CLAIMS)
    assert len(of_profile(CLAIMS, "quick")) >= 15


def test_runs_are_planned_apart() -> None:
    """No two of them are one training by another name, but for the seeds that ten of them share with three."""
    names = [cell.name for name in RUNS if name != "ten_seeds" for cell in cells(plan([RUNS[name].grid]))]
    assert len(set(names)) == len(names)


def test_a_claim_without_finished_runs_is_not_run(tmp_path: Path) -> None:
    trained = next(c for c in CLAIMS if c.runs)
    assert measuring.measure(trained, tmp_path, "cpu") is None


@pytest.mark.skipif(not (REPORT / measuring.TABLE).exists(), reason="nothing has been measured yet")
def test_the_committed_page_is_made_from_the_committed_table() -> None:
    found = measuring.known(REPORT)
    rows = [measuring.line(c, found.get(c.name)) for c in CLAIMS]
    assert measuring.page(rows) == (REPORT / measuring.PAGE).read_text()
    for c in CLAIMS:
        if c.name in found:
            assert json.loads(json.dumps(found[c.name].values)) == list(found[c.name].values)
            assert found[c.name].seeds == (RUNS[c.runs].seeds if c.runs else measuring.SEEDS), c.name


@pytest.mark.parametrize("command", [name for name, study in STUDIES.items() if study.page])
def test_the_committed_page_of_a_study_is_made_from_the_committed_table(command: str) -> None:
    assert measuring.study_page(command, REPORT) == (REPORT / STUDIES[command].page).read_text()


def test_a_line_says_whose_claim_it_is_and_how_to_measure_it() -> None:
    line = row(claim(0.0, 1.0), measured(2.0), "too large")
    assert (line["paper"], line["figure"], line["remark"]) == (VON_OSWALD, "1", "too large")
    assert line["command"] == "python -m report.reproduce --claims c"
    assert row(claim(0.0, 1.0), measured(0.5), "too large")["remark"] == ""


def test_what_was_not_reproduced_has_a_remark_and_remarks_are_of_claims() -> None:
    found = measuring.known(REPORT)
    missed = {c.name for c in CLAIMS if verdict(c, found.get(c.name)) in ("not", "partly")}
    assert missed <= set(REMARKS) <= {c.name for c in CLAIMS}


def test_a_claim_that_is_none_is_one_sentence(ran: Ran) -> None:
    done = ran("report.reproduce", "--claims", "one_layer_los")
    assert (done.status, done.out) == (2, "")
    assert done.err == "error: there is no claim 'one_layer_los', did you mean one_layer_loss?\n"
