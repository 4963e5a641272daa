"""Step sizes read from predictors that take known ones, and the command on small runs."""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from icl_lab.analysis.loaded_run import LoadedRun
from icl_lab.analysis.position_steps import EXCHANGEABLE, agreement, position_steps, read_step_sizes
from icl_lab.baselines.construction import gd_params
from icl_lab.baselines.gradient_descent import gd
from icl_lab.baselines.position_weighted import position_weighted_gd
from icl_lab.families.regression.config import RegressionConfig
from icl_lab.families.regression.task import make_model
from icl_lab.src.batch import Batch
from icl_lab.src.checks import ConfigError
from icl_lab.src.config import Architecture, ContextConfig, ModelConfig
from icl_lab.src.data_config import DataConfig
from icl_lab.store import layout
from tests import reference
from tests.runners.tiny import Workshop, copied

STEPS = np.array([0.9, -0.2, 0.4, 0.0, 1.3, 0.5])
SMALL = RegressionConfig(data=DataConfig(dim=4, num_pairs=6), step_size_tasks=512, test_tasks=300)


def constructed(config: RegressionConfig, step_size: float) -> LoadedRun:
    """A run whose layers are steps of gradient descent."""
    params = gd_params(config.architecture, step_size)
    return LoadedRun(Path("run"), config, make_model(config), params, None)


def test_the_step_sizes_of_a_known_predictor_are_read() -> None:
    batch = reference.random_batch(0, size=200)
    with jax.enable_x64(True):
        found = read_step_sizes(partial(position_weighted_gd, step_sizes=STEPS), batch)
    for name in ("regressed", "differentiated"):
        np.testing.assert_allclose(found[name], STEPS, atol=1e-9, err_msg=name)
    np.testing.assert_allclose(found["regressed_se"], 0, atol=1e-9)
    assert found["variance_explained"] == pytest.approx(1, abs=1e-12)
    f = batch.y * np.einsum("bnd,bd->bn", batch.x, batch.x_query)
    values, total = f @ STEPS, f.sum(axis=1)
    one = 1 - np.sum((values - total * (values @ total) / (total @ total)) ** 2) / np.sum(values**2)
    assert found["variance_explained_by_one_step_size"] == pytest.approx(one, rel=1e-9)


@pytest.mark.parametrize("code", [0, 20])
def test_the_constructed_layer_takes_one_step_size_everywhere(code: int) -> None:
    model = ModelConfig(pos_enc_size=code)
    architecture = Architecture(model, 4, 6)
    layer = make_model(replace(SMALL, model=model))
    batch = reference.random_batch(1, size=200)
    with jax.enable_x64(True):
        params = jax.tree.map(jnp.asarray, gd_params(architecture, 0.37))
        found = read_step_sizes(partial(layer.predict, params), batch)
    for name in ("regressed", "differentiated"):
        np.testing.assert_allclose(found[name], 0.37, atol=1e-10, err_msg=name)
    for name in ("variance_explained", "variance_explained_by_one_step_size"):
        assert found[name] == pytest.approx(1, abs=1e-10)


def test_of_two_steps_each_reading_is_what_it_says() -> None:
    """NumPy's least squares on f; derivatives by differences, for two steps are linear in the labels."""
    batch = reference.random_batch(2, size=40)
    predictions = reference.gd(batch, 0.05, 2)
    f = batch.y * np.einsum("bnd,bd->bn", batch.x, batch.x_query)
    towards = np.einsum("bnd,bd->bn", batch.x, batch.x_query)
    moved = [batch._replace(y=batch.y + unit) for unit in np.eye(6)]
    derivatives = np.stack([reference.gd(part, 0.05, 2) - predictions for part in moved], axis=1)
    with jax.enable_x64(True):
        found = read_step_sizes(partial(gd, step_size=0.05, steps=2), batch)
    expected, residuals, *_ = np.linalg.lstsq(f, predictions, rcond=None)
    np.testing.assert_allclose(found["regressed"], expected, rtol=1e-8)
    assert found["variance_explained"] == pytest.approx(1 - residuals[0] / (predictions @ predictions), rel=1e-8)
    assert found["variance_explained"] < 0.99
    expected = np.sum(derivatives * towards, axis=0) / np.sum(towards**2, axis=0)
    np.testing.assert_allclose(found["differentiated"], expected, rtol=1e-8)


