"""The figure of a run's stages, from tables that are made here."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from icl_lab.plots import style
from icl_lab.plots.stages import draw_stages
from icl_lab.store import layout
from icl_lab.store.atomic import write_csv, write_json
from tests.plots.readable import check_readable

GRID = np.geomspace(1, 1000, 30) - 1
CURVE: dict[str, Any] = {
    **{"height": 1.0, "length": 1.0, "jitter": 0.1, "evidence": 9.0, "has_shape": True, "step": GRID.tolist()},
    **{"llc": np.log1p(GRID).tolist(), "llc_se": [0.2] * 30, "slope": [1.0] * 30, "slope_se": [0.1] * 30},
}
MILESTONE: dict[str, Any] = {"step": 50.0, "low": 30.0, "high": 70.0, "sides": "both", "loss_has_one": True}
FACTS: dict[str, Any] = {
    "settings": {"eps": 1e-4, "nbeta": 100.0, "gamma": 50.0},
    "rule": {"bound": 0.05},
    "checkpoints": {
        **{"steps": [0, 10, 100, 999], "llc": [0.0, 2.0, 5.0, 7.0], "errors": [0.1] * 4, "loss": [3.0, 2.0, 1.0, 0.5]},
        **{"loss_alone": [0.0, 100.0, 200.0, 250.0], "usable": [False, True, True, True]},
    },
    "curve": CURVE,
    "milestones": [MILESTONE],
    "change_points": {"points": [{"step": 10.0}]},
    "loss_alone": {"curve": CURVE, "milestones": []},
    "seeds": [],
}


@pytest.fixture
def drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Draws facts that differ from `FACTS` in these, with a stage from one end to the other for each type."""
    seen: list[Figure] = []
    monkeypatch.setattr(style, "save", lambda figure, path, run=None: seen.append(figure))

    def draw(**changes: Any) -> Figure:
        facts = FACTS | changes
        ends = [0.0, *(one["step"] for one in facts["milestones"]), 999.0]
        rows = [
            {"series": "LLC", "data_seed": 0, "init_seed": 0, "start": start, "end": end, "type": kind}
            | {"delta_loss": -1.0, "delta_llc": 1.0, "delta_llc_se": 0.1}
            for start, end, kind in zip(ends[:-1], ends[1:], ("A", "undecided", "B"), strict=False)
        ]
        write_csv(tmp_path / layout.STAGES, rows)
        write_json(tmp_path / layout.STAGES_FACTS, facts)
        draw_stages(tmp_path)
        return seen[-1]

    return draw


def test_what_is_not_usable_is_hollow(drawn: Any) -> None:
    hollow = [line for line in drawn().axes[0].lines if line.get_label() == "not usable"]
    assert len(hollow) == 1
    np.testing.assert_allclose(hollow[0].get_xydata(), [[0.0, 0.0]])
    assert hollow[0].get_markerfacecolor() == "white"


def test_a_milestone_stands_at_its_log_step(drawn: Any) -> None:
    """Dashed where the LLC changes on one side alone."""
    one_sided = MILESTONE | {"step": 200.0, "low": None, "high": None, "sides": "before"}
    for panel in drawn(milestones=[MILESTONE, one_sided]).axes:
        lines = {line.get_xdata()[0]: line.get_linestyle() for line in panel.lines if line.get_color() == "#cc3311"}
        assert lines == {np.log(51.0): "-", np.log(201.0): "--"}


def test_it_can_be_read_and_says_what_there_is(drawn: Any) -> None:
    full = drawn()
    check_readable(full, 6.0, width=None)
    assert "1 milestones with 90" in style.whole_caption(full)
    none = drawn(milestones=[], curve=CURVE | {"has_shape": False}, change_points={"points": []})
    check_readable(none, 6.0, width=None)
    assert "do not show more than a line and noise" in style.whole_caption(none)
    assert all(line.get_label() != "change points" for line in none.axes[0].lines)
