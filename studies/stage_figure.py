"""The stages of runs as bars over training, and their table: stages at each setting, milestones and change points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from icl_lab.analysis.develop import OF_A_CHANGE
from icl_lab.plots.stages import CHANGE_POINT, MILESTONE, NO_STAGE, OF_LOSS_TOO, draw_stage_bars
from icl_lab.store import layout
from icl_lab.store.llc_rows import EARLIER_NAMES
from icl_lab.store.readers import expecting, read_csv, read_json
from icl_lab.store.rundir import read_config

Row = dict[str, Any]


class Stages(NamedTuple):
    """A figure of the stages in analysis/develop/stages.csv: its runs by name, each with a label."""

    name: str
    title: str
    settings: Mapping[str, str]
    profile: str = "quick"
    needs: tuple[str, ...] = ()

    @property
    def run_names(self) -> tuple[str, ...]:
        """The runs it is of."""
        return tuple(self.settings)

    def labels(self, seeds: Sequence[int]) -> Mapping[str, Any]:
        """What is written on it."""
        return {"title": self.title}

    def rows(self, runs: Mapping[str, Sequence[Path]]) -> list[Row]:
        """Rows of runs, seed and the columns of stages.csv; a run without a stage has a row that says so."""
        return [
            {"runs": self.settings[name], "seed": read_config(run).init_seed} | row
            for name, group in runs.items()
            for run in group
            for row in _stages(run)
        ]

    def draw(self, table: Path, labels: Mapping[str, Any], to: Path | None = None) -> None:
        """Draws the table beside it, or to another place."""
        draw_stage_bars(table, labels["title"], to)


def _stages(run: Path) -> list[Row]:
    """The stages at each setting, or that there are none, then milestones and change points: rows of one step."""
    facts = read_json(run / layout.DEVELOP)
    with expecting(run / layout.DEVELOP, "the development of a run"):
        places = [(OF_LOSS_TOO if one["loss_has_one"] else MILESTONE, one["step"]) for one in facts["milestones"]]
        places += [(CHANGE_POINT, one["step"]) for one in facts["change_points"]]
        has_stages = bool(facts["stages"])
    if has_stages:
        stages = read_csv(run / layout.DEVELOP_STAGES, ("stage", "start", "end"), ("type", "setting"))
        stages = stages.rename(columns=EARLIER_NAMES)
        rows = [{str(name): value for name, value in row.items()} for row in stages[[*OF_A_CHANGE]].to_dict("records")]
    else:
        rows = [_row(NO_STAGE, 0, read_config(run).training.steps)]
    return rows + [_row(kind, step, step) for kind, step in places]


def _row(kind: str, start: float, end: float) -> Row:
    return dict.fromkeys(OF_A_CHANGE, "") | {"stage": 0, "start": start, "end": end, "type": kind}
