"""The ledger: every claim of every study, with its measurement and verdict, as claims.csv and claims.md.

A verdict is made anew of range and values each time the ledger is written.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from store import outputs
from store.atomic import csv_bytes
from store.lock import locked_file
from store.readers import expecting, read_csv
from studies.claim import VERDICTS, Claim, Measurement, mean_and_half_width, verdict
from studies.study import Study, all_studies
from studies.template import rendered
from sweeps.table import LOCK_TIMEOUT

WRITER = "report"  # of tables and pages in report/
TABLE, PAGE, INDEX = "claims.csv", "claims.md", "index.json"
TEMPLATE = Path(__file__).with_name("claims.md.j2")

Row = dict[str, Any]


def row(study: Study, claim: Claim, measurement: Measurement | None) -> Row:
    """A claim's line of the ledger, with the command that measures it, and what limits it if it is not reproduced."""
    mean, half = mean_and_half_width(measurement) if measurement else (None, None)
    measured = measurement or Measurement((), (), float("nan"), "", "", "")
    decided = verdict(claim, measurement)
    return {
        "claim": claim.name,
        "paper": claim.paper,
        "figure": claim.figure,
        "says": claim.says,
        "expected": claim.expected,
        "low": claim.low,
        "high": claim.high,
        "source": claim.source,
        "mean": mean,
        "mean_low": None if mean is None or half is None else mean - half,
        "mean_high": None if mean is None or half is None else mean + half,
        "verdict": decided,
        "profile": claim.profile,
        "command": f"python -m studies.run {study.name} --claims {claim.name}",
        "runs": claim.runs,
        "values": json.dumps(measured.values),
        "seeds": json.dumps(measured.seeds),
        "minutes": None if measurement is None else measured.minutes,
        "device": measured.device,
        "date": measured.date,
        "git_hash": measured.git_hash,
        "trained_at": measured.trained_at,
        "cells": " ".join(measured.cells),
        "remark": "" if decided == "reproduced" else study.remarks.get(claim.name, ""),
    }


def rows_of(studies: Sequence[Study], measurements: Mapping[str, Measurement]) -> list[Row]:
    """The lines of these studies' claims."""
    return [row(study, claim, measurements.get(claim.name)) for study in studies for claim in study.claims]


def write(out: Path, measured: Mapping[str, Measurement]) -> None:
    """Writes claims.csv and claims.md: these measurements, and of the other claims those that are there."""
    with locked_file(out / TABLE, LOCK_TIMEOUT):  # shards of a study write one ledger
        rows = rows_of(all_studies(), known(out) | dict(measured))
        outputs.write({out / TABLE: csv_bytes(rows)}, WRITER)
        outputs.write({out / PAGE: page(rows).encode()}, WRITER)


def page(rows: Sequence[Row]) -> str:
    """The ledger as Markdown."""
    return rendered(TEMPLATE, papers=list(dict.fromkeys(line["paper"] for line in rows)), **counted(rows))


def counted(rows: Sequence[Row]) -> dict[str, Any]:
    """Lines of the ledger, and how many have each verdict."""
    return {"rows": rows, "counts": {name: sum(line["verdict"] == name for line in rows) for name in VERDICTS}}


def known(out: Path) -> dict[str, Measurement]:
    """The measurements in the ledger there that are of today's runs: a claim whose runs have changed is not run."""
    measurements = read_measurements(out / TABLE)
    return {
        claim.name: measurements[claim.name]
        for study in all_studies()
        for claim in study.claims
        if claim.name in measurements and set(measurements[claim.name].cells) == study.cell_names(claim)
    }


def read_measurements(path: Path) -> dict[str, Measurement]:
    """The measurements that claims.csv holds, by claim; none where there is no such file."""
    if not path.exists():
        return {}
    words = ("claim", "values", "seeds", "device", "date", "git_hash", "trained_at", "cells")
    table = read_csv(path, ("minutes",), words)
    measurements = {}
    with expecting(path, "a ledger of claims"):
        for _, line in table.iterrows():
            values, seeds = (tuple(json.loads(line[name])) for name in ("values", "seeds"))
            if values:
                facts = {name: str(line[name]) for name in ("device", "date", "git_hash", "trained_at")}
                cells = tuple(str(line["cells"]).split())
                minutes = float(line["minutes"])
                measurements[str(line["claim"])] = Measurement(values, seeds, minutes, cells=cells, **facts)
    return measurements
