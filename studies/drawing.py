"""Draws a study's figures, each with its table and a bundle: labels, command, configs of its runs.

Figures that a page shows lie beside their tables, and are kept with the results; the others in a folder `DRAWN` there,
which is not.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from icl_lab.lab.command_end import typed
from icl_lab.lab.configs.run import to_dict
from icl_lab.lab.executors.task import Executor
from icl_lab.plots.style import EARLIER_LEVEL
from icl_lab.src.intervals import SCALES
from icl_lab.src.words import printable
from icl_lab.store import outputs, rundir
from icl_lab.store.atomic import csv_bytes, json_bytes
from icl_lab.store.readers import expecting, read_json
from icl_lab.studies.dot_figure import Dots
from icl_lab.studies.figure import AnyFigure, Figure, Labels
from icl_lab.studies.ledger import WRITER
from icl_lab.studies.study import Study

DRAWN = "drawn"


def place_of(study: Study, table: Path) -> Path:
    """Where the figure of a table is drawn, but for the suffix."""
    return table if table.stem in study.shown else table.parent / DRAWN / table.name


def as_drawn(study: Study, folder: Path) -> list[AnyFigure]:
    """The study's figures whose tables lie in a folder, each with the title that is written on it."""
    figures = []
    for figure in study.figures:
        path = folder / f"{figure.name}.json"
        if path.exists():
            with expecting(path, "what a figure is drawn with"):
                figures.append(figure._replace(title=str(read_json(path)["labels"]["title"])))
    return figures


def redraw(study: Study, out: Path) -> None:
    """Draws the figures again whose tables are there, with today's labels and command.

    One whose table an earlier version wrote, without columns that the figure needs today, is drawn with its own labels;
    intervals that reach beyond what is possible on the figure's scale are cut there, in the table.
    """
    for figure in study.figures:
        table = out / study.name / f"{figure.name}.csv"
        if table.exists():
            _cut(figure, table)
            path = table.with_suffix(".json")
            bundle = read_json(path)
            with expecting(path, "what a figure is drawn with"):
                labels = _labels(figure, table, bundle)
            figure.draw(table, labels, place_of(study, table))
            today = {"labels": labels, "command": study.command(figure.profile)}
            outputs.write({path: json_bytes(bundle | today)}, WRITER)


def _cut(figure: AnyFigure, table: Path) -> None:
    """Writes a table again whose intervals are of another scale than the figure's; seeds' values are not in it."""
    if not isinstance(figure, Figure | Dots):
        return
    with table.open(encoding="utf-8", newline="") as file, expecting(table, "the table of a figure"):
        rows = [dict(row) for row in csv.DictReader(file)]
        ends = [_ends(row, figure.scale_of(row["panel"])) for row in rows]
    if any(ends):
        outputs.write({table: csv_bytes([row | cut for row, cut in zip(rows, ends, strict=True)])}, WRITER)


def _ends(row: Mapping[str, str], scale: str) -> dict[str, float]:
    """The ends of a row's interval that lie beyond a scale's, cut there; a value of one seed has no interval."""
    if row["low"] == row["high"]:
        return {}
    lowest, highest = SCALES[scale].lowest, SCALES[scale].highest
    cut = {name: float(np.clip(float(row[name]), lowest, highest)) for name in ("low", "high")}
    return {name: end for name, end in cut.items() if end != float(row[name])}


def draw(
    study: Study, figures: Sequence[AnyFigure], runs_dir: Path, out: Path, cluster: Executor | None = None
) -> None:
    """Draws those of a study's figures all of whose runs are done; their rows are tasks, as measuring claims is."""
    from icl_lab.studies.measuring import tabulated

    runs_of = {figure.name: study.finished(figure.run_names, runs_dir) for figure in figures}
    ready = [figure for figure in figures if all(runs_of[figure.name].values())]
    for figure, rows in tabulated(study, ready, runs_dir, cluster):
        table = out / study.name / f"{figure.name}.csv"
        bundle = _bundle(study, figure, [run for group in runs_of[figure.name].values() for run in group])
        outputs.write({table: csv_bytes(rows)}, WRITER)
        figure.draw(table, bundle["labels"], place_of(study, table))
        outputs.write({table.with_suffix(".json"): json_bytes(bundle)}, WRITER)


def _labels(figure: AnyFigure, table: Path, bundle: Mapping[str, Any]) -> Labels:
    """Today's labels, or those of a table that was written before the figure had what it needs today."""
    with table.open(encoding="utf-8") as file:
        columns = file.readline().strip().split(",")
    missing = [name for name in figure.needs if name not in columns]
    if not missing:
        labels = figure.labels(_seeds(bundle["configs"]))
        return {**labels, "level": bundle["labels"].get("level", EARLIER_LEVEL)} if "level" in labels else labels
    print(
        f"{printable(table)} was written before it had a column {', '.join(missing)}: it is drawn as it was; "
        f"'{typed(bundle['command'].removeprefix('python -m '))}' measures it again"
    )
    own: Labels = bundle["labels"]
    return own


def _seeds(configs: Sequence[Mapping[str, Any]]) -> list[int]:
    return sorted({int(config["init_seed"]) for config in configs})


def _bundle(study: Study, figure: AnyFigure, runs: Sequence[Path]) -> dict[str, Any]:
    configs = [to_dict(rundir.read_config(run)) for run in runs]
    return {"labels": figure.labels(_seeds(configs)), "command": study.command(figure.profile), "configs": configs}
