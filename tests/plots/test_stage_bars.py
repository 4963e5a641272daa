"""Stages as bars: each from where it starts to where it ends, in its run's row, with the change of its LLC."""

from pathlib import Path

import pytest
from matplotlib.figure import Figure

from icl_lab.analysis.develop import OF_A_CHANGE
from icl_lab.lab.configs.presets import preset, resolve
from icl_lab.plots.stages import CHANGE_POINT, FAINT, MILESTONE, NO_STAGE, OF_LOSS_TOO, draw_stage_bars
from icl_lab.store import layout, rundir
from icl_lab.store.atomic import csv_bytes, write_bytes, write_csv, write_json
from icl_lab.studies.stage_figure import Stages
from tests.plots.readable import check_readable


def stage(number: int, start: int, end: int, kind: str, claimed: bool, rise: float, setting: str) -> dict[str, object]:
    own = {"stage": number, "start": start, "end": end, "type": kind, "claimed": claimed, "setting": setting}
    return dict.fromkeys(OF_A_CHANGE, 0.0) | own | {"delta_llc": rise}


def rows() -> list[dict[str, object]]:
    """A rise that is claimed and a fall that is not, at two settings; and a run without a milestone."""
    found = [
        {"runs": "one", "seed": 3} | stage(number, *place, setting)
        for number, place in enumerate([(0, 99, "A", True, 2.5), (99, 999, "B", False, -0.4)])
        for setting in ("default", "tight")
    ]
    marks = [(MILESTONE, 99), (OF_LOSS_TOO, 999), (CHANGE_POINT, 49)]
    found += [{"runs": "one", "seed": 3} | stage(0, step, step, kind, False, 0.0, "") for kind, step in marks]
    return [*found, {"runs": "one", "seed": 4} | stage(0, 0, 999, NO_STAGE, False, 0.0, "")]


def test_bars_start_end_and_are_full_where_a_stage_is_claimed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[Figure] = []
    monkeypatch.setattr("icl_lab.plots.style.save_both", lambda figure, path: found.append(figure))
    write_csv(tmp_path / "stages.csv", rows())
    draw_stage_bars(tmp_path / "stages.csv", "Title")
    check_readable(found[0], width=None)
    panel = found[0].axes[0]
    bars = [(bar.get_x(), bar.get_x() + bar.get_width(), round(bar.get_y() + 0.35)) for bar in panel.patches]
    assert bars == [pytest.approx((1, 100, 0)), pytest.approx((100, 1000, 0)), pytest.approx((1, 1000, 1))]
    assert [bar.get_alpha() for bar in panel.patches] == [1.0, FAINT, FAINT]
    assert [text.get_text() for text in panel.texts] == ["+2.50", "-0.40"]
    assert [label.get_text() for label in panel.get_yticklabels()] == ["one, seed 3", "one, seed 4"]
    marks = {str(line.get_label()): (float(line.get_xdata()[0]), line.get_markerfacecolor()) for line in panel.lines}
    assert marks == {
        "milestone": (100, "black"),
        "milestone of the loss alone too": (1000, "white"),
        "change point": (50, "black"),
    }


def test_the_table_has_every_stage_and_setting_of_every_run(tmp_path: Path) -> None:
    """A run whose stages.csv is empty has one row, from the first step to the last."""
    config = resolve(preset("lsa1"))
    runs = [tmp_path / "with", tmp_path / "without"]
    own = [{name: value for name, value in row.items() if name not in ("runs", "seed")} for row in rows()[:4]]
    for run, stages in zip(runs, (own, []), strict=True):
        rundir.begin(run, config)
        (run / layout.DEVELOP_STAGES).parent.mkdir(parents=True)
        write_bytes(run / layout.DEVELOP_STAGES, csv_bytes(stages, OF_A_CHANGE))
        milestones = [{"step": 9.0, "loss_has_one": True}, {"step": 20.0, "loss_has_one": False}]
        facts = {"milestones": milestones[: len(stages)], "change_points": [{"step": 5.0}][: len(stages)]}
        write_json(run / layout.DEVELOP, facts | {"stages": [row["stage"] for row in stages]})
    found = Stages("s", "Title", {"layers": "one layer"}).rows({"layers": runs})
    assert [row["runs"] for row in found] == ["one layer"] * 8
    assert [row["setting"] for row in found] == ["default", "tight"] * 2 + [""] * 4
    marks = [(row["type"], row["start"], row["end"]) for row in found[4:7]]
    assert marks == [(OF_LOSS_TOO, 9.0, 9.0), (MILESTONE, 20.0, 20.0), (CHANGE_POINT, 5.0, 5.0)]
    assert (found[-1]["type"], found[-1]["start"], found[-1]["end"]) == (NO_STAGE, 0, config.training.steps)
    table = runs[0] / layout.DEVELOP_STAGES
    table.write_text(table.read_text().replace("usable", "healthy", 1))  # as an earlier version named the column
    assert Stages("s", "Title", {"layers": "one layer"}).rows({"layers": runs}) == found
    assert [*found[0]] == ["runs", "seed", *OF_A_CHANGE]
    write_csv(tmp_path / "all.csv", found)
    assert [path.suffix for path in draw_stage_bars(tmp_path / "all.csv", "Title")] == [".png", ".pdf"]
