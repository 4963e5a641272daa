"""Sines are what they are said to be; the model is an embedding, an MLP and the stack, recomputed here in NumPy."""

import jax
import numpy as np
import pytest

from icl_lab.families.regression.config import RegressionConfig
from icl_lab.families.sine.config import SineConfig
from icl_lab.families.sine.task import make_model
from icl_lab.src.batch import Batch
from icl_lab.src.config import EMBEDDED, ModelConfig, SineModel
from icl_lab.src.data_config import DataConfig, SineData
from icl_lab.src.prng import key
from icl_lab.src.sine import read_outs, sample_sines
from tests import reference

DATA = SineData(num_pairs=7, input_range=10.0)


def config(embedded, **parts):
    model = SineModel(d_model=5, mlp_width=6, key_size=4, embedded=embedded, **parts)
    return SineConfig(data=DATA, model=model)


def control_config():
    """The same features below one step of descent."""
    return SineConfig(data=DATA, model=SineModel(d_model=5, mlp_width=6, step_size=0.1))


def random_params(model, seed=0):
    """Float64 parameters, no entry of which is 0 by design."""
    rng = np.random.default_rng(seed)
    return jax.tree.map(lambda leaf: 0.5 * rng.normal(size=leaf.shape), jax.eval_shape(model.init, key(0)))


def random_sines(seed=0, size=3):
    """Float64 tasks."""
    return Batch(*(np.asarray(leaf, np.float64) for leaf in sample_sines(key(seed), DATA, size)))


def embedded_tokens(params, batch, embedded):
    """Embedded tokens [B, N + 1, W], from the equations."""
    context = np.concatenate([batch.x, batch.y[:, :, None]], axis=2)
    tokens = np.concatenate([context, np.pad(batch.x_query, ((0, 0), (0, 1)))[:, None]], axis=1)
    linear = (tokens if embedded == "pairs" else tokens[..., :1]) @ params["embedding"]["w"]
    hidden = reference.gelu(linear @ params["mlp_in"]["w"] + params["mlp_in"]["b"])
    features = linear + hidden @ params["mlp_out"]["w"] + params["mlp_out"]["b"]
    if embedded == "pairs":
        return features
    return np.concatenate([features, tokens[..., 1:] - features @ params["initial"]["w"]], axis=2)


# The data


def test_a_task_is_a_sine():
    batch = sample_sines(key(1), DATA, 1000)
    amplitude, phase = np.asarray(batch.w, np.float64).T
    x, x_query = np.asarray(batch.x, np.float64)[..., 0], np.asarray(batch.x_query, np.float64)[:, 0]
    np.testing.assert_allclose(batch.y, amplitude[:, None] * np.sin(x + phase[:, None]), atol=1e-6)
    np.testing.assert_allclose(batch.y_query, amplitude * np.sin(x_query + phase), atol=1e-6)


def test_the_distributions_are_uniform_and_independent():
    """Means and variances of U(a, b) are (a + b)/2 and (b - a)^2/12; here within 4 standard errors."""
    batch = sample_sines(key(2), DATA, 20_000)
    bounds = {"amplitude": (0.1, 0.5), "phase": (0, np.pi), "x": (-5, 5), "query": (-5, 5)}
    drawn = dict(zip(bounds, [*np.asarray(batch.w).T, np.asarray(batch.x[:, 0, 0]), batch.x_query[:, 0]], strict=True))
    for name, (low, high) in bounds.items():
        values, spread = np.asarray(drawn[name], np.float64), high - low
        assert low <= values.min() < low + 0.01 * spread
        assert high - 0.01 * spread < values.max() <= high
        assert abs(values.mean() - (low + high) / 2) < 4 * spread / np.sqrt(12 * 20_000)
        assert values.var() == pytest.approx(spread**2 / 12, rel=0.04)
    correlations = np.corrcoef(np.stack([np.asarray(values, np.float64) for values in drawn.values()]))
    assert np.abs(correlations - np.eye(4)).max() < 4 / np.sqrt(20_000)


def test_a_tied_phase_follows_the_amplitude():
    """phi = pi (a - .1) / .4: one uniform draw gives both, the one of an amplitude whose phase is its own."""
    tied = sample_sines(key(2), SineData(input_range=10.0, tied_phase=True), 1000)
    free = sample_sines(key(2), SineData(input_range=10.0), 1000)
    amplitude, phase = np.asarray(tied.w, np.float64).T
    np.testing.assert_allclose(phase, np.pi * (amplitude - 0.1) / 0.4, atol=1e-5)
    for one, other in ((tied.w[:, 0], free.w[:, 0]), (tied.x, free.x), (tied.x_query, free.x_query)):
        np.testing.assert_array_equal(one, other)
    x = np.asarray(tied.x, np.float64)[..., 0]
    np.testing.assert_allclose(tied.y, amplitude[:, None] * np.sin(x + phase[:, None]), atol=1e-6)


