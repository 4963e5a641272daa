"""The history of claims agrees with the table, and no row of it goes unsaid."""

import csv
import io
from pathlib import Path

import pytest

from icl_lab.store.readers import StoreError, read_csv
from icl_lab.studies import history
from icl_lab.studies.claim import Rival
from icl_lab.studies.history import ALL_CLAIMS, HISTORY, Event
from icl_lab.studies.study import all_studies
from tests.doors import ROOT

CLAIMS = {claim.name: claim for study in all_studies() for claim in study.claims}
OWNERS = {claim.name: (study, claim) for study in all_studies() for claim in study.claims}
EVENTS = history.read()
NAMES = list(dict.fromkeys(event.claim for event in EVENTS if event.claim != ALL_CLAIMS))
HEADER = ",".join(Event._fields)
FIRST = "a,2026-01-01,0123abcd,range,,,0.0,1.0,,"


def written(folder: Path, *rows: str) -> Path:
    path = folder / "history.csv"
    path.write_text("\n".join([HEADER, *rows]) + "\n")
    return path


def numbers_of_values() -> dict[tuple[str, int], int]:
    """How many values the table has of each reading."""
    table = read_csv(ROOT / "report/claims.csv", (), ("claim", "values"))
    counts: dict[tuple[str, int], int] = {}
    for _, row in table.iterrows():
        if row["values"] != "[]":
            reading = int(row["reading"]) if "reading" in table else history.last_look(row["claim"])
            counts[row["claim"], reading] = len(row["values"].split(","))
    assert len(counts) > 300
    return counts


def test_the_last_range_is_todays() -> None:
    ranges = {name: [event for event in history.events(name) if event.event == "range"] for name in CLAIMS}
    last = {name: (of_claim[-1].low, of_claim[-1].high) for name, of_claim in ranges.items()}
    assert last == {name: (claim.low, claim.high) for name, claim in CLAIMS.items()}
    first = {name: (of_claim[0].low, of_claim[0].high) for name, of_claim in ranges.items()}
    assert first == {name: history.first_range(name) for name in CLAIMS}
    assert sum(first[name] != last[name] for name in CLAIMS) > 40


def test_the_last_look_has_as_many_values_as_the_table() -> None:
    counts = numbers_of_values()
    last = {(name, history.last_look(name)): history.looks(name, history.last_look(name)) for name in CLAIMS}
    assert {read: n[-1] for read, n in last.items() if n} == {read: n for read, n in counts.items() if read in last}
    assert {read for read, n in last.items() if n} <= set(counts)


def test_a_planned_reading_names_the_seeds_of_its_runs() -> None:
    """n is committed before a claim is read."""
    planned = {event.claim: event for event in EVENTS if event.event == "planned"}  # the last plan of each
    assert len(planned) > 30
    for event in planned.values():
        study, claim = OWNERS[event.claim]
        seeds = study.runs[claim.runs].seeds if claim.runs else study.sampled_seeds
        assert event.n == len(seeds) >= 8, event
        assert f"seeds {seeds[0]} to {seeds[-1]}" in event.says
        assert not claim.cut or f"cut {claim.cut:g}" in event.says
        assert not isinstance(claim.control, Rival) or claim.control.name in event.says


def test_every_name_is_a_claim_or_says_what_became_of_it() -> None:
    """A name that is withdrawn today may not be a claim, and one that is no claim must be withdrawn or renamed."""
    gone = [event.claim for event in history.withdrawn()]
    assert len(gone) == len(set(gone)) >= 98
    assert {name for name in NAMES if name not in CLAIMS} == set(gone)
    assert set(CLAIMS) <= set(NAMES)
    for event in history.withdrawn():
        assert history.events(event.claim)[-1] == event
        assert set(event.says.split()) <= set(NAMES), event
    final = {event.claim: event.says for event in history.withdrawn() if event.event == "renamed"}
    assert set(final.values()) <= set(CLAIMS)


def test_a_claim_begins_with_its_range_and_its_looks_grow() -> None:
    """A range is committed before it judges; seeds are added to a reading, and readings are numbered from 1."""
    for name in NAMES:
        of_claim = history.events(name)
        assert of_claim[0].event == "range", name
        assert [event.date for event in of_claim] == sorted(event.date for event in of_claim), name
        numbers = list(dict.fromkeys(event.reading for event in of_claim if event.reading))
        assert numbers == list(range(1, len(numbers) + 1)), name
        for number in numbers:
            looks = history.looks(name, number)
            assert list(looks) == sorted(set(looks)), name


def test_a_rerun_is_of_the_seeds_of_the_look_before() -> None:
    n = dict[tuple[str, int], int]()
    for event in EVENTS:
        if event.event == "look":
            n[event.claim, event.reading] = event.n
        elif event.event == "rerun":
            assert n[event.claim, event.reading] == event.n, event


def test_the_looks_that_were_taken() -> None:
    """Further seeds were added to 131 readings, before a further look became a reading of its own; this ends here."""
    readings = [history.looks(name, number) for name in NAMES for number in range(1, history.last_reading(name) + 1)]
    several = [looks for looks in readings if len(looks) > 1]
    assert {ns: several.count(ns) for ns in several} == {(3, 8): 82, (3, 5): 31, (3, 5, 8): 10, (5, 8): 8}
    assert [history.looks("narrow_two_tasks", number) for number in (1, 2, 3, 4)] == [(3,), (5,), (5,), (5, 8)]
    assert [history.looks("regression_stage", number) for number in (1, 2, 3)] == [(3,), (3,), (3,)]