def test_agreement_is_one_for_the_same_and_zero_for_their_mean() -> None:
    predicted = np.array([0.1, 0.4, 0.7])
    assert agreement(predicted, predicted) == {"r2": 1, "rms": 0}
    assert agreement(np.full(3, 0.4), predicted) == pytest.approx({"r2": 0, "rms": np.sqrt(0.06)})
    assert agreement(predicted[::-1], predicted) == pytest.approx({"r2": -3, "rms": np.sqrt(0.24)})


def test_it_predicts_from_the_training_contexts_and_reads_from_the_evaluations() -> None:
    """Trained in an order and tested in none: predictions are of the order, and a flat layer reads flat."""
    config = replace(SMALL, train=ContextConfig("smallnorm2largenorm"), step_size_tasks=8192)
    found = position_steps(constructed(config, 0.5))
    assert found["predicted"][0] > found["predicted"][-1] + 5 * found["predicted_se"][-1]
    np.testing.assert_allclose(found["regressed"], 0.5, atol=1e-4)
    np.testing.assert_allclose(found["differentiated"], 0.5, atol=1e-4)
    np.testing.assert_allclose(
        found["regressed_rms"] ** 2, np.mean((np.array(found["predicted"]) - 0.5) ** 2), rtol=1e-3
    )
    turned = position_steps(constructed(replace(config, train=config.eval, eval=config.train), 0.5))
    assert turned["reason"] == EXCHANGEABLE
    assert (turned["regressed_r2"], turned["differentiated_r2"]) == (None, None)
    assert np.std(turned["predicted"]) < np.std(found["predicted"]) / 3


def test_a_number_of_tasks_of_its_own_leaves_the_prediction() -> None:
    loaded = constructed(SMALL, 0.5)
    few, many = position_steps(loaded, 50), position_steps(loaded)
    assert (few["tasks"], many["tasks"]) == (50, 300)
    assert few["predicted"] == many["predicted"]
    with pytest.raises(ConfigError, match="6 tasks are too few to fit 6 step sizes; test_tasks must be above 6"):
        position_steps(loaded, 6)


def test_a_predictor_of_nothing_has_no_share() -> None:
    def nothing(batch: Batch) -> jax.Array:
        return 0 * batch.y.sum(axis=1)

    found = read_step_sizes(nothing, reference.random_batch(3))
    assert np.isnan(found["variance_explained"])
    assert np.isnan(found["variance_explained_by_one_step_size"])
    np.testing.assert_array_equal(found["regressed"], 0)


def test_the_command_writes_what_it_prints(twolayer_run: Path, workshop: Workshop, tmp_path: Path) -> None:
    run = copied(twolayer_run, tmp_path / "run")
    done = workshop.run("analysis.position_steps", "--run", run, "--tasks", 60)
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads((run / layout.POSITION_STEPS).read_text())
    lines = done.stdout.splitlines()
    assert lines[0].startswith(f"position 1  predicted {found['predicted'][0]:.4g}  predicted_se ")
    assert f"regressed {found['regressed'][5]:.4g}" in lines[5]
    assert found["tasks"] == 60
    assert "regressed_r2 not defined" in lines
    assert f"reason {EXCHANGEABLE}" in lines
    assert '"position_steps.json"' in (run / layout.MANIFEST).read_text().replace("analysis/", "")


def test_other_families_have_none(sine_run: Path, workshop: Workshop) -> None:
    done = workshop.run("analysis.position_steps", "--run", sine_run)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert f"{sine_run} is a run of the family sine, which has no position_steps" in done.stderr


def test_a_number_of_tasks_that_is_none_is_refused_before_anything_is_written(
    lsa1_run: Path, workshop: Workshop
) -> None:
    for tasks, said in (
        (1, "argument --tasks: '1' is not a whole number from 2"),
        (5, "5 tasks are too few to fit 6 step sizes"),
    ):
        done = workshop.run("analysis.position_steps", "--run", lsa1_run, "--tasks", tasks)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert said in done.stderr
    assert not (lsa1_run / layout.POSITION_STEPS).exists()
