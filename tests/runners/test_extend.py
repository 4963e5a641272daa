"""A run that goes on from a shorter one beside it has the id, files and bits of one that was asked for at once."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from icl_lab.families.functions.config import Curriculum, FunctionsConfig
from icl_lab.families.regression.config import RegressionConfig
from icl_lab.lab.configs.identity import config_id
from icl_lab.lab.configs.presets import command_of
from icl_lab.lab.progress import NullLogger
from icl_lab.runners.extend import EXTENDS, extend, shorter_runs
from icl_lab.runners.finish import OutputOptions
from icl_lab.runners.loop import run_one, run_pack
from icl_lab.runners.resume import Start
from icl_lab.runners.static_shape import Run
from icl_lab.src.config import TrainConfig
from icl_lab.store import checkpoint, layout, manifest, provenance, rundir
from tests.runners.tiny import copied, results

TRAINING = TrainConfig(steps=25, batch_size=8)
SHORT = RegressionConfig(
    name="lsa1",
    training=TRAINING,
    data=replace(RegressionConfig().data, dim=2, num_pairs=3),
    eval_every=10,
    eval_tasks=4,
    test_tasks=8,
    step_size_tasks=8,
    snapshots=True,
)
STEPS = 45  # 25, the last of the short run, is no step with a record of the long one


class Lines(NullLogger):
    """The lines of a training but that of the device."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def line(self, text: str) -> None:
        if not text.startswith("device: "):
            self.said.append(text)


def longer(config: RegressionConfig, steps: int = STEPS, **training: Any) -> RegressionConfig:
    return replace(config, training=replace(config.training, steps=steps, **training))


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of 25 steps. Read only, and alone in its folder."""
    run = tmp_path_factory.mktemp("short") / "lsa1"
    assert run_one(SHORT, run) == "done"
    return run


@pytest.fixture(scope="module")
def at_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of 45 steps, trained from step 0. Read only."""
    run = tmp_path_factory.mktemp("at_once") / "lsa1"
    assert run_one(longer(SHORT), run) == "done"
    assert EXTENDS not in rundir.read_meta(run)
    return run


@pytest.fixture
def beside(short: Path, tmp_path: Path) -> Callable[..., Path]:
    """A copy of the short run, changed by a function, beside which others are trained."""

    def copy(name: str = "lsa1", meta: Mapping[str, Any] | None = None) -> Path:
        run = copied(short, tmp_path / name)
        if meta:
            rundir.update_meta(run, **meta)
        return run

    return copy


def train(config: RegressionConfig, run: Path, keep_state: bool = True) -> list[str]:
    """Trains a run, and gives the lines that were said."""
    logger = Lines()
    rundir.choose(config, str(run), overwrite=False)
    outputs = OutputOptions(keep_state=keep_state)
    assert run_pack([Run(run, config)], logger, outputs, start=Start(extend=True)) == "done"
    return logger.said


def test_a_longer_run_goes_on_from_the_state_of_a_shorter_one(beside: Callable[..., Path], at_once: Path) -> None:
    source = beside()
    run = source.parent / "longer"
    before = results(source)
    assert train(longer(SHORT), run) == [f"goes on from step 25 with the state of {source}"]
    assert results(run) == results(at_once)
    assert results(source) == before
    meta = rundir.read_meta(run)
    assert meta[EXTENDS] == {"run": str(source), "step": 25, "config_id": config_id(SHORT)}
    assert (meta["config_id"], meta["bitwise"]) == (config_id(longer(SHORT)), True)
    assert meta["run_seconds"] > rundir.read_meta(source)["run_seconds"]  # of all its steps
    recorded = [json.loads(line)["step"] for line in (run / layout.METRICS).read_text().splitlines()]
    assert recorded == [0, 10, 20, 30, 40, 45]


def test_a_kill_between_the_copied_files_costs_nothing(
    beside: Callable[..., Path], at_once: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = beside().parent / "longer"

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "save", killed)
        with pytest.raises(KeyboardInterrupt):
            train(longer(SHORT), run)
    assert (run / layout.METRICS).exists()
    assert train(longer(SHORT), run) == [f"goes on from step 25 with the state of {run.parent / 'lsa1'}"]
    assert results(run) == results(at_once)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({checkpoint.KEEPS_STATE: None}, "keeps no state of its optimiser"),
        ({"threads": 999}, "under other conditions: threads .* instead of 999 from step 25"),
        ({"bitwise": False}, "it was itself resumed under other conditions"),
        ({"llc": {"every": 2}}, "its records have other estimates of the LLC"),
    ],
)
def test_where_the_bits_would_be_others_a_line_says_why_it_does_not(
    changed: dict[str, Any], said: str, beside: Callable[..., Path]
) -> None:
    source = beside(meta=changed)
    line = line_for(longer(SHORT), source)
    assert line.startswith(f"{source} has the first 25 steps of this training, but ")
    assert re.search(said, line)
    command = f"{command_of(longer(SHORT))} --init_from {source}"
    assert line.endswith(f"therefore trains from step 0; to start from the shorter run's parameters, use {command}")


