"""A run that keeps its best parameters, or records norms, is otherwise the run that it would be without."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import icl_lab
from icl_lab.families.regression.config import RegressionConfig
from icl_lab.lab.configs.run import Seeds
from icl_lab.lab.progress import NULL_LOGGER
from icl_lab.runners import loop
from icl_lab.runners.extend import EXTENDS
from icl_lab.runners.finish import OutputOptions
from icl_lab.runners.loop import run_one, run_pack
from icl_lab.runners.static_shape import Run
from icl_lab.runners.summary import summary_text
from icl_lab.store import StoreError, best_params, layout, rundir, runs, snapshots
from icl_lab.store.listing import list_runs
from icl_lab.store.metrics import read_summary
from icl_lab.store.params import flattened, read_params
from icl_lab.store.weights import weights_of
from icl_lab.sweeps.collect import result_columns, row_values
from icl_lab.sweeps.plan import Point, RunSeries
from tests.runners.test_extend import SHORT, longer
from tests.runners.tiny import results

# so large a rate that the least loss is not the last
PLAIN = replace(SHORT, training=replace(SHORT.training, lr=0.5, grad_clip=0.0), eval_every=5)
BOTH = replace(PLAIN, keep_best=True, log_norms=True)
NORMS = {"train_grad_norm", "param_norm", "lr"}


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with snapshots. Read only."""
    run = tmp_path_factory.mktemp("plain") / "lsa1"
    assert run_one(PLAIN, run) == "done"
    return run


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with its best parameters and norms. Read only."""
    run = tmp_path_factory.mktemp("both") / "lsa1"
    assert run_one(BOTH, run) == "done"
    return run


def records(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / layout.METRICS).read_text().splitlines()]


def test_no_bit_of_the_run_is_another(plain: Path, both: Path) -> None:
    without = [{name: value for name, value in record.items() if name not in NORMS} for record in records(both)]
    assert without == records(plain)
    for name in (layout.SNAPSHOTS, layout.PREDICTIONS):
        assert (both / name).read_bytes() == (plain / name).read_bytes()
    found, expected = flattened(read_params(both)), flattened(read_params(plain))
    assert all((found[name] == value).all() for name, value in expected.items())


def test_the_best_parameters_are_those_of_the_record_with_the_least_loss(plain: Path, both: Path) -> None:
    best = min(records(plain), key=lambda record: record["eval_loss"])
    assert best["step"] < 25, "the run does not test what it should: its last record is its best"
    found = best_params.read(both)
    assert (found.step, found.eval_loss) == (best["step"], best["eval_loss"])
    for name, value in flattened(dict(snapshots.read(plain))[best["step"]]).items():
        np.testing.assert_array_equal(flattened(found.params)[name], value)


def test_the_summary_says_whose_its_numbers_are(plain: Path, both: Path) -> None:
    best = best_params.read(both)
    assert read_summary(both)["best"] == {"step": best.step, "eval_loss": best.eval_loss}
    said = f"all numbers are of the last parameters; the least eval_loss, {best.eval_loss:.4g}, is at step {best.step}"
    assert said in summary_text(both)
    assert "all numbers are of" not in summary_text(plain)


def test_a_row_says_whose_its_numbers_are(plain: Path, both: Path, tmp_path: Path) -> None:
    found = best_params.read(both)
    whose = {"measured_params": "last", "measured_step": 25, "best_step": found.step, "best_eval_loss": found.eval_loss}
    point = planned(BOTH)
    assert (
        run_pack([Run(made(tmp_path / point.run.name), BOTH)], NULL_LOGGER, OutputOptions(figures=False, table=True))
        == "done"
    )
    assert columns_of(row_values(point, tmp_path), whose) == whose
    not_begun = row_values(point, tmp_path / "nowhere")
    assert columns_of(not_begun, whose) == dict.fromkeys(whose)
    assert not {*row_values(planned(PLAIN), tmp_path)} & {*whose}
    assert result_columns([*not_begun], ["lsa1"]) >= {*whose}
    row = icl_lab.table(both).iloc[0]
    assert (row["measured_params"], row["measured_step"], row["best.step"]) == ("last", 25, found.step)
    assert not {*icl_lab.table(plain)} & {*whose}
    listed = [runs.text_of(list_runs(run), datetime.now(UTC)) for run in (both, plain)]
    assert f"(step 25, the last; best: step {found.step})" in listed[0]
    assert "the last" not in listed[1]


def made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def planned(config: RegressionConfig) -> Point:
    return Point(config, RunSeries(config).run(Seeds()))


def columns_of(row: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: row[name] for name in names}


def test_a_run_in_python_has_its_best_parameters(plain: Path, both: Path) -> None:
    """Its predictions with them are those of the snapshot of that step, whose loss is the least."""
    run = icl_lab.load_run(both)
    step = run.best.step
    snapshot = dict(icl_lab.load_run(plain).checkpoints())[step]
    batch = run.batch
    np.testing.assert_array_equal(
        run.best.predict(batch.x, batch.y, batch.x_query), snapshot.predict(batch.x, batch.y, batch.x_query)
    )
    found = 0.5 * np.mean((run.best.predict(batch.x, batch.y, batch.x_query) - batch.y_query) ** 2)
    assert found == pytest.approx(best_params.read(both).eval_loss, rel=1e-5)  # float32
    assert "of the last parameters; run.best has the best ones" in repr(run)
    assert f"step     {step}" in repr(run.best)
    with pytest.raises(StoreError, match="no parameters of its best record; --keep_best keeps them"):
        _ = icl_lab.load_run(plain).best


def test_a_run_can_start_from_them(both: Path, plain: Path) -> None:
    weights = weights_of(f"{both}@best")
    assert weights.origin["step"] == best_params.read(both).step
    with pytest.raises(StoreError, match="no parameters of its best record; --keep_best keeps them"):
        weights_of(f"{plain}@best")


def test_the_norms_are_those_of_the_snapshots(both: Path) -> None:
    for record, (step, params) in zip(records(both), snapshots.read(both), strict=True):
        squares = sum((leaf.astype(float) ** 2).sum() for leaf in flattened(params).values())
        assert record["step"] == step
        assert record["param_norm"] == pytest.approx(np.sqrt(squares), rel=1e-5)  # float32
        assert record["lr"] == 0.5
        assert record["train_grad_norm"] > 0


def test_a_kill_and_a_shorter_run_beside_it_change_nothing(
    both: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, shorter = tmp_path / "lsa1", longer(BOTH, 15)
    run_one(shorter, tmp_path / "shorter")

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(loop, "finalize", killed)
        with pytest.raises(KeyboardInterrupt):
            run_one(BOTH, run)
    run_one(BOTH, run)
    assert rundir.read_meta(run)[EXTENDS]["step"] == 15
    assert results(run) == results(both)
