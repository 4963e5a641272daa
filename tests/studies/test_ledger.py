"""The ledger: what counts as reproduced, what is kept, and that its definitions make sense."""

import math
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from icl_lab.store import outputs, rundir
from icl_lab.store.atomic import csv_bytes, write_bytes
from icl_lab.store.readers import StoreError
from icl_lab.studies import history, ledger, measuring, page
from icl_lab.studies.claim import (
    UNBOUNDED,
    UNTRAINED_SUFFIX,
    VON_OSWALD,
    Claim,
    Measurement,
    Rival,
    Without,
)
from icl_lab.studies.history import Revision
from icl_lab.studies.ledger import (
    ERROR_RATES,
    PAGE,
    earlier_rows,
    error_rates_in,
    known,
    read_measurements,
    row,
    rows_of,
    shown,
)
from icl_lab.studies.ledger import page as ledger_page
from icl_lab.studies.study import PROFILES, Study, all_studies, load, of_profile
from icl_lab.studies.template import accepted, control, place
from icl_lab.studies.template import measured as measured_words
from icl_lab.studies.template import verdict as verdict_words
from icl_lab.studies.verdict import judge
from tests.doors import Ran
from tests.runners.tiny import ROOT

REPORT = ROOT / "report"
CLAIMS = [claim for study in all_studies() for claim in study.claims]
RUNS = {name: runs for study in all_studies() for name, runs in study.runs.items()}
REMARKS = {name: remark for study in all_studies() for name, remark in study.remarks.items()}
A_STUDY = Study("a_study", remarks={"c": "too large"})
REPRODUCTION = load("reproduction")


def claim(low: float, high: float, profile: str = "quick") -> Claim:
    return Claim("c", "1", "says", 1.0, low, high, "derived", float, profile=profile, scale="linear")


def measured(*values: float) -> Measurement:
    return Measurement(values, tuple(range(len(values))), 0.5, "cpu", "2026-01-01", "abc", "def", ("a-1", "b-2"))


def written(path: Path, *rows: dict[str, Any]) -> None:
    write_bytes(path, csv_bytes(rows))


def test_what_was_measured_is_read_back_and_the_rest_is_not_run(tmp_path: Path) -> None:
    one, other = claim(0, 1), claim(0, 1)._replace(name="other")
    found = measured(0.25, 1 / 3)
    written(tmp_path / "claims.csv", row(A_STUDY, one, found), row(A_STUDY, other, None))
    assert read_measurements(tmp_path / "claims.csv") == {"c": found}
    assert read_measurements(tmp_path / "none.csv") == {}


def test_values_that_a_claim_cannot_have_are_named(tmp_path: Path) -> None:
    """As where it has another scale than when it was measured: a ratio of losses is above 0."""
    name = "one_layer_level"
    found = measured(1.0, -0.5)._replace(cells=())
    written(tmp_path / "claims.csv", row(A_STUDY, claim(0, 1)._replace(name=name), found))
    with pytest.raises(StoreError, match=rf"claims\.csv is not a ledger of claims: {name} has values"):
        known(tmp_path)


@pytest.mark.parametrize("name", ["reproduced_wrongly", "contradicted_wrongly"])
@pytest.mark.parametrize("rate", [-0.1, 1.1])
def test_rates_that_are_none_are_named(rate: float, name: str, tmp_path: Path) -> None:
    (tmp_path / "ledger").mkdir()
    right = {"reproduced_wrongly": 0.05, "contradicted_wrongly": 0.04}
    line = {"rule": "a", "distribution": "b", "looks": "3 5 8", "alpha": 0.021, **right, "draws": 10, "used": 1}
    written(tmp_path / ERROR_RATES, line | {name: rate})
    with pytest.raises(StoreError, match=r"error_rates\.csv has rates that are not between 0 and 1"):
        error_rates_in(tmp_path)
    written(tmp_path / ERROR_RATES, line)
    assert {name: error_rates_in(tmp_path)[0][name] for name in right} == right