def line_for(config: RegressionConfig, source: Path) -> str:
    """What is said of a run that finds this one beside it, which gets no file of it."""
    run = source.parent / "longer"
    conditions = provenance.current_conditions(1, rundir.read_meta(source)["device"])
    line = extend(Run(run, config), conditions)
    assert not run.exists()
    return line


def test_a_damaged_state_is_not_gone_on_from(beside: Callable[..., Path]) -> None:
    source = beside()
    checkpoint.kept_state(source).write_bytes(b"damaged")
    assert "step_00000025.safetensors" in line_for(longer(SHORT), source)


def test_records_that_are_spaced_by_the_number_of_steps_are_others(beside: Callable[..., Path]) -> None:
    source, spaced = beside(), replace(SHORT, log_records=4)
    rundir.begin(source, spaced)
    rundir.update_meta(source, config_id=config_id(spaced))
    assert "its records are of other steps" in line_for(longer(spaced), source)


def test_a_schedule_that_depends_on_the_number_of_steps_is_trained_from_step_0(tmp_path: Path) -> None:
    cosine = longer(SHORT, 25, schedule="cosine")
    train(cosine, tmp_path / "lsa1")
    assert "depends on the total number of steps (schedule cosine)" in line_for(longer(cosine), tmp_path / "lsa1")


def test_only_finished_runs_that_are_equal_but_shorter_count(beside: Callable[..., Path], tmp_path: Path) -> None:
    beside("lsa1")
    beside("failed", {"status": "failed"})
    beside("other_results", {"config_id": "0" * 16})
    new = tmp_path / "new"
    assert shorter_runs(Run(new, longer(SHORT))) == [tmp_path / "lsa1"]
    for other in (
        SHORT,
        longer(SHORT, 20),
        replace(longer(SHORT), data_seed=1),
        replace(longer(SHORT), snapshots=False),
        longer(SHORT, lr=0.5),
    ):
        assert shorter_runs(Run(new, other)) == []


def test_a_run_that_is_too_short_for_a_curriculum_is_of_other_settings(tmp_path: Path) -> None:
    """Its steps with the curriculum are a config that cannot be."""
    short = FunctionsConfig(training=TrainConfig(steps=20))
    rundir.begin(tmp_path / "short", short)
    rundir.update_meta(tmp_path / "short", status="done", config_id=config_id(short))
    growing = replace(
        short, curriculum=Curriculum(start_dims=2, dims_every=10), training=replace(short.training, steps=50)
    )
    assert shorter_runs(Run(tmp_path / "new", growing)) == []
    constant = replace(growing, curriculum=Curriculum())
    assert shorter_runs(Run(tmp_path / "new", constant)) == [tmp_path / "short"]


def test_the_longest_counts(tmp_path: Path) -> None:
    for name, steps in (("a", 5), ("b", 10)):
        config = longer(SHORT, steps)
        rundir.begin(tmp_path / name, config)
        rundir.update_meta(tmp_path / name, status="done", config_id=config_id(config))
    assert shorter_runs(Run(tmp_path / "new", SHORT)) == [tmp_path / "b", tmp_path / "a"]


def test_the_state_stays_with_the_run_and_goes_with_it(beside: Callable[..., Path]) -> None:
    run = beside()
    assert checkpoint.steps(run) == [25]
    assert f"{layout.CHECKPOINTS}/step_00000025.safetensors" in manifest.files(run)
    assert manifest.foreign_files(run) == []
    assert rundir.clear(run) == []
    assert not (run / layout.CHECKPOINTS).exists()


def test_without_it_a_run_is_as_runs_were(tmp_path: Path) -> None:
    train(replace(SHORT, snapshots=False), tmp_path / "lsa1", keep_state=False)
    assert not (tmp_path / "lsa1" / layout.CHECKPOINTS).exists()
    assert checkpoint.KEEPS_STATE not in rundir.read_meta(tmp_path / "lsa1")
