"""The ledger: every claim of every study, with its measurement and verdict, as claims.csv and claims.md.

Verdicts are recomputed from range and values each time the ledger is written.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from icl_lab.src.intervals import Interval
from icl_lab.store import outputs
from icl_lab.store.atomic import csv_bytes
from icl_lab.store.lock import locked_file
from icl_lab.store.readers import StoreError, expecting, read_csv
from icl_lab.studies import history, two_kinds
from icl_lab.studies.claim import LISTS, ORIGINS, OURS, UNTRAINED_SUFFIX, Claim, Measurement, Rival, Untrained, Without
from icl_lab.studies.dependence import facts, groups, outcomes, tasks_by_run
from icl_lab.studies.history import Revision
from icl_lab.studies.study import RUNS_DIRS, Study, all_studies
from icl_lab.studies.template import rendered
from icl_lab.studies.verdict import Judgement, before_revision, judge, level
from icl_lab.studies.words import HOLDS, MAIN_SEEDS, NOT_RUN, VERDICTS, legend, words_of
from icl_lab.sweeps.table import LOCK_TIMEOUT

WRITER = "report"  # of tables and pages in report/
TABLE, PAGE, INDEX = "claims.csv", "claims.md", "index.json"
ERROR_RATES = "ledger/error_rates.csv"
GAPS = (10, 15)  # standard deviations between two kinds, of which the power of the test is told
WRONGLY = ("reproduced_wrongly", "contradicted_wrongly")  # its rates
TEMPLATE = Path(__file__).with_name("claims.md.j2")

Row = dict[str, Any]


def row(study: Study, claim: Claim, measurement: Measurement | None, reading: int | None = None) -> Row:
    """A claim's line of the ledger, of its last reading or another; what limits it if it does not hold."""
    past = _past(study, claim, reading)
    looks = past.looks if measurement is not None else ()
    judged = judge(claim, measurement, looks)
    earlier_verdict = before_revision(claim, past.range, measurement, looks)
    return {
        "claim": claim.name,
        "reading": past.reading,
        "planned": None,
        **_stated(claim, past.range),
        **_numbers(judged.interval, looks, claim.infinite),
        **_verdict(judged, earlier_verdict),
        **_kinds(judged),
        **_control(claim, judged),
        "smaller": claim.smaller,
        "profile": claim.profile,
        "command": study.command_of(claim),
        "runs": claim.runs,
        **_measured(measurement),
        "remark": "" if judged.says in HOLDS else study.remarks.get(claim.name, ""),
    }


class Past(NamedTuple):
    """The number of a reading, the numbers of seeds at which it was looked at, and the claim's range before today's."""

    reading: int
    looks: tuple[int, ...]
    range: Revision


def _past(study: Study, claim: Claim, reading: int | None) -> Past:
    """What the history has of a claim; it is that of the studies here, whatever a user's claims are called."""
    unrevised = Revision(claim.low, claim.high, "", "")
    if study.file is not None:
        return Past(1, (), unrevised)
    number = history.last_reading(claim.name) if reading is None else reading
    return Past(number, history.looks(claim.name, number), history.earlier_range(claim.name) or unrevised)


def _stated(claim: Claim, earlier: Revision) -> Row:
    """What is claimed, the range and where it comes from, and the range before it was revised."""
    no_effect = claim.no_effect or (None, None)
    return {
        "tier": claim.tier,
        "fact": claim.fact or claim.name,
        "about": claim.about,
        "paper": claim.paper,
        "figure": claim.figure,
        "says": claim.says,
        "expected": claim.expected,
        "low": claim.low,
        "high": claim.high,
        "no_effect_low": no_effect[0],
        "no_effect_high": no_effect[1],
        "cut": claim.cut,
        "source": claim.origin,
        "range": "revised" if earlier.commit else "original",
        "earlier_low": earlier.low,
        "earlier_high": earlier.high,
        "revised_at": earlier.commit,
        "revised_because": earlier.reason,
        "scale": claim.scale,
    }


