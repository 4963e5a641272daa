"""`python -m analysis.develop`: one table and one figure, made again only where something differs; and after a kill."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t

from icl_lab.analysis import develop
from icl_lab.analysis import develop as develop_command
from icl_lab.analysis.development import nulls
from icl_lab.analysis.llc.settings import Settings
from icl_lab.plots import develop as plot
from icl_lab.plots import style
from icl_lab.store import layout
from icl_lab.store.atomic import write_csv
from icl_lab.store.llc_rows import usable
from tests.doors import Refused, ran, refused
from tests.runners.tiny import LSA1, SIZES, Workshop, copied

__all__ = ["ran", "refused"]
SMALL = ("--chains", 2, "--burn_in", 4, "--draws", 16, "--tasks", 64)
EVERY = ["10" if word == "30" else word for word in SIZES]
FILES = (layout.DEVELOP, layout.DEVELOP_TABLE, layout.DEVELOP_STAGES)
SETTINGS = ("default", "tight", "published")


@pytest.fixture
def run(workshop: Workshop, tmp_path: Path) -> Path:
    return copied(workshop.finished("develop", LSA1, "--config.snapshots=true", sizes=EVERY), tmp_path / "run")


def developed(workshop: Workshop, run: Path, *flags: object) -> str:
    done = workshop.run("analysis.develop", "--run", run, *SMALL, *flags)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_it_gathers_what_the_single_analyses_say(
    workshop: Workshop, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = developed(workshop, run)
    table = pd.read_csv(run / layout.DEVELOP_TABLE)
    facts = json.loads((run / layout.DEVELOP).read_text())
    llc = pd.read_csv(run / layout.LLC)
    metrics = pd.read_csv(run / layout.DEVELOPMENTAL_METRICS)
    scores = pd.read_csv(run / layout.ESSENTIAL_DYNAMICS).query("series == 'trajectory'")
    assert list(table["step"]) == list(range(0, 101, 10)) == list(metrics["step"])
    np.testing.assert_array_equal(table["weight_norm"], metrics["weight_norm"])
    np.testing.assert_array_equal(table["pc1"], scores["pc1"])
    for name in SETTINGS:
        eps = facts["settings"][name]["eps"]
        own = llc[(llc["eps"] == eps) & (llc["gamma"] == facts["settings"][name]["gamma"])]
        np.testing.assert_array_equal(table[f"llc_{name}"], own.sort_values("step")["llc"])
    good = {name: set(table["step"][usable(table, f"_{name}")]) for name in ("default", "tight")}
    assert facts["usable_at_all"] == sorted(good["default"] & good["tight"])
    count = sum(stage["claimed"] for stage in facts["stages"])
    assert f"{len(facts['stages'])}, of which {count} differ from their nulls" in said
    header = (run / layout.DEVELOP_STAGES).read_text().splitlines()[0]
    assert header.startswith("stage,start,end,type,claimed,setting,delta_loss,delta_llc,")
    assert (run / layout.DEVELOP_FIGURE).read_bytes().startswith(b"\x89PNG")
    drawn: list[Any] = []
    monkeypatch.setattr(style, "save", lambda figure, path, run=None: drawn.append(figure) or path)
    plot.draw_development(run)
    assert [axes.get_title() for axes in drawn[0].axes if not axes.has_data()] == []  # no panel is empty
    assert len(drawn[0].axes) == 5  # this model has no behaviour to show


# --- stages, on rows made by hand ---

STEPS = np.array([0, *np.unique(np.geomspace(1, 5000, 24).round().astype(int))])


def rows_of(llc: np.ndarray, settings: Settings, sick: Sequence[int] = ()) -> list[dict[str, Any]]:
    """Rows of an LLC table at one setting: errors of .02, a loss that falls a little, weights that grow by a half."""
    half = 0.02 * float(t.ppf(0.975, 3))
    grown = np.linspace(1.0, 1.5, len(STEPS))
    words = {"verdict": ["none" if step in sick else "undecided" for step in STEPS], "reasons": ""}
    columns = {"step": STEPS, "llc": llc, "llc_low": llc - half, "llc_high": llc + half, "loss": 1 - 0.01 * grown}
    table = pd.DataFrame(columns | words | {"norm": grown, "null_loss": 2.0} | asdict(settings))
    return [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]


def stages_of(
    run: Path, llc: np.ndarray, monkeypatch: pytest.MonkeyPatch, sick: Sequence[int] = (), norm_falls: float = 0.0
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Milestones, and stages, of a curve at two settings; the norm null takes this much from the LLC."""
    settings = {name: Settings(**develop_command.SETTINGS[name], chains=4) for name in ("default", "tight")}
    rows = {name: rows_of(llc, own, sick) for name, own in settings.items()}
    write_csv(run / layout.LLC, [{"settings": settings[name].name, **row} for name in rows for row in rows[name]])

    def rescaled(run: Path, own: Settings, step: str) -> Iterator[dict[str, Any]]:
        (start,) = (row for row in rows["default"] if row["step"] == int(step))
        yield start | {name: start[name] - norm_falls for name in ("llc", "llc_low", "llc_high")}

    monkeypatch.setattr(develop, "estimate_run", rescaled)
    good = nulls.usable_at_all(rows)
    found = develop.llc_stages(run, settings["default"], good)
    return found.milestones, develop.stage_rows(run, develop.Recipe(settings), rows, found.stages, good)


def rise(at: float, height: float) -> np.ndarray:
    return np.asarray(height / (1 + np.exp(-(np.log1p(STEPS) - np.log1p(at)) / 0.25)))


