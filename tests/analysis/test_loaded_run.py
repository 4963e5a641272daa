"""A loaded run of each family predicts what the run wrote itself, at its end and at every record of its training."""

import json
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from icl_lab import analysis, store
from icl_lab.analysis.loaded_run import ComparedRun, LoadedRun, load_compared, load_run
from icl_lab.families.diversity import task as diversity
from icl_lab.families.layerwise import task as layerwise
from icl_lab.families.regression import task as regression
from icl_lab.families.sine import task as sine
from icl_lab.families.task import model_of
from icl_lab.store import StoreError, layout
from icl_lab.store.atomic import write_safetensors
from icl_lab.store.readers import read_safetensors
from tests.runners.tiny import LSA1, RECORDED, SINE, SINE_SIZES, SIZES, Workshop, copied

# family -> its runner and flags, and how its model is made
DIVERSITY = "--num_heads 2 --config.d_model=8 --config.mlp_width=16 --config.test_tasks=64 --config.log_records=0"
DEPTH = "--config.num_queries=4 --config.test_tasks=100 --config.dim=3 --config.num_pairs=6 --config.eval_tasks=32"
SHORT = "--steps 60 --eval_every 30 --batch_size 32"
RUNS: dict[str, tuple[str, list[str], Any]] = {
    "regression": (LSA1, [*SIZES, "--num_layers=2", "--config.recurrent=true"], regression.make_model),
    "layerwise": ("runners.run_layerwise", f"{SHORT} {DEPTH}".split(), layerwise.make_model),
    "sine": (SINE, [*SINE_SIZES, "--config.key_size=6"], sine.make_model),
    "diversity": (
        "runners.run_task_diversity",
        f"{SHORT} {DIVERSITY} --num_tasks 4 --num_layers 1 --config.dim=4 --config.num_pairs=8 "
        "--config.eval_tasks=64".split(),
        diversity.make_model,
    ),
}


SLOW = ("layerwise", "diversity")  # to compile


@pytest.fixture(params=[pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in RUNS])
def run(request: pytest.FixtureRequest, workshop: Workshop) -> Path:
    """A finished run of each family that kept snapshots. Read only."""
    runner, sizes, _ = RUNS[request.param]
    name = "snapshots" if request.param == "regression" else f"snapshots_{request.param}"
    return workshop.finished(name, runner, "--config.snapshots=true", sizes=sizes)


def predictions_on_disk(run: Path, family: str) -> np.ndarray:
    """What the run wrote of its trained model on the evaluation set."""
    return np.load(run / layout.PREDICTIONS)[{"regression": "tf", "sine": "after", "diversity": "id_tf"}[family]]


def last_record(run: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run / layout.METRICS).read_text().splitlines()[-1])
    return found


def test_it_predicts_what_the_run_wrote(run: Path) -> None:
    loaded = analysis.load_run(run)
    family = loaded.config.family
    found = np.asarray(loaded.predict(loaded.batch))
    by_hand = RUNS[family][2](loaded.config).predict(store.load(run).params, store.load(run).batch)
    np.testing.assert_array_equal(found, by_hand)
    loss = 0.5 * np.mean((np.asarray(found, float) - loaded.batch.y_query) ** 2)
    assert loss == pytest.approx(last_record(run)["eval_loss"], rel=1e-4)
    if family != "layerwise":  # which writes losses alone
        np.testing.assert_allclose(found, predictions_on_disk(run, family), rtol=2e-4, atol=2e-6)


def test_its_arrays_are_arguments_of_a_program(run: Path) -> None:
    """One program for all checkpoints of a run."""
    loaded = load_run(run)
    program = jax.jit(lambda predict, batch: predict(batch))
    for _, checkpoint in loaded.checkpoints():
        program(checkpoint.predict, loaded.batch)
    assert program._cache_size() == 1


def test_checkpoints_end_with_the_trained_parameters(run: Path) -> None:
    loaded = load_run(run)
    records = [json.loads(line) for line in (run / layout.METRICS).read_text().splitlines()]
    found = dict(loaded.checkpoints())
    assert list(found) == [record["step"] for record in records]
    final = found[loaded.config.training.steps]
    jax.tree.map(np.testing.assert_array_equal, dict(final.params), dict(loaded.params))
    for record in records:
        at = found[record["step"]]
        loss = 0.5 * np.mean((np.asarray(at.predict(at.batch), float) - at.batch.y_query) ** 2)
        assert loss == pytest.approx(record["eval_loss"], rel=1e-4)
    assert (final.run, final.config, final.model) == (loaded.run, loaded.config, loaded.model)


