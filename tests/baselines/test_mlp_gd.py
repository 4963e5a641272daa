"""The control is one explicit step of gradient descent on an MLP's output weights, and so is a layer built to be it."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from icl_lab.baselines.gradient_descent import gd
from icl_lab.baselines.mlp_gd import least_step_loss
from icl_lab.families.sine.config import SineConfig
from icl_lab.families.sine.task import make_model
from icl_lab.src.batch import Batch
from icl_lab.src.config import EMBEDDED, SineModel
from icl_lab.src.data_config import SineData
from icl_lab.src.prng import key
from icl_lab.src.sine import read_outs, sample_sines
from tests import reference

STEP, PAIRS, WIDTH = 0.03, 6, 5


def config(embedded, step_size=STEP):
    data = SineData(num_pairs=PAIRS, input_range=10.0)
    model = SineModel(d_model=WIDTH, mlp_width=7, embedded=embedded, step_size=step_size)
    return SineConfig(data=data, model=model)


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


def mean_sine(x):
    """E a sin(x + phi) = E a (2 / pi) cos x."""
    return 0.3 * 2 / np.pi * np.cos(x)


def test_the_least_loss_from_one_pair_is_that_of_the_best_linear_predictor():
    """f_0(x) + C(x, x_1) / C(x_1, x_1) (y_1 - f_0(x_1)), on sampled tasks.

    The coefficients of sin x and cos x are a cos phi and a sin phi; of these the second has a mean, E a 2 / pi.
    """
    data = SineData(num_pairs=1, input_range=10.0)
    batch = Batch(*(np.asarray(leaf, np.float64) for leaf in sample_sines(key(1), data, 200_000)))
    x, query = batch.x[:, 0, 0], batch.x_query[:, 0]
    square = (0.1**2 + 0.1 * 0.5 + 0.5**2) / 3
    of_sin, of_cos = square / 2, square / 2 - (0.3 * 2 / np.pi) ** 2

    def covariance(a, b):
        return of_sin * np.sin(a) * np.sin(b) + of_cos * np.cos(a) * np.cos(b)

    predicted = mean_sine(query) + covariance(query, x) / covariance(x, x) * (batch.y[:, 0] - mean_sine(x))
    errors = 0.5 * (predicted - batch.y_query) ** 2
    assert abs(least_step_loss(data) - errors.mean()) < 4 * errors.std() / np.sqrt(len(errors))


def test_a_step_on_sine_and_cosine_stays_just_above_the_least_loss():
    data = SineData(input_range=10.0)
    batch = sample_sines(key(2), data, 50_000)
    x, query = np.asarray(batch.x)[..., 0], np.asarray(batch.x_query)[..., 0]
    waves = batch._replace(
        x=np.stack([np.sin(x), np.cos(x)], axis=2),
        y=batch.y - mean_sine(x),
        x_query=np.stack([np.sin(query), np.cos(query)], axis=1),
    )
    predictions = [mean_sine(query) + np.asarray(gd(waves, step)) for step in np.linspace(0.1, 0.25, 16)]
    least = min(0.5 * np.mean((each - np.asarray(batch.y_query)) ** 2) for each in predictions)
    assert least_step_loss(data) == pytest.approx(0.00125, abs=1e-5)
    assert 0.00125 < least < 1.5 * 0.00125


def test_the_least_loss_of_tied_sines_is_that_of_the_moments_of_one_draw():
    """From one pair: f_0 is the mean of all sines, C their covariance, both averaged over amplitudes in NumPy."""
    data = SineData(num_pairs=1, input_range=10.0, tied_phase=True)
    amplitude = 0.1 + 0.4 * (np.arange(2000) + 0.5) / 2000
    x = (np.arange(300) + 0.5) / 300 * 10 - 5
    sines = amplitude[:, None] * np.sin(x + np.pi * (amplitude[:, None] - 0.1) / 0.4)
    covariance = np.cov(sines.T, bias=True)
    variance = np.diag(covariance)
    least = variance[None] - covariance**2 / variance[:, None]  # of the query's label, given one pair's
    assert least_step_loss(data) == pytest.approx(0.5 * least.mean(), rel=1e-3)
    assert least_step_loss(data) != pytest.approx(least_step_loss(replace(data, tied_phase=False)), rel=0.05)