def test_a_damaged_ledger_is_named(tmp_path: Path) -> None:
    path = tmp_path / "claims.csv"
    written(path, row(A_STUDY, claim(0, 1), measured(0.25)))
    path.write_text(path.read_text().replace("[0.25]", "[0.25"))
    with pytest.raises(StoreError, match=r"claims\.csv is not a ledger of claims"):
        read_measurements(path)


def test_a_measurement_of_runs_that_are_not_todays_is_not_run(tmp_path: Path) -> None:
    trained = next(c for c in CLAIMS if c.runs)
    names = tuple(cell.name for cell in RUNS[trained.runs].cells)
    for cells_then, expected in ((names, {trained.name}), (names[:3], {trained.name}), (("lsa1_seed0-0",), set())):
        written(tmp_path / "claims.csv", row(REPRODUCTION, trained, measured(1.0)._replace(cells=cells_then)))
        assert set(known(tmp_path)) == expected


def test_profiles_hold_each_other() -> None:
    items = [claim(0, 1, profile) for profile in PROFILES]
    assert [len(of_profile(items, profile)) for profile in PROFILES] == [1, 2, 3]


def test_definitions() -> None:
    assert len({c.name for c in CLAIMS}) == len(CLAIMS)
    for c in CLAIMS:
        # of 0 and 1 in every seed, all may have to be 1
        assert c.low < c.high or (c.every and c.low == c.high), c.name
        assert c.low <= c.expected <= c.high, c.name
        assert math.isfinite(c.high), c.name
        assert not c.runs or c.runs in RUNS, c.name
    named = {name for c in CLAIMS for name in (*c.run_names, *c.control_names)}
    drawn = {name for study in all_studies() for figure in study.figures for name in figure.run_names}
    read = {runs for runs in pd.read_csv(REPORT / "claims.csv")["runs"].dropna() if runs in RUNS}  # by any reading
    assert {name.removesuffix(UNTRAINED_SUFFIX) for name in named} | drawn | read == set(RUNS)
    assert all(set(RUNS[c.runs].seeds) <= set(RUNS[c.paired].seeds) for c in CLAIMS if c.paired)
    assert all(len(runs.seeds) >= 3 for runs in RUNS.values())
    assert sum(bool(c.runs) for c in CLAIMS) >= 0.7 * len(CLAIMS)
    assert len(of_profile(CLAIMS, "quick")) >= 15


@pytest.mark.parametrize(
    "left_out", [{*load("languages").runs}, pytest.param(set(), marks=pytest.mark.slow)], ids=["quick", "all"]
)
def test_runs_are_planned_apart(left_out: set[str]) -> None:
    """No two of them are one training by another name, but for those that a group of ten, or of lengths, shares, and
    those that stand in the place of another seed (`Runs.of_next_seeds`).

    Those of languages need pools of strings, which take a minute to build.
    """
    sharing = {"ten_seeds", "schedules"}
    sharing |= {name for name in RUNS if name.endswith("_next")}
    names = [cell.name for name in RUNS if name not in sharing | left_out for cell in RUNS[name].cells]
    assert len(set(names)) == len(names)


def test_a_claim_without_finished_runs_is_not_run(tmp_path: Path) -> None:
    trained = next(c for c in CLAIMS if c.runs)
    assert measuring.measure(REPRODUCTION, trained, tmp_path, "cpu") is None


