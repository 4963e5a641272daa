"""The ledger: every claim of every study, with its measurement and verdict, as claims.csv and claims.md.

Verdicts are recomputed from range and values each time the ledger is written.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from icl_lab.store import outputs
from icl_lab.store.atomic import csv_bytes
from icl_lab.store.lock import locked_file
from icl_lab.store.readers import StoreError, expecting, read_csv
from icl_lab.studies.claim import LISTS, OURS, Claim, Earlier, Measurement
from icl_lab.studies.study import Study, all_studies
from icl_lab.studies.template import rendered
from icl_lab.studies.verdict import VERDICTS, before_revision, judge
from icl_lab.sweeps.table import LOCK_TIMEOUT

WRITER = "report"  # of tables and pages in report/
TABLE, PAGE, INDEX = "claims.csv", "claims.md", "index.json"
ERROR_RATES = "ledger/error_rates.csv"
WRONGLY = ("reproduced_wrongly", "contradicted_wrongly")  # its rates
TEMPLATE = Path(__file__).with_name("claims.md.j2")

Row = dict[str, Any]


def row(study: Study, claim: Claim, measurement: Measurement | None) -> Row:
    """A claim's line of the ledger, with the command that measures it, and what limits it if it is not reproduced."""
    judged = judge(claim, measurement)
    interval = judged.interval
    measured = measurement or Measurement((), (), float("nan"), "", "", "")
    earlier = claim.earlier or Earlier(claim.low, claim.high, "", "")
    return {
        "claim": claim.name,
        "about": claim.about,
        "paper": claim.paper,
        "figure": claim.figure,
        "says": claim.says,
        "expected": claim.expected,
        "low": claim.low,
        "high": claim.high,
        "no_effect_low": claim.no_effect and claim.no_effect[0],
        "no_effect_high": claim.no_effect and claim.no_effect[1],
        "source": claim.source,
        "range": "revised" if claim.earlier else "original",
        "earlier_low": earlier.low,
        "earlier_high": earlier.high,
        "revised_at": earlier.commit,
        "revised_because": earlier.reason,
        "scale": claim.scale,
        "mean": interval and interval.estimate,
        "mean_low": interval and interval.low,
        "mean_high": interval and interval.high,
        "infinite": claim.infinite,
        "n": interval.n if interval else 0,
        "verdict": judged.verdict,
        "earlier_verdict": before_revision(claim, measurement),
        "seeds_needed": judged.seeds_needed,
        "undecided_because": judged.because,
        "share": judged.share and judged.share.estimate,
        "share_low": judged.share and judged.share.low,
        "control": " and ".join(claim.control_names),
        "control_mean": judged.control,
        "uncontrolled": claim.uncontrolled,
        "profile": claim.profile,
        "command": f"python -m studies.run {study.name} --claims {claim.name}",
        "runs": claim.runs,
        "values": json.dumps(measured.values),
        "seeds": json.dumps(measured.seeds),
        "control_values": json.dumps(measured.control_values),
        "minutes": None if measurement is None else measured.minutes,
        "device": measured.device,
        "date": measured.date,
        "git_hash": measured.git_hash,
        "trained_at": measured.trained_at,
        "cells": " ".join(measured.cells),
        "remark": "" if judged.verdict == "reproduced" else study.remarks.get(claim.name, ""),
    }


def rows_of(studies: Sequence[Study], measurements: Mapping[str, Measurement]) -> list[Row]:
    """The lines of these studies' claims."""
    return [row(study, claim, measurements.get(claim.name)) for study in studies for claim in study.claims]


def write(out: Path, measured: Mapping[str, Measurement]) -> None:
    """Writes claims.csv and claims.md: these measurements, and of the other claims those that are there."""
    with locked_file(out / TABLE, LOCK_TIMEOUT):  # shards of a study write one ledger
        rows = rows_of(all_studies(), known(out) | dict(measured))
        outputs.write({out / TABLE: csv_bytes(rows)}, WRITER)
        outputs.write({out / PAGE: page(rows, error_rates_in(out)).encode()}, WRITER)


def error_rates_in(out: Path) -> list[Row]:
    """The table of `studies.error_rates`, if it lies there."""
    path = out / ERROR_RATES
    if not path.exists():
        return []
    table = read_csv(path, (*WRONGLY, "alpha", "draws", "used"), ("rule", "distribution", "looks"))
    if not (table[list(WRONGLY)].ge(0) & table[list(WRONGLY)].le(1)).all(axis=None) or not (table["draws"] >= 1).all():
        raise StoreError(f"{path} has rates that are not between 0 and 1, or of no draws")
    return [*table.to_dict("records")]


def page(rows: Sequence[Row], error_rates: Sequence[Row] = ()) -> str:
    """The ledger as Markdown, with how often its rules err, if that was simulated."""
    papers = list(dict.fromkeys(row["paper"] for row in rows if row["paper"] != OURS))
    lists = {about: counted([row for row in rows if row["about"] == about]) for about in LISTS}
    values = {"lists": lists, "headings": LISTS, "groups": groups(rows), "error_rates": error_rates}
    return rendered(TEMPLATE, papers=papers, **values)


def counted(rows: Sequence[Row]) -> dict[str, Any]:
    """Lines of the ledger, how many have each verdict, and the groups of trainings that they are of."""
    counts = {name: sum(row["verdict"] == name for row in rows) for name in VERDICTS}
    return {"rows": rows, "counts": counts, "groups": groups(rows)}


def groups(rows: Sequence[Row]) -> int:
    """The number of groups of trainings behind the measured claims; groups share no training, controls included."""
    apart: list[set[str]] = []
    for row in rows:
        cells = set(row["cells"].split())
        joined = [group for group in apart if group & cells]
        apart = [group for group in apart if not group & cells] + ([cells.union(*joined)] if cells else [])
    return len(apart)


def known(out: Path) -> dict[str, Measurement]:
    """The measurements in the existing ledger that are of today's runs, possibly of only some of their seeds.

    A claim whose runs have changed counts as not run. `StoreError` for values that its scale does not have.
    """
    measurements, of_today = read_measurements(out / TABLE), {}
    for study in all_studies():
        for claim in study.claims:
            measurement = measurements.get(claim.name)
            if measurement is not None and set(measurement.cells) <= study.cell_names(claim):
                with expecting(out / TABLE, f"a ledger of claims: {claim.name} has values that it cannot have"):
                    judge(claim, measurement)
                of_today[claim.name] = measurement
    return of_today


def read_measurements(path: Path) -> dict[str, Measurement]:
    """The measurements that claims.csv holds, by claim; none where there is no such file."""
    if not path.exists():
        return {}
    words = ("claim", "values", "seeds", "device", "date", "git_hash", "trained_at", "cells")
    table = read_csv(path, ("minutes",), words)
    controls = "control_values" in table
    measurements = {}
    with expecting(path, "a ledger of claims"):
        for _, line in table.iterrows():
            values, seeds = (tuple(json.loads(line[name])) for name in ("values", "seeds"))
            if values:
                facts = {name: str(line[name]) for name in ("device", "date", "git_hash", "trained_at")}
                cells = tuple(str(line["cells"]).split())
                minutes = float(line["minutes"])
                control = tuple(json.loads(line["control_values"])) if controls else ()
                measurements[str(line["claim"])] = Measurement(
                    values, seeds, minutes, cells=cells, control_values=control, **facts
                )
    return measurements
