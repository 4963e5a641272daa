"""`python -m analysis.develop`: one table and one figure, made again only where something differs; and after a kill."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from icl_lab.analysis import develop
from icl_lab.analysis.development.annealed import annealed
from icl_lab.analysis.development.found_stages import found_stages
from icl_lab.analysis.development.nulls import Estimates
from icl_lab.analysis.llc.checkpoints import checkpoints
from icl_lab.analysis.llc.estimator import Estimator
from icl_lab.analysis.llc.settings import Settings
from icl_lab.analysis.loaded_run import load_run
from icl_lab.plots import develop as plot
from icl_lab.plots import style
from icl_lab.store import layout
from icl_lab.store.llc_rows import is_sampled
from tests.doors import Refused, ran, refused
from tests.runners.tiny import LSA1, SIZES, Workshop, copied

__all__ = ["ran", "refused"]
SMALL = ("--chains", 4, "--burn_in", 4, "--draws", 16, "--tasks", 64)
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
    estimates = {name: facts["estimates"][name] for name in SETTINGS}
    for name, own in estimates.items():
        np.testing.assert_allclose(np.mean(own["llc"], axis=1), table[f"llc_{name}"], rtol=1e-5)
    both = np.array(estimates["default"]["sampled"]) & np.array(estimates["tight"]["sampled"])
    assert facts["sampled_at_all"] == table["step"][both].tolist()
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


# --- stages, on estimates made by hand ---

STEPS = np.array([0, *np.unique(np.geomspace(1, 5000, 24).round().astype(int))])


def estimates_of(llc: np.ndarray, predicted: np.ndarray | None = None, sick: Sequence[int] = ()) -> Estimates:
    """Sixteen chains whose means have errors of .02, a loss that falls a little; nothing predicted unless given."""
    half = 0.02 * np.sqrt(8) * np.linspace(-1, 1, 8) / np.linspace(-1, 1, 8).std(ddof=1)
    said = np.zeros(len(STEPS)) if predicted is None else predicted
    sampled = ~np.isin(STEPS, sick)
    chains = llc[:, None] + np.tile(half, 2)
    return Estimates(STEPS.astype(float), np.linspace(1, 0.99, len(STEPS)), chains, said, 0 * said, sampled)


def stages_of(run: Path, own: Estimates) -> list[dict[str, Any]]:
    """The rows of stages at two settings that agree."""
    recipe = develop.Recipe({name: Settings(**develop.SETTINGS[name]) for name in ("default", "tight")})
    tested = develop.Tested(load_run(run), recipe, dict.fromkeys(recipe.settings, own), {})
    return develop.stage_rows(tested, found_stages(own))


def rise(at: float, height: float) -> np.ndarray:
    return np.asarray(height / (1 + np.exp(-(np.log1p(STEPS) - np.log1p(at)) / 0.25)))


def claimed(rows: Sequence[Mapping[str, Any]]) -> set[tuple[str, bool]]:
    return {(row["type"], row["claimed"]) for row in rows if row["type"] != "undecided"}


def test_a_rise_between_two_plateaus_is_claimed_and_found_where_it_is(run: Path) -> None:
    rows = stages_of(run, estimates_of(rise(200, 3.0)))
    assert claimed(rows) == {("A", True)}
    own = next(row for row in rows if row["type"] == "A")
    assert own["start"] < 200 < own["end"]
    assert np.isnan(own["delta_annealed"])
    assert own["p_annealed"] is None


def test_a_fall_is_claimed_beyond_what_the_hessian_explains(run: Path) -> None:
    falling = 3.0 - rise(200, 2.0)
    assert claimed(stages_of(run, estimates_of(falling))) == {("B", True)}
    assert claimed(stages_of(run, estimates_of(falling, predicted=falling))) == {("B", False)}


def test_a_line_and_noise_have_no_stage(run: Path) -> None:
    noise = np.random.default_rng(0).normal(size=len(STEPS)) * 0.02
    assert stages_of(run, estimates_of(np.log1p(STEPS) + noise)) == []
    assert stages_of(run, estimates_of(noise)) == []


def test_checkpoints_whose_chains_did_not_sample_are_in_no_stage(run: Path) -> None:
    sick, wild = [int(step) for step in STEPS[::3]], rise(200, 3.0)
    wild[::3] -= 5.0
    rows = stages_of(run, estimates_of(wild, sick=sick))
    assert claimed(rows) == {("A", True)}
    assert not {row[end] for row in rows for end in ("start", "end")} & set(sick)
    assert stages_of(run, estimates_of(wild, sick=[int(step) for step in STEPS[5:]])) == []


@pytest.mark.slow
def test_other_seeds_and_branches_are_nulls_where_they_are_asked_for(workshop: Workshop, run: Path) -> None:
    flags = ("--settings", "a=5e-5:133:4000", "--burn_in", 100, "--draws", 100)
    others = []
    for seed in ("7", "8"):  # one run has too few sampled checkpoints for a function of the loss
        trained = workshop.finished(f"seed{seed}", LSA1, "--config.snapshots=true", "--seed", seed, sizes=EVERY)
        others.append(copied(trained, run.parent / f"seed{seed}"))
        developed(workshop, others[-1], *flags)
    developed(workshop, run, *flags, "--also", ",".join(map(str, others)), "--anneal", 0.5)
    facts = json.loads((run / layout.DEVELOP).read_text())
    stages = pd.read_csv(run / layout.DEVELOP_STAGES)
    assert [*facts["estimates"]["a"]] == [*Estimates._fields]
    assert {"delta_of_loss", "p_of_loss", "delta_annealed", "p_annealed"} <= {*stages}
    own = stages[stages["setting"] == "a"]
    assert own["p_of_loss"].notna().all()
    assert own["p_annealed"].notna().all()
    (largest,) = facts["largest_changes"].values()
    assert largest["start"] < largest["end"]
    assert not {"p_of_loss", "p_annealed"} & {name for name, value in largest.items() if value is None}


def test_the_branches_of_a_run_are_estimated_at_their_ends(run: Path) -> None:
    """From a step of the run, as the chains of a checkpoint are; nothing but the rate differs."""
    settings = {"tight": Settings(eps=1e-4, nbeta=133.3, gamma=4000.0, chains=4, burn_in=4, draws=16, tasks=64)}
    branches = develop.Branches(load_run(run), develop.Recipe(settings, anneal=0.5))
    ((step, params),) = checkpoints(run, 100, "100")
    ended = annealed(load_run(run).config, {}, params, step, 0.5)
    row, traces = Estimator(load_run(run).config, settings["tight"], {})(100, ended)
    expected = settings["tight"].nbeta * traces["excess"].astype(float)[:, 4:].mean(axis=1)
    found = branches("tight", 100)
    np.testing.assert_array_equal(found, expected if is_sampled(row) else expected[:0])


@pytest.mark.parametrize(
    ("other", "sentence"),
    [
        ("itself", "have the same seeds"),
        ("longer", "--also takes runs that differ in"),
        ("bare", "has no results of analysis.develop; run python -m analysis.develop --run"),
    ],
)
def test_others_are_developed_runs_of_one_training(
    run: Path, tmp_path: Path, refused: Refused, other: str, sentence: str
) -> None:
    at = copied(run, tmp_path / "other")
    config = json.loads((at / layout.CONFIG).read_text())
    if other != "itself":
        config |= {"data_seed": 9, "init_seed": 9}
    if other == "longer":
        config["training"]["lr"] = 0.5
    (at / layout.CONFIG).write_text(json.dumps(config))
    assert sentence in refused("analysis.develop", "--run", run, *SMALL, "--also", at)


@pytest.mark.slow
def test_a_setting_whose_chains_diverge_has_no_line_and_the_others_stay(workshop: Workshop, run: Path) -> None:
    said = developed(workshop, run, "--settings", "cold=1e-6:133:667,hot=1e4:133:667")
    facts = json.loads((run / layout.DEVELOP).read_text())
    assert "hot" not in facts["lines"]
    assert np.isfinite(facts["lines"]["cold"]["slope_over_minus_nbeta"])
    assert "LLC, hot" in said
    assert "no linear fit of the LLC to the loss" in said
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
        (("--settings", "cold=1:2"), "is not a setting, NAME=EPS:NBETA:GAMMA"),
        (("--settings", "published=1e-5:100:100"), "is not a setting, NAME=EPS:NBETA:GAMMA"),
        (
            ("--settings", "cold=0:100:100"),
            "argument --settings: '0' is not a number above 0, from 1.18e-38 to 3.4e+38",
        ),
        (("--chains", 1), "argument --chains: '1' is not a whole number from 2 to 4096"),
        (("--chains", 3), "chains is 3; at least 4 are needed, as half of them find where stages begin and end"),
        (("--anneal", 11), "argument --anneal: '11' is not a number from 0 to 10 (a longer branch"),
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
