"""The control is one explicit step of gradient descent on an MLP's output weights, and so is a layer built to be it."""

import jax
import numpy as np
import pytest

from baselines.mlp_gd import make_model
from src.batch import Batch
from src.config import EMBEDDED, DataConfig, ModelConfig, RunConfig
from src.prng import key
from src.sine import read_outs
from tests import reference

STEP, PAIRS, WIDTH = 0.03, 6, 5


def config(embedded, step_size=STEP):
    data = DataConfig(dim=1, num_pairs=PAIRS, input_range=10.0)
    model = ModelConfig(embed_size=WIDTH, mlp_width=7, embedded=embedded, step_size=step_size)
    return RunConfig(family="sine", data=data, model=model)


def random_params(model, seed=0):
    rng = np.random.default_rng(seed)
    return jax.tree.map(lambda leaf: 0.5 * rng.normal(size=leaf.shape), jax.eval_shape(model.init, key(0)))


def random_batch(seed=0, size=4):
    rng = np.random.default_rng(seed)
    shapes = ((size, PAIRS, 1), (size, PAIRS), (size, 1), (size,), (size, 2))
    return Batch(*(rng.normal(size=shape) for shape in shapes))


def mlp(params, values):
    """m = h + MLP(h), in NumPy."""
    linear = values @ params["embedding"]["w"]
    hidden = reference.gelu(linear @ params["mlp_in"]["w"] + params["mlp_in"]["b"])
    return linear + hidden @ params["mlp_out"]["w"] + params["mlp_out"]["b"]


@pytest.mark.usefixtures("x64")
def test_on_inputs_the_control_is_a_step_on_the_output_weights_from_the_initial_ones():
    """Prop. 2: f(x) = w.m(x), w <- w_0 - c sum_i (w_0.m(x_i) - y_i) m(x_i), pair by pair."""
    model, batch = make_model(config("inputs")), random_batch()
    params = random_params(model)
    features, query, start = mlp(params, batch.x), mlp(params, batch.x_query), params["initial"]["w"][:, 0]
    expected = [
        reference.gd_weights(m, y, STEP, 1, start) @ m_query
        for m, y, m_query in zip(features, batch.y, query, strict=True)
    ]
    before, after = read_outs(model, params, batch)
    np.testing.assert_allclose(after, expected, atol=1e-10)
    np.testing.assert_allclose(before, query @ start, atol=1e-10)


@pytest.mark.usefixtures("x64")
def test_on_pairs_the_control_is_a_step_from_zero_on_what_the_initial_function_leaves():
    model, batch = make_model(config("pairs")), random_batch()
    params = random_params(model)
    rows = mlp(params, np.concatenate([batch.x, batch.y[:, :, None]], axis=2))
    query = mlp(params, np.pad(batch.x_query, ((0, 0), (0, 1))))
    left = Batch(rows[..., :-1], rows[..., -1], query[:, :-1], batch.y_query, batch.w)
    expected = reference.gd(left, STEP, 1, np.zeros((4, WIDTH - 1))) - query[:, -1]
    np.testing.assert_allclose(model.predict(params, batch), expected, atol=1e-10)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("embedded", EMBEDDED)
def test_a_layer_with_the_weights_of_prop_1_is_the_control(embedded):
    """W_K = W_Q = diag(I, 0), W_V = diag(0, -1), P = c I, on [m(x), y]."""
    control, layer = make_model(config(embedded)), make_model(config(embedded, 0.0))
    params, batch = random_params(control), random_batch()
    label = np.diag(np.arange(WIDTH) == WIDTH - 1).astype(float)
    features = np.eye(WIDTH) - label
    attention = {"query": features, "key": features, "value": -label, "projection": STEP * np.eye(WIDTH)}
    shaped = {name: (w[None] if name == "projection" else w[:, None]) for name, w in attention.items()}
    built = params | {"layer_0/attention": shaped}
    np.testing.assert_allclose(layer.predict(built, batch), control.predict(params, batch), atol=1e-10)
    assert np.abs(control.predict(params, batch)).max() > 1e-2


def test_the_control_learns_its_mlp_and_no_layer():
    params = make_model(config("pairs")).init(key(0))
    assert set(params) == {"embedding", "mlp_in", "mlp_out"}
    assert set(make_model(config("inputs")).init(key(0))) == {*params, "initial"}
