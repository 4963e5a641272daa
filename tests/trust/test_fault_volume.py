"""Over two hundred kills, each at a named place of the work: everything ends with the bytes of what never was killed.

A place is a file that is being written, is about to be renamed, or just was; a kill there does not depend on the clock.
Runs, sweeps, estimates of the LLC and studies are each killed again and again, and go on by the same command.
"""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from icl_lab.store import layout
from tests.analysis.llc_runs import trained, words
from tests.runners.tiny import EVERY_CHUNK, INTERRUPTED, LSA1, RECORDED, SIZES, TWOLAYER, Workshop, copied, results
from tests.studies.results import without_clock
from tests.sweeps.tiny_sweep import GRID, Paths, sweep_paths

pytestmark = pytest.mark.robust

WHEN = ("during", "before", "after")
RUN_SEEDS, SWEEP_SEEDS, LLC_SEEDS, STUDY_SEEDS = range(9), range(5), range(2), range(2)

# files of a run; those of the training first: a place of it is met only while there is training left
TRAINING = ("during:step_*", "before:step_*", "during:metrics.jsonl", "after:step_*", "during:step_*")
FINISHING = ("params.safetensors", "params.pkl", "analysis_batch.npz", "predictions.npz", "alignment.csv", "ood.csv")
# files of a sweep, in the order in which its first cell meets them
SWEEP = (
    *("plan_results.json", "results.csv", "config.json", "meta.json", "step_*.safetensors", "params.safetensors"),
    *("attention_stats.json", "comparators.json", "ood.csv", "metrics_summary.json"),
)
# places of a study in order: of its table and plan, its trainings, a finished run, and what it writes of its claims
STUDY_TRAINING = (
    *("before:plan_cells.json", "after:cells.csv", "after:config.json", "during:metrics.jsonl", "synced:metrics.jsonl"),
    *("during:step_*", "before:step_*", "after:step_*", "synced:metrics.jsonl", "during:metrics.jsonl"),
)
STUDY_RUN = ("params.safetensors", "metrics_summary.json", "meta.json", "cells.csv")
STUDY_RESULTS = ("claims.csv", "claims.md", "languages.md", "index.json")
CLAIM = "autoencoder_accuracy"  # of three trainings of 2000 steps, and the same networks untrained


def run_places(seed: int) -> list[str]:
    draw = random.Random(seed)
    return [*draw.sample(TRAINING, len(TRAINING)), *(f"{draw.choice(WHEN)}:{name}" for name in FINISHING)]


def sweep_places(seed: int) -> list[str]:
    draw = random.Random(seed)
    return [f"{draw.choice(WHEN)}:{name}" for name in SWEEP]


def llc_places(seed: int) -> list[str]:
    draw = random.Random(seed)
    return [f"{when}:*_step_{step:08d}.npz" for step in RECORDED for when in draw.sample(WHEN[:2], 2) + ["after"]]


def study_places(seed: int) -> list[str]:
    draw = random.Random(seed)
    of_run = [f"{draw.choice(WHEN)}:{name}" for name in STUDY_RUN]
    return [*STUDY_TRAINING, *of_run, *(f"{when}:{name}" for name in STUDY_RESULTS for when in draw.sample(WHEN, 3))]


def all_places() -> Iterator[list[str]]:
    yield from map(run_places, RUN_SEEDS)
    yield from map(sweep_places, SWEEP_SEEDS)
    yield from map(llc_places, LLC_SEEDS)
    yield from map(study_places, STUDY_SEEDS)


def test_there_are_two_hundred_kills_at_places_of_every_kind() -> None:
    places = [place for those in all_places() for place in those]
    assert len(places) > 200
    assert len({*places}) >= 60
    assert {place.partition(":")[0] for place in places} == {*WHEN, "synced"}


def killed_at_each(workshop: Workshop, places: list[str], line: list[object], **environment: str) -> None:
    """Does a command again and again, killed at one place after another."""
    for place in places:
        interrupted = {"INTERRUPT": f"{place}:SIGKILL", "PYTHONPATH": INTERRUPTED}
        killed = workshop.run(*map(str, line), **interrupted, **environment)
        assert killed.returncode == -9, f"{place}: {killed.stderr}"
    done = workshop.run(*map(str, line), **environment)
    assert done.returncode == 0, done.stderr


def is_the_same(found: dict[str, bytes], expected: dict[str, bytes]) -> None:
    assert found.keys() == expected.keys()
    assert [name for name in found if found[name] != expected[name]] == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", RUN_SEEDS)
def test_a_run(seed: int, workshop: Workshop, lsa1_run: Path, twolayer_run: Path, tmp_path: Path) -> None:
    module, expected = ((LSA1, lsa1_run), (TWOLAYER, twolayer_run))[seed % 2]
    line = [module, *SIZES, *EVERY_CHUNK, "--out", tmp_path / "run", "--save_attention"]
    killed_at_each(workshop, run_places(seed), line)
    is_the_same(results(tmp_path / "run"), results(expected))


@pytest.mark.slow
@pytest.mark.parametrize("seed", SWEEP_SEEDS)
def test_a_sweep(seed: int, swept: Paths, workshop: Workshop, tmp_path: Path) -> None:
    at = sweep_paths(tmp_path)
    line = ["eval_noise", *GRID, *EVERY_CHUNK, "--seeds", "0,1", *at.flags(), "--executor", "serial"]
    killed_at_each(workshop, sweep_places(seed), line, NPROC="1")
    assert at.table() == swept.table()
    assert not list(tmp_path.rglob(f"*{layout.DRAFT}"))


@pytest.mark.slow
@pytest.mark.parametrize("seed", LLC_SEEDS)
def test_estimates_of_the_llc(seed: int, workshop: Workshop, tmp_path: Path) -> None:
    whole, run = (copied(trained(workshop, "lsa1"), tmp_path / name) for name in ("whole", "run"))
    asked = ["--checkpoints", "all", *words(seed=7 + seed)]  # of the training's own seed are there
    assert workshop.run("analysis.llc", "--run", whole, *asked).returncode == 0
    killed_at_each(workshop, llc_places(seed), ["analysis.llc", "--run", run, *asked])
    is_the_same(results(run), results(whole))


def study_line(place: Path) -> list[object]:
    where = ["--report", place / "report", "--runs_dir", place / "runs", "--out", place / "cells.csv"]
    return ["studies.run", "languages", "--claims", CLAIM, *where, *EVERY_CHUNK, "--executor", "serial"]


@pytest.fixture(scope="module")
def whole_study(workshop: Workshop, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study that never was killed. Read only."""
    place = tmp_path_factory.mktemp("whole")
    done = workshop.run(*study_line(place), NPROC="1")
    assert done.returncode == 0, done.stderr
    return place


def files_of_study(place: Path) -> dict[str, bytes]:
    """What a study writes: its table of cells, the results of its runs, and the report without minutes and dates."""
    files = {"cells.csv": (place / "cells.csv").read_bytes(), **without_clock(place / "report", CLAIM)}
    for run in (path.parent for path in place.glob(f"runs/*/{layout.CONFIG}")):
        files |= {f"{run.name}/{name}": content for name, content in results(run).items()}
    return files


@pytest.mark.slow
@pytest.mark.parametrize("seed", STUDY_SEEDS)
def test_a_study(seed: int, workshop: Workshop, whole_study: Path, tmp_path: Path) -> None:
    killed_at_each(workshop, study_places(seed), study_line(tmp_path), NPROC="1")
    found = files_of_study(tmp_path)
    assert {*STUDY_RESULTS} <= found.keys()
    is_the_same(found, files_of_study(whole_study))