def test_a_batch_is_a_function_of_its_key():
    once, again, other = (sample_sines(key(seed), DATA, 16) for seed in (3, 3, 4))
    for one, same, another in zip(once, again, other, strict=True):
        np.testing.assert_array_equal(one, same)
        assert not np.array_equal(one, another)


def test_amplitudes_are_the_configs():
    batch = sample_sines(key(5), SineData(amplitude_low=2.0, amplitude_high=3.0), 1000)
    assert 2 <= batch.w[:, 0].min() < 2.1 < 2.9 < batch.w[:, 0].max() <= 3


# The model


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("embedded", EMBEDDED)
@pytest.mark.parametrize("parts", [{}, {"num_layers": 2, "num_heads": 2, "attention": ("softmax", "linear")}])
def test_the_model_is_an_mlp_below_the_stack(embedded, parts):
    whole = config(embedded, **parts)
    model, batch = make_model(whole), random_sines()
    params = random_params(model)
    tokens = embedded_tokens(params, batch, embedded)
    stack = RegressionConfig(data=DataConfig(dim=4, num_pairs=7), model=ModelConfig(key_size=4, **parts))
    expected = reference.stack(params, stack, tokens)[-1][2]
    before, after = read_outs(model, params, batch)
    np.testing.assert_allclose(model.predict(params, batch), expected, atol=1e-10)
    np.testing.assert_allclose(after, expected, atol=1e-10)
    np.testing.assert_allclose(before, -tokens[:, -1, -1], atol=1e-10)
    assert np.abs(after - before).min() > 1e-3


def test_model_and_control_begin_with_the_same_features():
    """At the same seed, as in the paper; in the published code they do not."""
    one, control = (make_model(whole).init(key(3)) for whole in (config("pairs"), control_config()))
    assert {*control} == {"embedding", "mlp_in", "mlp_out"} < {*one}
    for module, leaves in control.items():
        for name, value in leaves.items():
            np.testing.assert_array_equal(value, one[module][name])
    assert not np.array_equal(control["embedding"]["w"], make_model(control_config()).init(key(4))["embedding"]["w"])


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("embedded", EMBEDDED)
def test_the_mlp_below_can_lack_biases(embedded):
    """It is then the one whose biases are zero."""
    with_biases, without = (make_model(config(embedded, mlp_bias=bias)) for bias in (True, False))
    batch, params = random_sines(), random_params(without)
    sizes = {"mlp_in": 6, "mlp_out": 5 - (embedded == "inputs")}
    zero = {name: {**params[name], "b": np.zeros(size)} for name, size in sizes.items()}
    assert all({*params[name]} == {"w"} for name in zero)
    np.testing.assert_allclose(
        without.predict(params, batch), with_biases.predict({**params, **zero}, batch), atol=1e-12
    )


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("embedded", EMBEDDED)
def test_the_order_of_the_pairs_does_not_matter(embedded):
    model, batch = make_model(config(embedded)), random_sines()
    params, order = random_params(model), np.array([3, 1, 6, 0, 5, 2, 4])
    permuted = batch._replace(x=batch.x[:, order], y=batch.y[:, order])
    np.testing.assert_allclose(model.predict(params, permuted), model.predict(params, batch), atol=1e-10)
    torn = batch._replace(x=batch.x[:, order])
    assert np.abs(model.predict(params, torn) - model.predict(params, batch)).max() > 1e-3


@pytest.mark.parametrize("embedded", EMBEDDED)
def test_without_weights_the_prediction_is_zero(embedded):
    model, batch = make_model(config(embedded)), random_sines()
    params = jax.tree.map(np.zeros_like, random_params(model))
    np.testing.assert_array_equal(model.predict(params, batch), np.zeros(3))


def test_the_initial_function_of_prop_2_starts_at_zero():
    model, batch = make_model(config("inputs")), random_sines()
    np.testing.assert_array_equal(read_outs(model, model.init(key(0)), batch)[0], np.zeros(3))


def test_without_a_width_there_is_no_mlp():
    whole = SineConfig(data=DATA, model=SineModel(d_model=5))
    assert set(make_model(whole).init(key(0))) == {"embedding", "layer_0/attention"}


def test_models_are_the_same_for_configs_that_differ_in_nothing_they_depend_on():
    one, other = config("pairs"), SineConfig(data_seed=3, data=DATA, model=config("pairs").model)
    assert make_model(one) is make_model(other)
    assert make_model(one) is not make_model(config("inputs"))
