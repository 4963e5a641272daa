"""The figure of a study's main results, from the ledger: each seed, the accepted range and the nearest rival."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from icl_lab.plots.main_results import draw_main_results
from icl_lab.store import outputs
from icl_lab.store.atomic import csv_bytes
from icl_lab.studies import ledger
from icl_lab.studies.claim import UNBOUNDED
from icl_lab.studies.study import Study, figures_shown

NAME = "main_results"
TITLE = "The main results: seeds as dots, their mean with its interval, the accepted range and the nearest rival"
MOST = 8  # of strips that a page has room for
# column -> what of a row it has
COLUMNS = {name: name for name in ("claim", "says", "mean", "mean_low", "mean_high", "scale", "control")} | {
    "accepted_from": "low",
    "accepted_to": "high",
}

Row = dict[str, Any]


def rows_of(study: Study, rows: Sequence[ledger.Row]) -> list[Row]:
    """The main results that are measured, the first `MOST`, each as the figure and its table have it."""
    measured = [row for row in rows if row["tier"] == "main" and row["mean"] is not None and math.isfinite(row["mean"])]
    return [
        {name: row[name] for name in ("claim", "says", "mean", "mean_low", "mean_high", "scale")}
        | {end: None if abs(row[end]) >= UNBOUNDED else row[end] for end in ("low", "high")}
        | {"control": row["control_mean"], "values": json.loads(row["values"]), "seeds": json.loads(row["seeds"])}
        for row in measured[:MOST]
    ]


def draw(study: Study, out: Path) -> None:
    """Draws the figure of a study whose page shows it, with its table of a row for each seed."""
    rows = rows_of(study, ledger.rows_in(out, [study])) if NAME in figures_shown(study.written) else []
    if rows:
        table = [
            {**{name: row[of] for name, of in COLUMNS.items()}, "seed": seed, "value": value}
            for row in rows
            for seed, value in zip(row["seeds"], row["values"], strict=True)
        ]
        path = out / study.name / NAME
        outputs.write({path.with_suffix(".csv"): csv_bytes(table)}, ledger.WRITER)
        draw_main_results(rows, path.with_suffix(".png"))
