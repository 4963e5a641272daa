"""A run that ends early has the records and the parameters that the same run had at that step, and nothing later."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from icl_lab.analysis.loaded_run import load_run
from icl_lab.lab.progress import NullLogger
from icl_lab.runners import loop
from icl_lab.runners.finish import OutputOptions
from icl_lab.runners.loop import run_one, run_pack
from icl_lab.runners.static_shape import Run
from icl_lab.runners.summary import summary_text
from icl_lab.src.checks import ConfigError
from icl_lab.store import checkpoint, layout, snapshots
from icl_lab.store.metrics import read_metrics, read_summary
from icl_lab.store.params import flattened, read_params
from tests import processes
from tests.doors import snapshot
from tests.runners.test_extend import SHORT, longer, train
from tests.runners.tiny import copied, results

STOPPED_AT = 20  # the third record


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 25 steps that ends at its last. Read only."""
    run = tmp_path_factory.mktemp("whole") / "lsa1"
    assert run_one(SHORT, run) == "done"
    return run


@pytest.fixture(scope="module")
def rule(whole: Path) -> str:
    """A condition that holds at the third record and not at the second."""
    losses = {record["step"]: record["eval_loss"] for record in read_metrics(whole)}
    sign = "<" if losses[STOPPED_AT] < losses[10] else ">"
    return f"eval_loss {sign} {(losses[STOPPED_AT] + losses[10]) / 2!r}"


@pytest.fixture(scope="module")
def stopped(rule: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same run with the rule. Read only."""
    run = tmp_path_factory.mktemp("stopped") / "lsa1"
    assert run_one(replace(SHORT, stop_when=rule), run) == "done"
    return run


def lines(run: Path) -> list[str]:
    return (run / layout.METRICS).read_text().splitlines()


def test_it_has_the_records_and_the_parameters_of_that_step(stopped: Path, whole: Path) -> None:
    assert [json.loads(line)["step"] for line in lines(stopped)] == [0, 10, STOPPED_AT]
    assert lines(stopped) == lines(whole)[:3]
    expected, found = flattened(dict(snapshots.read(whole))[STOPPED_AT]), flattened(read_params(stopped))
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value)
    assert [step for step, _ in snapshots.read(stopped)] == [0, 10, STOPPED_AT]
    assert checkpoint.steps(stopped) == [STOPPED_AT]
    assert load_run(stopped).config.stop_when


def test_the_summary_has_the_reason(stopped: Path, whole: Path, rule: str) -> None:
    summary = read_summary(stopped)
    assert (summary["num_steps"], summary["stopped_early"]["step"]) == (STOPPED_AT, STOPPED_AT)
    assert summary["stopped_early"]["reason"].startswith("eval_loss is ")
    assert (
        f"stopped early, after {summary['num_steps']} of 25 steps: {summary['stopped_early']['reason']}"
        in summary_text(stopped)
    )
    assert "stopped_early" not in read_summary(whole)
    assert "stopped early" not in summary_text(whole)


def test_one_that_is_killed_when_it_has_ended_ends_there_again(
    stopped: Path, rule: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, config = tmp_path / "lsa1", replace(SHORT, stop_when=rule)

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(loop, "finalize", killed)
        with pytest.raises(KeyboardInterrupt):
            run_one(config, run)
    assert checkpoint.steps(run)[-1] == STOPPED_AT
    assert run_one(config, run) == "done"
    assert results(run) == results(stopped)


def test_in_a_pack_the_others_train_on_with_the_same_bits(rule: str, stopped: Path, tmp_path: Path) -> None:
    other = replace(SHORT, data_seed=1, init_seed=1)
    for folder, first in (("with", replace(SHORT, stop_when=rule)), ("without", SHORT)):
        runs = [Run(tmp_path / folder / "a", first), Run(tmp_path / folder / "b", other)]
        assert run_pack(runs, NullLogger(), OutputOptions(figures=False), width=2) == "done"
    assert results(tmp_path / "with" / "b") == results(tmp_path / "without" / "b")
    assert [json.loads(line)["step"] for line in lines(tmp_path / "with" / "a")] == [0, 10, STOPPED_AT]
    assert lines(tmp_path / "with" / "a") == lines(tmp_path / "without" / "a")[:3]
    assert read_summary(tmp_path / "with" / "a")["stopped_early"]["step"] == STOPPED_AT


def test_a_longer_one_goes_on_from_it_and_ends_there_too(rule: str, stopped: Path, tmp_path: Path) -> None:
    config = replace(SHORT, stop_when=rule)
    run_one(config, tmp_path / "short")
    assert train(longer(config), tmp_path / "longer") == [
        f"goes on from step {STOPPED_AT} with the state of {tmp_path / 'short'}"
    ]
    assert lines(tmp_path / "longer") == lines(stopped)
    assert read_summary(tmp_path / "longer")["num_steps"] == STOPPED_AT


@pytest.mark.parametrize("log_norms", [False, True])
def test_a_misspelt_column_is_a_sentence_before_anything_is_written(log_norms: bool, tmp_path: Path) -> None:
    """What it names are the columns of a run's records."""
    wrong = replace(SHORT, stop_when="eval_los < 1", log_norms=log_norms)
    with pytest.raises(ConfigError, match="reads 'eval_los'; the records of this run have train_loss, ") as said:
        run_one(wrong, tmp_path / "runs" / "wrong")
    assert not [*tmp_path.iterdir()]
    run_one(replace(wrong, stop_when="", training=replace(SHORT.training, steps=1)), tmp_path / "right")
    columns = [name for name in read_metrics(tmp_path / "right")[0] if name.startswith(("train_", "eval_"))]
    assert str(said.value).partition("have ")[2] == ", ".join(columns)


def test_a_misspelt_column_clears_no_run_that_would_be_trained_again(tmp_path: Path, whole: Path) -> None:
    run = copied(whole, tmp_path / "lsa1")
    before = snapshot(run)
    done = processes.command("runners.run", "lsa1", "--overwrite", "--stop_when", "eval_los < 1", "--out", run)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert snapshot(run) == before
