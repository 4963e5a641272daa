"""`python -m analysis.develop`: one table and one figure, made again only where something differs; and after a kill."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from store import layout
from tests.doors import Refused, ran, refused
from tests.runners.tiny import LSA1, SIZES, Workshop, copied

__all__ = ["ran", "refused"]
SMALL = ("--chains", 2, "--burn_in", 4, "--draws", 16, "--tasks", 64)
EVERY = ["10" if word == "30" else word for word in SIZES]
FILES = (layout.DEVELOP, layout.DEVELOP_TABLE, layout.DEVELOP_STAGES)
SETTINGS = ("default", "cold", "published")


@pytest.fixture
def run(workshop: Workshop, tmp_path: Path) -> Path:
    return copied(workshop.finished("develop", LSA1, "--config.snapshots=true", sizes=EVERY), tmp_path / "run")


def developed(workshop: Workshop, run: Path, *flags: object) -> str:
    done = workshop.run("analysis.develop", "--run", run, *SMALL, *flags)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_gathers_what_the_single_analyses_say(workshop: Workshop, run: Path) -> None:
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
    stages = pd.read_csv(run / layout.DEVELOP_STAGES)
    assert set(stages["setting"]) == set(SETTINGS)
    assert facts["stages"] == stages["stage"].nunique()
    assert facts["claimed"] == stages[stages["claimed"]]["stage"].nunique()
    assert f"{facts['stages']}, of which {facts['claimed']} leave their nulls" in said
    assert (run / layout.DEVELOP_FIGURE).read_bytes().startswith(b"\x89PNG")


def test_a_stage_begins_where_the_one_before_ended_and_nulls_are_those_of_the_table(
    workshop: Workshop, run: Path
) -> None:
    developed(workshop, run)
    stages = pd.read_csv(run / layout.DEVELOP_STAGES).query("setting == 'default'")
    table = pd.read_csv(run / layout.DEVELOP_TABLE).set_index("step")
    nbeta = json.loads((run / layout.DEVELOP).read_text())["settings"]["default"]["nbeta"]
    assert (stages["start"].to_numpy()[1:] == stages["end"].to_numpy()[:-1]).all()
    for row in stages.itertuples():
        rise = table["llc_default"][row.end] - table["llc_default"][row.start]
        fall = table["loss_default"][row.end] - table["loss_default"][row.start]
        assert row.delta_llc == pytest.approx(rise, rel=1e-9, abs=1e-12)
        assert row.loss_null == pytest.approx(-nbeta * fall, rel=1e-9, abs=1e-12)
        assert np.isnan(row.norm_null) == (rise >= 0)


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
        (("--settings", "cold=1:2"), "a setting is NAME=EPS:NBETA:GAMMA"),
        (("--settings", "published=1e-5:100:100"), "a setting is NAME=EPS:NBETA:GAMMA"),
        (("--settings", "cold=0:100:100"), "eps is 0; it must be above 0"),
        (("--chains", 1), "chains is 1; it must be 2 or more"),
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