def test_untrained_is_what_the_training_began_with(run: Path) -> None:
    """The first snapshot, and of a run without snapshots it can be had all the same."""
    loaded = load_run(run)
    step, first = next(loaded.checkpoints())
    drawn = loaded.untrained()
    assert (step, drawn.config, drawn.model) == (0, loaded.config, loaded.model)
    assert {*drawn.params} == {*first.params}
    for module, leaves in drawn.params.items():
        for name, value in leaves.items():
            np.testing.assert_allclose(value, first.params[module][name], rtol=1e-6, err_msg=f"{module}/{name}")


def test_parameters_of_another_model_are_refused(run: Path, tmp_path: Path) -> None:
    other = copied(run, tmp_path / "run")
    arrays, facts = read_safetensors(other / layout.PARAMS)
    name = sorted(arrays)[0]
    write_safetensors(other / layout.PARAMS, arrays | {name: arrays[name][:-1]}, facts)
    with pytest.raises(StoreError, match=layout.PARAMS):
        load_run(other)
    assert load_run(run).params.keys() == model_of(load_run(run).config).init(jax.random.key(0)).keys()


def test_snapshots_of_another_model_are_refused(run: Path, tmp_path: Path) -> None:
    other = copied(run, tmp_path / "run")
    arrays, _ = read_safetensors(other / layout.SNAPSHOTS)
    name = sorted(set(arrays) - {"step"})[0]
    write_safetensors(other / layout.SNAPSHOTS, arrays | {name: arrays[name][:, :-1]}, {})
    with pytest.raises(StoreError, match=str(layout.SNAPSHOTS)):
        next(load_run(other).checkpoints())


def test_a_run_without_snapshots_is_refused(lsa1_run: Path, sine_run: Path) -> None:
    for without in (lsa1_run, sine_run):
        with pytest.raises(StoreError, match=r"has no snapshots of its training; --config\.snapshots=true keeps them"):
            next(load_run(without).checkpoints())


def test_a_compared_run_keeps_its_gradient_descent(workshop: Workshop) -> None:
    run = workshop.finished("snapshots", LSA1, "--config.snapshots=true", sizes=RUNS["regression"][1])
    compared = load_compared(run)
    assert compared.gd.steps == 2
    for step, checkpoint in compared.checkpoints():
        assert isinstance(checkpoint, ComparedRun)
        assert (checkpoint.gd, step in RECORDED) == (compared.gd, True)
    assert not isinstance(load_run(run), ComparedRun)
    assert load_compared(run, eta=0.25).gd == (2, 0.25, "given", None)


def test_gradient_descent_is_compared_with_regression_alone(sine_run: Path) -> None:
    with pytest.raises(StoreError, match=f"^{sine_run} is a run of the family sine, not of regression$"):
        load_compared(sine_run)
    loaded = load_run(sine_run)
    assert loaded.of_family("sine") is loaded


def test_parameters_are_never_read_from_the_pickle(lsa1_run: Path, tmp_path: Path) -> None:
    run = copied(lsa1_run, tmp_path / "run")
    assert len(store.load(run)) == 3
    (run / layout.PARAMS).unlink()
    with pytest.raises(StoreError, match=f"^{run / layout.PARAMS} does not exist"):
        load_run(run)


def test_a_run_is_measured_in_the_precision_of_its_training(lsa1_run: Path) -> None:
    before = jax.config.jax_default_matmul_precision
    try:
        jax.config.update("jax_default_matmul_precision", "default")
        load_run(lsa1_run)
        assert jax.config.jax_default_matmul_precision == "highest"
    finally:
        jax.config.update("jax_default_matmul_precision", before)


def test_the_package_has_it_and_nothing_else() -> None:
    assert (analysis.load_run, LoadedRun.__module__) == (load_run, "icl_lab.analysis.loaded_run")
    with pytest.raises(AttributeError, match="analysis' has no attribute 'load_rum'"):
        _ = analysis.load_rum