def test_looks_readings_and_revisions_of_a_small_history(tmp_path: Path) -> None:
    """The range before counts in units of today's measure alone; a fresh reading is no further look."""
    path = written(
        tmp_path,
        FIRST,
        "b,2026-01-01,,range,,,2.0,4.0,,",
        "*,2026-01-02,0123abcd,rule,,,,,another scale,it was skewed",
        "a,2026-01-02,0123abcd,look,1,3,,,undecided,",
        "a,2026-01-02,0123abcd,look,1,5,,,undecided,",
        "a,2026-01-03,0123abce,measure,,,0.0,1.0,the same in metres,it was in feet",
        "a,2026-01-03,0123abce,range,,,0.0,0.5,,any value passed",
        "b,2026-01-03,0123abce,range,,,2.0,3.0,,4 is what chance gives",
        "b,2026-01-04,0123abcf,measure,,,,,the median,a mean of two kinds",
        "b,2026-01-04,0123abcf,range,,,7.0,8.0,,of the median",
        'a,2026-01-05,0123abcf,look,2,8,,,reproduced,"fresh seeds, 8 to 15"',
    )
    assert history.looks("a", path=path) == (3, 5)
    assert history.looks("a", 2, path) == (8,)
    assert history.looks("a", 3, path) == history.looks("b", path=path) == history.looks("none", path=path) == ()
    assert (history.last_reading("a", path), history.last_reading("b", path)) == (2, 1)
    assert history.first_range("a", path) == (0.0, 1.0)
    assert history.first_range("none", path) is None
    assert history.earlier_range("a", path) == (0.0, 1.0, "0123abce", "any value passed")
    assert history.earlier_range("b", path) is None
    assert [event.says for event in history.events(ALL_CLAIMS, path)] == ["another scale"]
    assert history.withdrawn(path) == ()


BROKEN = {
    "b,2025-12-31,,range,,,0.0,1.0,,": "event 2, range of b: 2025-12-31 stands after 2026-01-01",
    "a,2026-01-02,,retold,,,,,,": "event 2, retold of a: an event is one of range, look, planned, rerun,",
    "a,2026-01-02,0123,range,,,0.0,1.0,,": "event 2, range of a: a commit has 8 hex digits",
    "a,2026-01-02,,range,,,1.0,0.0,,": "event 2, range of a: a range has two ends, the lower one first",
    "a,2026-01-02,,range,,,1.0,,,": "event 2, range of a: a range has two ends",
    "a,2026-01-02,,range,,,,,,": "event 2, range of a: a range has two ends",
    "a,2026-01-02,,range,,,nan,1.0,,": "event 2, range of a: a range has two ends",
    "a,2026-01-02,,look,1,,,,reproduced,": "event 2, look of a: a look has the number of its reading",
    "a,2026-01-02,,look,1,3,,,,": "event 2, look of a: a look has the number of its reading",
    "a,2026-01-02,,look,2,3,,,reproduced,": "event 2, look of a: it needs a reason",
    "a,2026-01-02,,rule,,,,,counted,": "event 2, rule of a: it needs a reason",
    "a,2026-01-02,,measure,,,,,the median,": "event 2, measure of a: it needs a reason",
    "a,2026-01-02,,rerun,1,3,,,reproduced,": "event 2, rerun of a: it needs a reason",
    "a,2026-01-02,,withdrawn,,,,,,": "event 2, withdrawn of a: it needs a reason",
    "a,2026-01-02,,renamed,,,,,,clearer": "event 2, renamed of a: a claim that is renamed has a new name",
    "a,2026-01-02,,range,,,0.0,2.0,,": "event 2, range of a: a revised range needs a reason",
    "a,2026-01-02,,look,one,3,,,reproduced,": r"its event 2 \(a\) has a word where a number stands",
    "a,some day,,range,,,0.0,1.0,,x": r"its event 2 \(a\) has a word where a number stands",
    "a,2026-01-02": "its line 3 has 2 fields, and the first one 10",
    "<<<<<<< HEAD": "its line 3 is the marker of a merge",
}


@pytest.mark.parametrize("row", BROKEN)
def test_what_is_no_history_is_said(row: str, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=rf"history\.csv.*{BROKEN[row]}"):
        history.read(written(tmp_path, FIRST, row))


def test_another_table_is_no_history(tmp_path: Path) -> None:
    path = tmp_path / "history.csv"
    path.write_text("claim,low\na,1\n")
    with pytest.raises(StoreError, match="has the columns claim,low"):
        history.read(path)
    with pytest.raises(StoreError, match="does not exist"):
        history.read(tmp_path / "none.csv")


def test_its_rows_are_as_a_program_writes_them() -> None:
    """So that a row that is added by hand is the only line that differs."""
    with HISTORY.open(newline="") as file:
        rows = list(csv.reader(file))
    assert HISTORY.read_text().splitlines() == [_line(row) for row in rows]


def _line(row: list[str]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="").writerow(row)
    return out.getvalue()
