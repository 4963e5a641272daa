"""Draws a study's figures, each with its table and a bundle: labels, command, configs of its runs.

Figures that a page shows lie beside their tables, and are kept with the results; the others in a folder `DRAWN` there,
which is not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from icl_lab.lab.configs.run import to_dict
from icl_lab.lab.executors.task import Executor
from icl_lab.src.words import printable
from icl_lab.store import outputs, rundir
from icl_lab.store.atomic import csv_bytes, json_bytes
from icl_lab.store.readers import expecting, read_json
from icl_lab.studies.figure import AnyFigure, Labels
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

    One whose table an earlier version wrote, without columns that the figure needs today, is drawn with its own labels.
    """
    for figure in study.figures:
        table = out / study.name / f"{figure.name}.csv"
        if table.exists():
            path = table.with_suffix(".json")
            bundle = read_json(path)
            with expecting(path, "what a figure is drawn with"):
                labels = _labels(figure, table, bundle)
            figure.draw(table, labels, place_of(study, table))
            today = {"labels": labels, "command": study.command(figure.profile)}
            outputs.write({path: json_bytes(bundle | today)}, WRITER)


def draw(
    study: Study, figures: Sequence[AnyFigure], runs_dir: Path, out: Path, cluster: Executor | None = None
) -> None:
    """Draws those of a study's figures all of whose runs are done; their rows are tasks, as measuring claims is."""
    from icl_lab.studies.workers import tabulated

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
        return figure.labels(_seeds(bundle["configs"]))
    print(
        f"{printable(table)} was written before it had a column {', '.join(missing)}: it is drawn as it was; "
        f"'{bundle['command']}' measures it again"
    )
    labels: Labels = bundle["labels"]
    return labels


def _seeds(configs: Sequence[Mapping[str, Any]]) -> list[int]:
    return sorted({int(config["init_seed"]) for config in configs})


def _bundle(study: Study, figure: AnyFigure, runs: Sequence[Path]) -> dict[str, Any]:
    configs = [to_dict(rundir.read_config(run)) for run in runs]
    return {"labels": figure.labels(_seeds(configs)), "command": study.command(figure.profile), "configs": configs}
