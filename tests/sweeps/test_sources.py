"""Sweeps whose runs start from given parameters: each is the run of its runner, and wrong sources are sentences."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import icl_lab
from icl_lab.lab.configs.presets import preset, resolve, set_values
from icl_lab.lab.configs.run import RunConfig
from icl_lab.runners import flags
from icl_lab.runners.loop import run_one
from icl_lab.store import layout, rundir
from icl_lab.store.params import read_params
from icl_lab.sweeps.plan_file import read_plan
from icl_lab.sweeps.sweep import sweep
from tests.doors import Ran, Refused
from tests.runners.tiny import results
from tests.sweeps.tiny_sweep import SETTINGS

RUN = "sweeps.run"
STEPS = {"steps": 4}
SIZES = ["--steps", "4", *(f"--config.{name}={value}" for name, value in SETTINGS.items())]
PLAN = Path("runs/sweep_lsa1/plan_results_lsa1.json")


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run with snapshots of steps 0, 2 and 4; not to be changed."""
    config, run = preset("lsa1"), tmp_path_factory.mktemp("source") / "run"
    set_values(config, SETTINGS | STEPS | {"snapshots": True, "eval_every": 2})
    assert run_one(resolve(config), run) == "done"
    return run


def alone(*words: object) -> RunConfig:
    """The config of the runner's command."""
    return flags.read("lsa1", "runners.run", "", [*SIZES, *map(str, words)]).config


def asked() -> list[RunConfig]:
    """The configs of the plan's points."""
    return [point.asked for point in read_plan(PLAN)]


def column(name: str) -> Iterator[str]:
    """A column of the table."""
    header, *rows = (line.split(",") for line in Path("results_lsa1.csv").read_text().splitlines())
    yield from (row[header.index(name)] for row in rows)


def test_sources_are_an_axis_and_its_column(source: Path, ending: dict[str, Any], ran: Ran) -> None:
    done = ran(RUN, "lsa1", *SIZES, "--sweep", f"init_from=auto,{source},{source}@2", "--seeds", "0")
    expected = [alone(), alone("--init_from", source), alone("--init_from", f"{source}@2")]
    assert asked() == expected
    assert [*column("init_from")] == ["none", *(config.init_from for config in expected[1:])]
    for config, step in zip(expected[1:], (4, 2), strict=True):
        assert f"init_from {config.init_from} is {source}@{step}\n" in done.out
    assert "could not be read" not in done.out


def test_one_source_is_that_of_all_runs_and_may_move_with_another_field(
    source: Path, ending: dict[str, Any], ran: Ran
) -> None:
    ran(RUN, "lsa1", *SIZES, "--init_from", source, "--sweep", "lr=1e-3,1e-2", "--seeds", "0")
    assert asked() == [alone("--init_from", source, "--lr", rate) for rate in ("1e-3", "1e-2")]
    zipped = [f"init_from={source},{source}@0", "lr=1e-3,1e-2"]
    ran(RUN, "lsa1", *SIZES, "--zip", *zipped, "--seeds", "0", "--replace_table")
    assert asked() == [alone("--init_from", source), alone("--init_from", f"{source}@0", "--lr", "1e-2")]


def test_in_python_a_source_is_a_run_a_path_or_arrays(source: Path, ending: dict[str, Any]) -> None:
    axis = {"init_from": [icl_lab.load_run(source), f"{source}@0", read_params(source)]}
    sweep("lsa1", axis, settings=SETTINGS | STEPS)
    first, begun, own = asked()
    assert [first, begun] == [alone("--init_from", source), alone("--init_from", f"{source}@0")]
    assert own.init_from == "weights:" + first.init_from.rpartition(":")[2]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--sweep init_from=SOURCE,none", "none is not a run directory"),
        ("--sweep init_from=SOURCE@3", "has no snapshot of step 3"),
        ("--init_from SOURCE --sweep num_layers=1,2", "these parameters do not fit the model lsa1: layer_1/"),
        ("--init_from SOURCE --sweep init_from=SOURCE@2", "init_from is swept, and set for all runs alike"),
        ("--config.init_from=SOURCE", "init_from cannot be set with --config.; use --init_from"),
        ("--sweep init_from=SOURCE --zip init_from=SOURCE lr=1", "init_from is swept twice"),
        ("--stop_when eval_foo<1", "stop_when reads 'eval_foo'; the records of this run have train_loss, eval_loss"),
        ("--train_only nothing", "train_only is 'nothing'; it matches none of the parameters"),
    ],
)
def test_a_wrong_source_is_a_sentence_before_anything_is_written(
    words: str, sentence: str, source: Path, refused: Refused
) -> None:
    assert sentence in refused(RUN, "lsa1", *SIZES, *words.replace("SOURCE", str(source)).split())


@pytest.mark.slow
def test_a_trained_run_is_that_of_the_runner(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To the byte; runs of several sources train in one pack, where each starts from its own."""
    monkeypatch.chdir(tmp_path)
    expected = alone("--init_from", f"{source}@2")
    assert run_one(expected, tmp_path / "alone", init_from=f"{source}@2") == "done"
    sweep("lsa1", {"init_from": [source, f"{source}@2"]}, settings=SETTINGS | STEPS, executor="serial", quiet=True)
    paths = [Path("runs/sweep_lsa1", name) for name in column("exp")]
    ours, theirs = results(paths[1]), results(tmp_path / "alone")
    for name in (layout.CONFIG, layout.METRICS, layout.PARAMS, layout.INITIAL_PARAMS):
        assert ours[name] == theirs[name], name
    assert rundir.read_meta(paths[1])["init_from"]["run"] == str(source)
    more: dict[str, Any] = {"executor": "packed", "quiet": True, "settings": SETTINGS | STEPS}
    sweep("lsa1", {"init_from": ["auto", f"{source}@2"]}, runs_dir="packed", out="packed.csv", **more)
    sweep("lsa1", {"init_from": [f"{source}@2"]}, runs_dir="one", out="one.csv", **more)
    (one,) = Path("one").glob("lsa1*")
    for name in (layout.METRICS, layout.PARAMS):
        assert results(Path("packed", one.name))[name] == results(one)[name], name