def _numbers(interval: Interval | None, looks: Sequence[int], infinite: str) -> Row:
    """The estimate, and the interval that is judged by."""
    return {
        "mean": interval and interval.estimate,
        "mean_low": interval and interval.low,
        "mean_high": interval and interval.high,
        "level": level(looks),
        "looks": " ".join(map(str, looks)),
        "infinite": infinite,
        "n": interval.n if interval else 0,
    }


def _verdict(judged: Judgement, earlier: str) -> Row:
    """The verdict, what the numbers alone say, and what would decide it."""
    return {
        "verdict": judged.verdict,
        "reading_says": judged.says,
        "because": judged.because,
        "earlier_verdict": earlier,
        "n_needed": judged.n_needed,
        "share": judged.share and judged.share.estimate,
        "share_low": judged.share and judged.share.low,
    }


def _measured(measurement: Measurement | None) -> Row:
    """The values by seed, and where they come from."""
    measured = measurement or Measurement((), (), float("nan"), "", "", "")
    return {
        "values": json.dumps(measured.values),
        "seeds": json.dumps(measured.seeds),
        "control_values": json.dumps(measured.control_values),
        "minutes": None if measurement is None else measured.minutes,
        "device": measured.device,
        "date": measured.date,
        "git_hash": measured.git_hash,
        "trained_at": measured.trained_at,
        "cells": " ".join(measured.cells),
    }


def _kinds(judged: Judgement) -> Row:
    """The gap between two kinds of runs, and how many are of the kind on the range's side of the cut."""
    gap, kinds = judged.gap, judged.kinds
    return {
        "gap": gap and gap.statistic,
        "gap_critical": gap and gap.critical,
        "gap_at": gap.cut if gap and gap.found else None,
        "of_kind": kinds and round(kinds.estimate * kinds.n),
        "of_kind_low": kinds and kinds.low,
        "of_kind_high": kinds and kinds.high,
    }


def _control(claim: Claim, judged: Judgement) -> Row:
    """What the claim is compared with, and whether it was chosen before values were read."""
    control, difference = judged.control, judged.difference
    rival = claim.control if isinstance(claim.control, Rival) else None
    return {
        "control": rival.name if rival else "the same networks untrained" if claim.control_names else "",
        "control_kind": "rival" if rival else "weak" if claim.control_names else "none",
        "control_chosen": "" if rival is None else "later" if rival.later else "before",
        "control_mean": control and control.estimate,
        "control_low": control and control.low,
        "control_high": control and control.high,
        "difference_low": difference and difference.low,
        "difference_high": difference and difference.high,
        "uncontrolled": claim.control.reason if isinstance(claim.control, Without) else "",
    }


def rows_of(studies: Sequence[Study], measurements: Mapping[str, Measurement]) -> list[Row]:
    """The lines of these studies' claims, each of its last reading."""
    return [row(study, claim, measurements.get(claim.name)) for study in studies for claim in study.claims]


def rows_in(out: Path, studies: Sequence[Study]) -> list[Row]:
    """The lines of these studies' claims as pages show them, from the ledger in a folder."""
    return shown(rows_of(studies, known(out, studies)), earlier_rows(out, studies))


def shown(rows: Sequence[Row], earlier: Sequence[Row]) -> list[Row]:
    """The lines, of a reading that is planned and not measured the one before it; `planned` is then its number."""
    before: dict[str, Row] = {}
    for line in sorted(earlier, key=lambda line: int(line["reading"])):
        before[line["claim"]] = line
    return [
        before[line["claim"]] | {"tier": line["tier"], "planned": line["reading"]}
        if line["verdict"] == NOT_RUN and line["claim"] in before
        else line
        for line in rows
    ]


def write(out: Path, measured: Mapping[str, Measurement], studies: Sequence[Study] = ()) -> None:
    """Writes claims.csv and claims.md: these measurements, and of the studies' other claims those that are there.

    studies: a user's, whose table has no page of all claims; () for those of the house.
    Rows of earlier readings stay.
    """
    with locked_file(out / TABLE, LOCK_TIMEOUT):  # shards of a study write one ledger
        found = known(out, studies) | dict(measured)
        rows, earlier = rows_of(studies or all_studies(), found), earlier_rows(out, studies)
        outputs.write({out / TABLE: csv_bytes([*rows, *earlier])}, WRITER)
        if not studies:
            outputs.write({out / PAGE: page(shown(rows, earlier), earlier, error_rates_in(out)).encode()}, WRITER)


