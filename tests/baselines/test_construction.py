from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from icl_lab.baselines.construction import gd_params
from icl_lab.baselines.gradient_descent import gd, gd_plus_plus
from icl_lab.families.regression.config import RegressionConfig
from icl_lab.families.regression.task import make_model
from icl_lab.src.checks import ConfigError
from icl_lab.src.config import ModelConfig
from icl_lab.src.data_config import DataConfig
from tests import reference

DATA = DataConfig(dim=4, num_pairs=6)
close = partial(np.testing.assert_allclose, rtol=1e-10, atol=1e-10)


def constructed(step_sizes, gammas=0.0, **model):
    """Predictions after each layer of the constructed stack, and its batch."""
    config = RegressionConfig(data=DATA, model=ModelConfig(**model))
    batch = reference.random_batch(1)
    stack = make_model(config)
    params = gd_params(config.architecture, step_sizes, gammas)
    trace = stack.trace(params, batch)
    close(stack.predict(params, batch), trace.layer_predictions[-1])
    return np.asarray(trace.layer_predictions), batch


@pytest.mark.parametrize("recurrent", [False, True])
@pytest.mark.parametrize("pos_enc_size", [0, 6])
def test_layers_are_steps(recurrent, pos_enc_size, x64):
    """Von Oswald et al. 2023, Prop. 1: K layers are K steps, at every depth; codes do nothing."""
    layers, batch = constructed(0.05, num_layers=3, recurrent=recurrent, pos_enc_size=pos_enc_size)
    for depth, predictions in enumerate(layers, start=1):
        close(predictions, gd(batch, 0.05, depth))
        close(predictions, reference.gd(batch, 0.05, depth))


@pytest.mark.parametrize("gamma", [0.0, 0.02])
def test_merged_matrices_have_the_construction_too(gamma, x64):
    layers, _ = constructed(0.05, gamma, num_layers=2, merged=True)
    for one, other in zip(layers, constructed(0.05, gamma, num_layers=2)[0], strict=True):
        close(one, other)


def test_a_full_key_size_is_the_default(x64):
    explicit, _ = constructed(0.05, key_size=5)
    default, _ = constructed(0.05)
    close(explicit, default)


def test_layers_with_their_own_step_sizes(x64):
    rates = (0.05, 0.1, 0.02)
    layers, batch = constructed(rates, num_layers=3)
    close(layers[-1], reference.gd_plus_plus(batch, rates, (0, 0, 0)))


@pytest.mark.parametrize("recurrent", [False, True])
def test_layers_are_steps_of_gd_plus_plus(recurrent, x64):
    """App. A.10, at every depth."""
    layers, batch = constructed(0.06, 0.02, num_layers=3, recurrent=recurrent)
    for depth, predictions in enumerate(layers, start=1):
        close(predictions, gd_plus_plus(batch, 0.06, 0.02, depth))
        close(predictions, reference.gd_plus_plus(batch, (0.06,) * depth, (0.02,) * depth))


def test_gd_plus_plus_with_rates_of_their_own(x64):
    step_sizes, gammas = (0.05, 0.1, 0.02), (0.03, 0.01, 0.04)
    layers, batch = constructed(step_sizes, gammas, num_layers=3)
    close(layers[-1], gd_plus_plus(batch, step_sizes, gammas, 3))
    close(layers[-1], reference.gd_plus_plus(batch, step_sizes, gammas))


@pytest.mark.parametrize("gamma", [0.0, 0.02])
def test_a_damped_stack_takes_damped_steps(gamma, x64):
    """e + lambda * update: both rates shrink by lambda."""
    layers, batch = constructed(0.08, gamma, num_layers=3, recurrent=True, damping=0.75)
    close(layers[-1], reference.gd_plus_plus(batch, (0.06,) * 3, (0.75 * gamma,) * 3))


def test_as_many_rates_as_layers():
    config = RegressionConfig(data=DATA, model=ModelConfig(num_layers=3))
    with pytest.raises(ValueError, match="broadcast"):
        gd_params(config.architecture, (0.1, 0.2))


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ({"tokens": "interleaved"}, "interleaved tokens"),
        ({"tokens": "interleaved_shared"}, "interleaved tokens"),
        ({"pos_enc_size": 4, "prediction_channel": "last"}, "a prediction in the positional encoding"),
        ({"attention": ("softmax",)}, "softmax attention"),
        ({"attention": ("linear", "softmax"), "num_layers": 2}, "softmax attention"),
        ({"num_heads": 2}, "several heads"),
        ({"key_size": 4}, "a key size below the token width"),
        ({"key_size": 6}, "a key size above the token width"),
        ({"bias": True}, "biases"),
        ({"layer_norm": True}, "layer norm"),
        ({"mlp_width": 3}, "an MLP"),
        ({"bias": True, "mlp_width": 3}, "biases and an MLP"),
    ],
)
def test_refuses_what_it_is_not_defined_for(model, words):
    config = RegressionConfig(data=DATA, model=ModelConfig(**model))
    with pytest.raises(ConfigError, match=f"not defined for {words}$"):
        gd_params(config.architecture, 0.1)


def test_a_softmax_that_no_layer_uses_is_no_obstacle():
    model = ModelConfig(attention=("linear", "softmax"))
    assert set(gd_params(RegressionConfig(data=DATA, model=model).architecture, 0.1)) == {"layer_0/attention"}
    with pytest.raises(ConfigError):
        gd_params(RegressionConfig(data=DATA, model=replace(model, num_layers=2)).architecture, 0.1)
