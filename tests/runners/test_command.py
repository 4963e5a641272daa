"""What a runner does around the training: it holds directories, and says how the run ended."""

import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from icl_lab.families.diversity.config import DiversityConfig
from icl_lab.families.regression.config import RegressionConfig
from icl_lab.runners.command import report_divergence, report_stop, resume_command
from icl_lab.runners.locks import locked_runs, restore_threads
from icl_lab.store import StoreError, checkpoint, layout, rundir
from icl_lab.store.lock import locked
from icl_lab.store.provenance import provenance_of
from tests.doors import Refused, ran, refused, snapshot

__all__ = ["ran", "refused"]

CONFIGS = [RegressionConfig(data_seed=seed, init_seed=seed) for seed in (0, 1)]


def begun(run: Path, config: RegressionConfig, **values: Any) -> Path:
    """A run that has begun under the conditions of now."""
    rundir.begin(run, config)
    facts = provenance_of(config, "cpu") | {"pack_width": 1, "run_seconds": 0.5, "status": "running"}
    rundir.update_meta(run, **facts | values)
    return run


@pytest.fixture
def pairs(tmp_path: Path) -> list[tuple[Path, RegressionConfig]]:
    """Two runs that have begun."""
    return [(begun(tmp_path / f"seed_{config.data_seed}", config), config) for config in CONFIGS]


# Holding directories


@pytest.mark.parametrize("overwrite", [False, True])
def test_held_runs_are_locked_and_cleared_only_if_they_are_to_be(
    pairs: list[tuple[Path, RegressionConfig]], overwrite: bool
) -> None:
    with locked_runs(pairs, overwrite):
        for run, _ in pairs:
            assert rundir.has_begun(run) != overwrite
            with pytest.raises(StoreError, match="in use"), locked(run):
                pytest.fail("two held the lock")


def test_nothing_is_cleared_while_another_run_is_in_use(tmp_path: Path, refused: Refused) -> None:
    demo = [begun(tmp_path / "seeds" / f"seed_{config.data_seed}", config) for config in CONFIGS]
    (demo[0] / layout.LOCK).touch()
    with locked(demo[1]):
        said = refused("scripts.demo_seeds", "--seeds", "0,1", "--overwrite", "--out", tmp_path / "seeds")
    assert f"{demo[1]} is in use by another process" in said


def test_a_directory_that_changed_before_it_was_locked_is_looked_at_again(tmp_path: Path) -> None:
    rundir.choose(CONFIGS[0], str(tmp_path / "run"), overwrite=False)
    begun(tmp_path / "run", CONFIGS[1])
    runs = [(tmp_path / "run", CONFIGS[0])]
    with pytest.raises(StoreError, match="holds a run of another config"), locked_runs(runs):
        pytest.fail("it was taken for a new one")


def test_conditions_of_runs_that_are_trained_anew_do_not_matter(pairs: list[tuple[Path, RegressionConfig]]) -> None:
    rundir.update_meta(pairs[1][0], versions={"jax": "0.1"})
    checkpoint.save(pairs[1][0], 1, {}, {})
    before = snapshot(pairs[0][0])
    with pytest.raises(StoreError, match=r"was begun with jax 0\.1"), locked_runs(pairs, strict=True):
        pytest.fail("it was resumed")
    assert snapshot(pairs[0][0]) == before | {layout.LOCK: (b"", 0)}
    with locked_runs(pairs, overwrite=True):
        pass


@pytest.mark.parametrize("chunk_steps", [0, -1, 1.5, "1", None, True, 2**31])
def test_a_chunk_length_that_is_none_is_not_taken_up(tmp_path: Path, chunk_steps: Any) -> None:
    run = begun(tmp_path / "run", CONFIGS[0], chunk_steps=chunk_steps)
    with pytest.raises(StoreError, match=r"meta\.json.*--overwrite"):
        restore_threads(run)


# How a run ended


def test_a_loss_that_is_not_finite_is_said_to_be_that(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = begun(tmp_path / "run", CONFIGS[0], status="diverged", diverged_at=7, last_losses=[0.5, float("inf")])
    assert report_divergence(run, "lsa1") == 1
    assert "lsa1 diverged at step 7 after test losses 0.5, not finite; a smaller --lr" in capsys.readouterr().err


def test_what_helps_is_a_setting_of_the_family(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    clip = ", a smaller --config.grad_clip or --config.activation_clip=10 usually helps"
    helps = {RegressionConfig(): clip, DiversityConfig(): " or a smaller --config.grad_clip usually helps"}
    for config, sentence in helps.items():
        run = begun(tmp_path / config.family, config, status="diverged", diverged_at=7, last_losses=[0.5])
        report_divergence(run, config.name)
        assert capsys.readouterr().err.endswith(f"a smaller --lr{sentence}\n")


def test_a_stop_says_where_runs_go_on_and_exits_with_the_signal_of_this_process(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not with that of a run that an earlier process stopped."""
    runs = [begun(tmp_path / name, CONFIGS[0], status="stopped", stopped_at=20, signal=2) for name in ("a", "b")]
    for run, step in zip(runs, (20, 40), strict=True):
        checkpoint.save(run, step, {}, {})
    fresh = tmp_path / "c"
    fresh.mkdir()
    assert report_stop([*runs, fresh], signal.SIGTERM) == 143
    assert capsys.readouterr().out.startswith("stopped at step 20, 40; the same command without --overwrite")
    rundir.update_meta(runs[0], signal=15)
    assert report_stop(runs, signal.SIGINT) == 130


def test_a_stop_before_anything_began_is_at_step_0(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert report_stop([tmp_path], signal.SIGINT) == 130
    assert capsys.readouterr().out.startswith("stopped at step 0; ")


@pytest.mark.parametrize(
    ("typed", "again"),
    [
        (["python3", "-m", "a.b", "--overwrite", "--out", "x"], "python3 -m a.b --out x"),
        (
            ["/my env/python", "-m", "a.b", "--out", "x --overwrite y"],
            "'/my env/python' -m a.b --out 'x --overwrite y'",
        ),
        (
            ["python", "-m", "a.b", "--out=--overwrites", "--name=$HOME"],
            "python -m a.b --out=--overwrites '--name=$HOME'",
        ),
        (["python", "-m", "a.b", "--out", "x\x1b[2J"], r"python -m a.b --out 'x\x1b[2J'"),
    ],
)
def test_the_command_that_resumes_is_the_one_that_was_typed(
    typed: list[str], again: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "orig_argv", typed)
    assert resume_command() == again