def earlier_rows(out: Path, studies: Sequence[Study] = ()) -> list[Row]:
    """The lines of readings before the last of each claim, judged again by the range that they were read with."""
    claims = {claim.name: (study, claim) for study in studies or all_studies() for claim in study.claims}
    return [
        row(claims[name][0], _as_read(claims[name][1], line), measurement, reading)
        for (name, reading), (measurement, line) in _read(out / TABLE).items()
        if name in claims and reading < history.last_reading(name)
    ]


def _as_read(claim: Claim, line: Mapping[str, Any]) -> Claim:
    """A claim as it was at an earlier reading: range, cut, runs and control are those of its line."""
    control: Rival | Untrained | Without = Without(str(line["uncontrolled"]))
    if beside := str(line["control"]):
        is_weak = beside.endswith(UNTRAINED_SUFFIX) or line.get("control_kind") == "weak"
        control = Untrained() if is_weak else Rival(beside, later=line.get("control_chosen") != "before")
    low, high = (float(line[name]) for name in ("low", "high"))
    no_effect, cut = (_given(line, "no_effect_low", "no_effect_high"), _given(line, "cut"))
    says, runs, scale = (str(line[name]) for name in ("says", "runs", "scale"))
    then = claim._replace(says=says, low=low, high=high, expected=float(line["expected"]), scale=scale, runs=runs)
    return then._replace(
        paired="",
        control=control,
        no_effect=no_effect,
        cut=cut and cut[0],
        tier=line.get("tier", "supporting"),
    )


def _given(line: Mapping[str, Any], *names: str) -> Any:
    """The numbers of a line; None where it has none, or not these columns."""
    numbers = tuple(float(line.get(name, "nan")) for name in names)
    return None if np.isnan(numbers).any() else numbers


def error_rates_in(out: Path) -> list[Row]:
    """The table of `studies.error_rates`, if it lies there."""
    path = out / ERROR_RATES
    if not path.exists():
        return []
    table = read_csv(path, (*WRONGLY, "alpha", "draws", "used"), ("rule", "distribution", "looks"))
    if not (table[list(WRONGLY)].ge(0) & table[list(WRONGLY)].le(1)).all(axis=None) or not (table["draws"] >= 1).all():
        raise StoreError(f"{path} has rates that are not between 0 and 1, or of no draws")
    return [*table.to_dict("records")]


def page(rows: Sequence[Row], earlier: Sequence[Row] = (), error_rates: Sequence[Row] = ()) -> str:
    """How claims are made, how many there are, and how often their rules err, if that was simulated, as Markdown."""
    study_of = {claim.name: study.name for study in all_studies() for claim in study.claims}
    by_study = {name: [row for row in rows if study_of.get(row["claim"]) == name] for name in RUNS_DIRS}
    by_about = {about: [row for row in rows if row["about"] == about] for about in LISTS}
    by_tier = {tier: [row for row in rows if row["tier"] == tier] for tier in ("main", "supporting")}
    tables = {"studies": by_study, "lists": by_about, "tiers": by_tier}
    values: dict[str, Any] = {
        name: {of: counted(own) for of, own in apart.items() if own} for name, apart in tables.items()
    }
    values |= {"rows": rows, "earlier": earlier, "headings": LISTS, "error_rates": error_rates}
    values |= {"groups": groups(rows), "groups_of_tasks": groups(rows, tasks_by_run(rows)), "facts": facts(rows)}
    values |= {"outcomes": outcomes(facts(rows)), "legend": legend(words_of(rows)), "sources": sources(rows)}
    values |= {"gap_power": {apart: two_kinds.power(apart, MAIN_SEEDS) for apart in GAPS}}
    return rendered(
        TEMPLATE, papers=list(dict.fromkeys(row["paper"] for row in rows if row["paper"] != OURS)), **values
    )


