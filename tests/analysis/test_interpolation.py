"""Halfway between trained weights and the construction."""

from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest

from icl_lab.analysis.loaded_run import ComparedRun
from icl_lab.analysis.weights import interpolated, params_of_products, products
from icl_lab.baselines.construction import gd_params
from icl_lab.baselines.gradient_descent import gd, gd_plus_plus
from icl_lab.families.regression.config import RegressionConfig
from icl_lab.families.regression.task import GradientDescent, make_model
from icl_lab.src.checks import ConfigError
from icl_lab.src.config import ModelConfig
from icl_lab.src.data import sample_batch
from icl_lab.src.data_config import DataConfig
from icl_lab.src.prng import key

CONFIG = RegressionConfig(data=DataConfig(dim=4, num_pairs=6), model=ModelConfig(init_scale=0.5))
BATCH = sample_batch(jax.random.key(0), CONFIG.data, 64)


def subject(config: RegressionConfig = CONFIG) -> ComparedRun:
    """A run with random weights; its products have nothing of the construction."""
    model = make_model(config)
    params = {name: dict(part) for name, part in model.init(key(3)).items()}
    return ComparedRun(Path("nowhere"), config, model, params, BATCH, GradientDescent(1, 0.4, "given"))


@pytest.mark.parametrize("merged", [False, True])
def test_params_of_products_compute_what_the_products_do(merged: bool) -> None:
    config = replace(CONFIG, model=replace(CONFIG.model, merged=merged))
    looked_at = subject(config)
    params = params_of_products(config, *products(config, looked_at.params))
    np.testing.assert_allclose(looked_at.model.predict(params, BATCH), looked_at.predict(BATCH), atol=1e-6)


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_the_ends_are_the_construction_and_the_run(share: float) -> None:
    looked_at = subject()
    expected = looked_at.predict(BATCH) if share else gd(BATCH, 0.4)
    np.testing.assert_allclose(interpolated(looked_at, 0.4, share=share)(BATCH), expected, atol=1e-5)


def test_the_construction_of_gd_plus_plus_is_the_other_end_of_a_stack() -> None:
    config = replace(CONFIG, model=ModelConfig(num_layers=2, recurrent=True, init_scale=0.5))
    found = interpolated(subject(config), 0.4, 0.1, share=0.0)(BATCH)
    np.testing.assert_allclose(found, gd_plus_plus(BATCH, 0.4, 0.1, 2), atol=1e-5)


def test_between_two_that_are_one_algorithm_is_that_algorithm() -> None:
    """The construction with its scale moved between its products."""
    looked_at = replace(subject(), params=gd_params(CONFIG.architecture, 0.4))
    looked_at.params["layer_0/attention"]["query"] = 5 * looked_at.params["layer_0/attention"]["query"]
    looked_at.params["layer_0/attention"]["value"] = looked_at.params["layer_0/attention"]["value"] / 5
    np.testing.assert_allclose(interpolated(looked_at, 0.4)(BATCH), gd(BATCH, 0.4), atol=1e-5)


def test_layers_with_weights_of_their_own_have_no_halfway() -> None:
    with pytest.raises(ConfigError, match="untied weights"):
        interpolated(subject(replace(CONFIG, model=ModelConfig(num_layers=2))), 0.4)
