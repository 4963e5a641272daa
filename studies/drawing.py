"""Draws a study's figures, each with its table and a bundle: labels, command, configs of its runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from configs.run import to_dict
from store import outputs, rundir
from store.atomic import csv_bytes, json_bytes
from store.readers import read_json
from studies.figure import AnyFigure
from studies.ledger import WRITER
from studies.study import Study


def redraw(study: Study, out: Path) -> None:
    """Draws the figures again whose tables are there, with today's labels."""
    for figure in study.figures:
        table = out / study.name / f"{figure.name}.csv"
        if table.exists():
            figure.draw(table)
            path = table.with_suffix(".json")
            outputs.write({path: json_bytes(read_json(path) | {"labels": figure.labels})}, WRITER)


def draw(study: Study, profile: str, runs_dir: Path, out: Path) -> None:
    """Draws the figures of a profile all of whose runs are done."""
    for figure in study.figures_of(profile):
        runs = {name: study.runs[name].finished(runs_dir) for name in figure.run_names}
        if all(runs.values()):
            table = out / study.name / f"{figure.name}.csv"
            outputs.write({table: csv_bytes(figure.rows(runs))}, WRITER)
            figure.draw(table)
            _write_bundle(table, study, figure, [run for own in runs.values() for run in own])


def _write_bundle(table: Path, study: Study, figure: AnyFigure, runs: Sequence[Path]) -> None:
    configs = [to_dict(rundir.read_config(run)) for run in runs]
    command = f"python -m studies.run {study.name} --profile {figure.profile}"
    bundle = {"labels": figure.labels, "command": command, "configs": configs}
    outputs.write({table.with_suffix(".json"): json_bytes(bundle)}, WRITER)