def counted(rows: Sequence[Row]) -> dict[str, Any]:
    """Lines of the ledger, how many have each verdict, and the groups of trainings that they are of."""
    counts = {name: sum(row["verdict"] == name for row in rows) for name in VERDICTS}
    return {"rows": rows, "counts": counts, "groups": groups(rows)}


def sources(rows: Sequence[Row]) -> dict[str, dict[str, int]]:
    """How many claims have a range from each source, in the order of `ORIGINS`, and of these the counts of verdicts."""
    verdicts = {source: [row["verdict"] for row in rows if row["source"] == source] for source in ORIGINS}
    return {source: {word: of.count(word) for word in VERDICTS} for source, of in verdicts.items() if of}


def known(out: Path, studies: Sequence[Study] = ()) -> dict[str, Measurement]:
    """The measurements in the existing ledger that are of today's runs, possibly of only some of their seeds.

    A claim whose runs have changed counts as not run. `StoreError` for values that its scale does not have.
    """
    read = _read(out / TABLE)
    last = {
        claim.name: _of_today(out, study, claim, read[claim.name, history.last_reading(claim.name)][0])
        for study in studies or all_studies()
        for claim in study.claims
        if (claim.name, history.last_reading(claim.name)) in read
    }
    return {name: measurement for name, measurement in last.items() if measurement is not None}


def readings(out: Path, study: Study, claim: Claim) -> tuple[dict[int, Measurement], Measurement | None]:
    """All measurements of a claim in the existing ledger, by reading; and the last, unless it is of other runs."""
    found = {reading: one for (name, reading), (one, _) in _read(out / TABLE).items() if name == claim.name}
    last = found.get(history.last_reading(claim.name))
    return found, last and _of_today(out, study, claim, last)


def _of_today(out: Path, study: Study, claim: Claim, measurement: Measurement) -> Measurement | None:
    possible = all(study.runs_of(name).is_possible for name in claim.trained)  # else nobody here can name their cells
    if possible and not set(measurement.cells) <= study.cell_names(claim):
        return None
    with expecting(out / TABLE, f"a ledger of claims: {claim.name} has values that it cannot have"):
        judge(claim, measurement)
    return measurement


def read_measurements(path: Path) -> dict[str, Measurement]:
    """The measurements that claims.csv holds, by claim, each of its last reading; none where there is no such file."""
    last: dict[str, tuple[int, Measurement]] = {}
    for (name, reading), (measurement, _) in _read(path).items():
        last[name] = max((reading, measurement), last.get(name, (0, measurement)), key=lambda one: one[0])
    return {name: measurement for name, (_, measurement) in last.items()}


def seeds_read(out: Path) -> dict[tuple[str, int], tuple[int, ...]]:
    """The seeds of each reading in claims.csv, by claim and number of the reading."""
    return {key: measurement.seeds for key, (measurement, _) in _read(out / TABLE).items()}


def _read(path: Path) -> dict[tuple[str, int], tuple[Measurement, Mapping[str, Any]]]:
    """The measurements in claims.csv with their lines, by claim and reading; a table without readings has the first."""
    if not path.exists():
        return {}
    words = ("claim", "values", "seeds", "device", "date", "git_hash", "trained_at", "cells")
    of_claim = ("says", "scale", "runs", "control", "uncontrolled")
    table = read_csv(path, ("minutes", "low", "high", "expected"), (*words, *of_claim))
    measurements = {}
    with expecting(path, "a ledger of claims"):
        for _, line in table.iterrows():
            values, seeds = (tuple(json.loads(line[name])) for name in ("values", "seeds"))
            if values:
                facts_of = {name: str(line[name]) for name in ("device", "date", "git_hash", "trained_at")}
                control = tuple(json.loads(line["control_values"])) if "control_values" in table else ()
                measurement = Measurement(
                    values,
                    seeds,
                    float(line["minutes"]),
                    cells=tuple(str(line["cells"]).split()),
                    control_values=control,
                    **facts_of,
                )
                name = str(line["claim"])
                reading = int(line["reading"]) if "reading" in table else history.last_look(name)
                measurements[name, reading] = (measurement, line)
    return measurements