@pytest.mark.parametrize(("width", "said"), [(1, "cpu, 1 threads"), (5, "cpu, 1 threads, in packs of 5")])
def test_a_claim_says_in_what_packs_its_runs_were_trained(
    width: int, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For a cell trained in another pack differs by rounding."""
    trained = next(c for c in CLAIMS if c.runs and not c.paired and not c.control_names and not c.among)
    ended = {seed: tmp_path / str(seed) for seed in REPRODUCTION.runs_of(trained.runs).seeds}
    meta = {"device": "cpu, 1 threads", "pack_width": width, "git_hash": "abc", "run_seconds": 6.0}
    monkeypatch.setattr("icl_lab.studies.runs.Runs.ended", lambda runs, folder: ended)
    monkeypatch.setattr(rundir, "read_meta", lambda run: meta | {"compile_seconds": 0.0})
    monkeypatch.setattr(rundir, "read_status", lambda run: "done")
    measurement = measuring.measure(REPRODUCTION, trained._replace(measure=lambda run: 1.0), tmp_path, "")
    assert measurement is not None
    assert (measurement.device, measurement.trained_at) == (said, "abc")
    assert measurement.minutes == pytest.approx(0.1 * len(ended) / width, abs=0.05)


def test_the_committed_ledger_is_made_from_its_table() -> None:
    measurements = known(REPORT)
    rows, earlier = rows_of(all_studies(), measurements), earlier_rows(REPORT)
    assert ledger_page(shown(rows, earlier), earlier, error_rates_in(REPORT)) == (REPORT / PAGE).read_text()
    for study in all_studies():
        for c in study.claims:
            if c.name in measurements:
                planned = study.runs[c.runs].seeds if c.runs else study.sampled_seeds
                assert set(measurements[c.name].seeds) <= set(planned), c.name


@pytest.mark.parametrize("name", [study.name for study in all_studies()])
def test_the_committed_page_of_a_study_is_made_from_the_committed_tables(name: str) -> None:
    study = load(name)
    profile = study.profiles[-1]
    assert (
        page.render(study, profile, ledger.rows_in(REPORT, [study]), REPORT)
        == (REPORT / page.name_of(study, profile)).read_text()
    )


def test_a_page_says_which_paper_and_no_number_that_is_none() -> None:
    bounded, open_above = claim(0.5, 1.0), claim(0.02, UNBOUNDED)
    assert [accepted(row(A_STUDY, c, None)) for c in (bounded, open_above)] == ["0.5 to 1", "at least 0.02"]
    around_0, above_0 = claim(-0.25, 0.25), claim(1e-6, UNBOUNDED)
    assert [accepted(row(A_STUDY, c, None)) for c in (around_0, above_0)] == ["-0.25 to 0.25", "above 0"]
    open_below, with_null = claim(-UNBOUNDED, -0.1), bounded._replace(no_effect=(1.02, 1.1))
    words = ["at most -0.1", "0.5 to 1; no effect: 1.02 to 1.1"]
    assert [accepted(row(A_STUDY, c, None)) for c in (open_below, with_null)] == words
    assert measured_words(row(A_STUDY, bounded, measured(1.0, 2.0, 3.0))) == "2.0 [0.3, 3.7]"
    assert measured_words(row(A_STUDY, bounded, measured(1.0, math.inf, math.inf))) == "diverged"
    wide = row(A_STUDY, bounded, measured(0.002, 40.0, 0.5)) | {"mean": 0.5, "mean_low": 0.0057, "mean_high": 40.3}
    assert measured_words(wide) == "0.5 [0.006, 40.3]"  # a positive number is never 0
    assert measured_words(wide | {"mean": -0.4, "mean_low": -0.8, "mean_high": -0.019}) == "-0.4 [-0.8, -0.02]"
    never = bounded._replace(infinite="no fall after a peak")
    assert measured_words(row(A_STUDY, never, measured(*[math.inf] * 5))) == "no fall after a peak"
    assert measured_words(row(A_STUDY, bounded, measured(1.0))) == "1, one run"
    assert measured_words(row(A_STUDY, bounded, None)) == ""
    every = row(A_STUDY, bounded._replace(every=True), measured(*[0.7] * 8))
    assert measured_words(every) == "8 of 8: at least 69 % of runs"
    assert verdict_words(row(A_STUDY, bounded, measured(*[0.7, 0.75, 0.8, 0.7] * 2))) == "reproduced"
    assert verdict_words(row(A_STUDY, bounded, measured(0.7, 0.75, 0.8))) == "provisional (reproduced at n = 3)"
    figures = {"2a": "Fig. 2a", "A.10": "App. A.10", "code": "published code", "1, depth": "Fig. 1, depth curve"}
    for figure, words in figures.items():
        assert place(row(A_STUDY, bounded._replace(figure=figure), None)) == f"von Oswald et al. 2023, {words}"
    assert place(row(A_STUDY, bounded._replace(figure="text"), None)) == "von Oswald et al. 2023, text"
    assert place(row(A_STUDY, bounded._replace(figure="curves"), None)) == "von Oswald et al. 2023"
    assert measured_words(row(A_STUDY, bounded, measured(2e10, 2e10))) == "over 100000 [over 100000, over 100000]"
    assert measured_words(row(A_STUDY, bounded, measured(2e-5, 2e-5))) == "0.00002 [0.00002, 0.00002]"
    for name in (PAGE, "task_diversity.md", "reproduction.md"):
        text = (REPORT / name).read_text()
        assert not any(word in text for word in ("e+0", "inf [", "nan", "None"))


def test_a_page_says_what_a_claim_is_compared_with() -> None:
    c, found = claim(0.5, 1.0)._replace(runs="r"), measured(*np.linspace(0.7, 0.77, 8))
    assert control(row(A_STUDY, c, found)) == "not measured (untrained, weak)"
    beside = found._replace(control_values=(2.0, 2.0))
    assert control(row(A_STUDY, c, beside)) == "2 [2, 2] (untrained, weak)"
    assert control(row(A_STUDY, c._replace(control=Without("both are trained")), found)) == "none: both are trained"
    assert control(row(A_STUDY, c._replace(runs=""), found)) == "none"
    rival = c._replace(control=Rival("ridge"))
    assert control(row(A_STUDY, rival, found)) == "not measured (ridge)"
    assert verdict_words(row(A_STUDY, rival, found)) == "undecided, its control is not measured"
    assert control(row(A_STUDY, rival, found._replace(control_values=(math.nan,)))) == "not defined (ridge)"
    later = row(A_STUDY, rival._replace(control=Rival("ridge", later=True)), beside)
    assert control(later) == "2 [2, 2] (ridge, chosen later)"
    assert [later[name] for name in ("control_kind", "control_chosen")] == ["rival", "later"]
    reached = row(A_STUDY, rival, found._replace(control_values=(0.9, 0.91)))
    assert verdict_words(reached) == "uninformative (reproduced at n = 8), its rival reaches the range"


def test_a_page_says_by_which_range_and_how_many_seeds_a_verdict_is(monkeypatch: pytest.MonkeyPatch) -> None:
    undecided = verdict_words(row(A_STUDY, claim(0.5, 1.0), measured(0.6, 1.2, 0.8)))
    needed = judge(claim(0.5, 1.0), measured(0.6, 1.2, 0.8)).n_needed
    assert undecided == f"undecided; {needed} fresh seeds would decide"
    endless = verdict_words(row(A_STUDY, claim(0.5, 1.0), measured(0.5, 0.9, 0.1)))
    assert endless == "undecided; more than 1000 fresh seeds would decide"
    kinds = row(A_STUDY, claim(0.5, 1.0)._replace(cut=1.5), measured(*[0.7] * 5, *[2.0] * 3))
    assert verdict_words(kinds) == "two kinds, 5 of 8 [0.29, 0.89]"
    monkeypatch.setattr(history, "earlier_range", lambda name: Revision(0.0, 3.0, "abc", "why"))
    revised = row(A_STUDY, claim(0.5, 1.0), measured(1.9, 2.0, 2.1))
    assert accepted(revised) == "0.5 to 1 (was at most 3)"
    assert verdict_words(revised) == "provisional (contradicted at n = 3); by the first range reproduced"


def test_a_claim_that_was_read_three_times_has_the_interval_of_its_looks() -> None:
    """At 3, 5 and 8 seeds; 95.8 % of them in place of 90."""
    study, looked_at = next(
        (study, c) for study in all_studies() for c in study.claims if history.looks(c.name) == (3, 5, 8)
    )
    line = row(study, looked_at, measured(*[looked_at.expected] * 8), 1)
    assert (line["looks"], round(line["level"], 3)) == ("3 5 8", 0.958)
    assert row(A_STUDY, claim(0, 1), measured(*[0.5] * 8))["level"] == 0.9


def table_of(folder: Path) -> dict[tuple[str, int], dict[str, Any]]:
    """The rows of claims.csv, by claim and reading; "" for what is empty."""
    table = pd.read_csv(folder / "claims.csv").astype(object).fillna("")
    return {(str(line["claim"]), int(line["reading"])): line for line in table.to_dict("records")}


def test_a_further_reading_leaves_the_row_of_the_one_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its own range, rival, cut and values, by which it is judged again: its verdict follows today's rules."""
    number = 1
    monkeypatch.setattr(history, "last_reading", lambda name: number)
    first = claim(0.5, 1.5)._replace(control=Rival("ridge"), no_effect=(2.9, 3.1), cut=1.6)
    found = measured(*[0.9, 1.0] * 4)._replace(cells=(), control_values=tuple([3.0, 3.5] * 4))
    monkeypatch.setattr(ledger, "all_studies", lambda: [Study("a_study", claims=[first])])
    ledger.write(tmp_path, {"c": found})
    before = table_of(tmp_path)["c", 1]
    assert (before["verdict"], before["control_chosen"], before["cut"]) == ("reproduced", "before", 1.6)
    path = tmp_path / "claims.csv"
    told_by_other_rules = path.read_text().replace(",reproduced,reproduced,", ",partly,partly,")
    outputs.write({path: told_by_other_rules.encode()}, ledger.WRITER)
    assert table_of(tmp_path)["c", 1]["verdict"] == "partly"

    number = 2
    second = claim(5.0, 6.0)._replace(control=Without("none applies"), expected=5.5)
    monkeypatch.setattr(ledger, "all_studies", lambda: [Study("a_study", claims=[second])])
    assert known(tmp_path) == {}
    fresh = measured(*np.linspace(5.4, 5.5, 8))._replace(cells=(), seeds=tuple(range(1000, 1008)))
    ledger.write(tmp_path, {"c": fresh})
    after = table_of(tmp_path)
    assert [*after] == [("c", 2), ("c", 1)]
    assert after["c", 1] == before
    assert (after["c", 2]["low"], after["c", 2]["verdict"]) == (5.0, "reproduced")
    assert known(tmp_path) == {"c": fresh}
    assert read_measurements(path) == {"c": fresh}
    assert "Earlier readings (1) have their own rows" in " ".join((tmp_path / PAGE).read_text().split())


def test_in_a_table_without_readings_a_row_is_of_the_last_that_was_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that what was planned since has no row yet, and the one that is there is of an earlier reading."""
    monkeypatch.setattr(history, "last_reading", lambda name: 2)
    monkeypatch.setattr(history, "last_look", lambda name: 1)
    path, found = tmp_path / "claims.csv", measured(*[0.25, 0.5] * 4)
    line = row(A_STUDY, claim(0, 1), found)
    written(path, {name: value for name, value in line.items() if name != "reading"})
    assert read_measurements(path) == {"c": found}
    study = Study("a_study", claims=[claim(0, 1)])
    monkeypatch.setattr(ledger, "all_studies", lambda: [study])
    assert (known(tmp_path), len(earlier_rows(tmp_path))) == ({}, 1)


def test_main_results_have_a_rival_and_seeds_of_their_own() -> None:
    """At least 8, at one look; settings share no seed, so that their test tasks are not the same either."""
    main = [(study, c) for study in all_studies() for c in study.claims if c.tier == "main"]
    assert len(main) >= 25
    for study, c in main:
        assert isinstance(c.control, Rival), c.name
        assert c.control.name, c.name
        assert not c.control.later, c.name
        seeds = study.runs[c.runs].seeds if c.runs else study.sampled_seeds
        assert len(seeds) >= 8, c.name
        assert len(history.looks(c.name, history.last_reading(c.name))) <= 1, c.name


def test_settings_of_fresh_readings_share_no_seed() -> None:
    """But for runs that a claim pairs seed by seed, and controls of the same seeds."""
    paired = {frozenset((c.runs, c.paired)) for c in CLAIMS if c.paired}
    paired |= {frozenset((c.runs, name)) for c in CLAIMS if isinstance(c.control, Rival) for name in c.control.runs}
    fresh = [name for name in RUNS if name.endswith(("_main", "_decided"))]
    assert len(fresh) >= 20
    for name, other in combinations(fresh, 2):
        shared = set(RUNS[name].seeds) & set(RUNS[other].seeds)
        assert not shared or frozenset((name, other)) in paired, (name, other)
    elsewhere = {seed for name in RUNS if name not in fresh for seed in RUNS[name].seeds}
    assert not elsewhere & {seed for name in fresh for seed in RUNS[name].seeds}


def test_a_line_says_whose_claim_it_is_and_how_to_measure_it() -> None:
    line = row(A_STUDY, claim(0.0, 1.0), measured(2.0))
    assert (line["paper"], line["figure"], line["remark"]) == (VON_OSWALD, "1", "too large")
    assert line["command"] == "python -m studies.run a_study --claims c"
    assert row(A_STUDY, claim(0.0, 1.0), measured(0.5, 0.51))["remark"] == ""


def test_what_was_not_reproduced_has_a_remark_and_remarks_are_of_claims() -> None:
    found = known(REPORT)
    missed = {c.name for c in CLAIMS if judge(c, found.get(c.name)).verdict in ("contradicted", "uninformative")}
    assert missed <= set(REMARKS) <= {c.name for c in CLAIMS}


def test_a_claim_that_is_none_is_one_sentence(ran: Ran) -> None:
    done = ran("studies.run", "reproduction", "--claims", "one_layer_los")
    assert (done.status, done.out) == (2, "")
    assert done.err == "error: unknown claim 'one_layer_los', did you mean one_layer_loss?\n"


def test_a_claim_of_a_user_has_no_history_of_ours() -> None:
    """A conjecture may measure what a claim of ours is called."""
    name = next(c.name for c in CLAIMS if len(history.looks(c.name, history.last_reading(c.name))) > 1)
    one, found = claim(0, 1)._replace(name=name), measured(*[0.5, 0.6, 0.55] * 3)
    ours, own = (row(Study("a_study", file=file), one, found) for file in (None, Path("mine.py")))
    assert (own["reading"], own["looks"], own["level"], own["range"]) == (1, "", 0.9, "original")
    assert ours["level"] > 0.9
    assert ours["mean_low"] < own["mean_low"]


def test_a_planned_reading_shows_the_one_before_until_it_is_measured() -> None:
    before = row(A_STUDY, claim(0, 1), measured(0.5, 0.6, 0.55, 0.58, 0.52, 0.61, 0.49, 0.56), reading=1)
    planned = row(A_STUDY, claim(0, 1), None, reading=2)
    (line,) = shown([planned], [before])
    assert (line["reading"], line["planned"], line["mean"]) == (1, 2, before["mean"])
    assert verdict_words(line).endswith("; reading 2 is planned")
    fresh = row(A_STUDY, claim(0, 1), measured(0.7, 0.8, 0.75, 0.78, 0.72, 0.81, 0.69, 0.76), reading=2)
    assert shown([fresh], [before]) == [fresh]
    assert shown([planned], []) == [planned]