def claimed(rows: Sequence[Mapping[str, Any]]) -> set[tuple[str, bool]]:
    return {(row["type"], row["claimed"]) for row in rows if row["type"] != "undecided"}


def test_a_rise_between_two_plateaus_is_claimed_and_found_where_it_is(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places, rows = stages_of(run, rise(200, 3.0), monkeypatch)
    assert places
    assert claimed(rows) == {("A", True)}
    own = next(row for row in rows if row["type"] == "A")
    assert own["start"] < 200 < own["end"]
    assert np.isnan(own["norm_null"])


def test_change_points_are_where_the_llc_bends_at_usable_checkpoints(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Flat in log step, then a line, and a checkpoint that is not usable with another value; few have none."""
    at = int(STEPS[12])
    llc = 3.0 * np.clip(np.log1p(STEPS) - np.log1p(at), 0, None)
    llc[5] += 9.0
    stages_of(run, llc, monkeypatch)
    default = Settings(**develop_command.SETTINGS["default"], chains=4)
    good = [int(step) for number, step in enumerate(STEPS) if number != 5]
    (point,) = develop.llc_stages(run, default, good).change_points
    assert point["step"] == at
    assert (point["before"], point["after"]) == (pytest.approx(0.0, abs=0.02), pytest.approx(3.0, abs=0.05))
    assert len(develop.llc_stages(run, default, [int(step) for step in STEPS]).change_points) > 1
    assert develop.llc_stages(run, default, good[:5]).change_points == []


def test_a_line_and_noise_have_no_stage(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    noise = np.random.default_rng(0).normal(size=len(STEPS)) * 0.02
    assert stages_of(run, np.log1p(STEPS) + noise, monkeypatch) == ([], [])
    assert stages_of(run, noise, monkeypatch) == ([], [])


def test_a_fall_is_claimed_beyond_what_the_norm_explains(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    falling = 3.0 - rise(200, 2.0)
    assert claimed(stages_of(run, falling, monkeypatch)[1]) == {("B", True)}
    assert claimed(stages_of(run, falling, monkeypatch, norm_falls=2.0)[1]) == {("B", False)}


def test_checkpoints_that_are_not_usable_are_in_no_stage(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sick, wild = [int(step) for step in STEPS[::3]], rise(200, 3.0)
    wild[::3] -= 5.0
    places, rows = stages_of(run, wild, monkeypatch, sick)
    assert claimed(rows) == {("A", True)}
    assert places == stages_of(run, rise(200, 3.0), monkeypatch, sick)[0]
    assert not {row[end] for row in rows for end in ("start", "end")} & set(sick)
    assert stages_of(run, rise(200, 3.0), monkeypatch, [int(step) for step in STEPS[5:]]) == ([], [])


@pytest.mark.slow
def test_a_setting_whose_chains_diverge_has_no_line_and_the_others_stay(workshop: Workshop, run: Path) -> None:
    said = developed(workshop, run, "--settings", "cold=1e-6:133:667,hot=1e4:133:667")
    facts = json.loads((run / layout.DEVELOP).read_text())
    assert "hot" not in facts["lines"]
    assert np.isfinite(facts["lines"]["cold"]["slope_over_minus_nbeta"])
    assert "LLC, hot" in said
    assert "no line in the loss" in said
    assert facts["usable"]["hot"][0] == 0
    assert not any(stage["claimed"] for stage in facts["stages"])
    assert (run / layout.DEVELOP_FIGURE).exists()


@pytest.mark.slow
def test_what_is_measured_already_is_left_alone(workshop: Workshop, run: Path) -> None:
    developed(workshop, run)
    before = {name: ((run / name).stat().st_mtime_ns, (run / name).read_bytes()) for name in FILES}
    developed(workshop, run)
    assert {name: ((run / name).stat().st_mtime_ns, (run / name).read_bytes()) for name in FILES} == before
    (run / layout.DEVELOP_STAGES).unlink()
    developed(workshop, run)
    assert {name: (run / name).read_bytes() for name in FILES} == {name: own for name, (_, own) in before.items()}
    developed(workshop, run, "--seed", 1, "--settings", "a=1e-5:100:500,b=1e-5:200:900")
    facts = json.loads((run / layout.DEVELOP).read_text())
    assert {name: own["nbeta"] for name, own in facts["settings"].items()} == {"a": 100, "b": 200, "published": 133.3}
    assert (run / layout.DEVELOP).read_bytes() != before[layout.DEVELOP][1]


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (("--checkpoints", "last"), "a development needs six checkpoints or more"),
        (("--settings", "cold=1:2"), "is no setting, NAME=EPS:NBETA:GAMMA"),
        (("--settings", "published=1e-5:100:100"), "is no setting, NAME=EPS:NBETA:GAMMA"),
        (
            ("--settings", "cold=0:100:100"),
            "argument --settings: '0' is not a number above 0, from 1.18e-38 to 3.4e+38",
        ),
        (("--chains", 1), "argument --chains: '1' is not a whole number from 2 to 4096"),
        (("--checkpoints", "0,10"), "stages need 6"),
        (("--checkpoints", "7"), "has no snapshot of step 7"),
    ],
)
def test_it_refuses_what_it_cannot_measure(
    run: Path, refused: Refused, flags: tuple[object, ...], sentence: str
) -> None:
    assert sentence in refused("analysis.develop", "--run", run, *SMALL, *flags)


def test_a_run_without_snapshots_is_refused(lsa1_run: Path, tmp_path: Path, refused: Refused) -> None:
    assert "has no snapshots" in refused("analysis.develop", "--run", copied(lsa1_run, tmp_path / "run"), *SMALL)
