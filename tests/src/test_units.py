"""A model in the units of its data predicts what the standardised model does, and trains as that does."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from icl_lab.src import decoder, transformer
from icl_lab.src.batch import Batch
from icl_lab.src.config import Architecture, ModelConfig
from icl_lab.src.data_config import DataConfig
from icl_lab.src.decoder_config import DecoderConfig
from icl_lab.src.model import Model
from icl_lab.src.prng import key
from icl_lab.src.stored_contexts import as_sequence
from icl_lab.src.units import Units, in_units, standardised, units_of

UNITS = Units((3.0, -2.0), (0.5, 4.0), 10.0, 7.0)
STACK = transformer.make_model(Architecture(ModelConfig(init_scale=1.0), 2, 4))
DECODER = decoder.make_model(DecoderConfig(d_model=8, num_heads=2, mlp_width=8), 2, 5)


def batch_of(model: Model) -> Batch:
    """Tasks in the units of the data."""
    draw = np.random.default_rng(0).normal
    x, y = 3 + draw(size=(6, 5, 2)), 10 + 7 * draw(size=(6, 5))
    parts = (x[:, :-1], y[:, :-1], x[:, -1], y[:, -1], np.zeros((6, 2)))
    batch = Batch(*(jnp.asarray(part) for part in parts))
    return as_sequence(batch) if model is DECODER else batch


def by_hand(batch: Batch) -> Batch:
    """The standardised tasks, in NumPy."""
    mean, scale = np.array(UNITS.x_mean), np.array(UNITS.x_scale)
    x, y, x_query, y_query, w = map(np.asarray, batch)
    x, x_query = (x - mean) / scale, (x_query - mean) / scale
    return Batch(*map(jnp.asarray, (x, (y - 10) / 7, x_query, (y_query - 10) / 7, w)))


@pytest.mark.parametrize("model", [STACK, DECODER], ids=["stack", "decoder"])
def test_predictions_and_losses_are_those_of_the_standardised_model(model: Model, x64: None) -> None:
    params = jax.tree.map(lambda leaf: leaf.astype(float), model.init(key(0)))
    batch, made = batch_of(model), in_units(model, UNITS)
    expected = 10 + 7 * model.predict(params, by_hand(batch))
    np.testing.assert_allclose(made.predict(params, batch), expected, rtol=1e-12)
    np.testing.assert_allclose(made.trace(params, batch).layer_predictions[-1], expected, rtol=1e-12)
    errors = 0.5 * np.mean((np.asarray(expected) - np.asarray(batch.y_query)) ** 2)
    np.testing.assert_allclose(UNITS.loss_unit() * made.loss(params, batch), errors, rtol=1e-12)
    np.testing.assert_allclose(UNITS.loss_unit() * jnp.mean(made.losses(params, batch)), errors, rtol=1e-12)
    assert made.null_losses is not None  # of predicting zero, here the mean of the labels
    centred = 0.5 * np.mean((np.asarray(batch.y_query) - 10) ** 2)
    np.testing.assert_allclose(UNITS.loss_unit() * jnp.mean(made.null_losses(batch)), centred, rtol=1e-12)


def test_training_sees_the_gradient_of_the_standardised_loss(x64: None) -> None:
    params = jax.tree.map(lambda leaf: leaf.astype(float), STACK.init(key(1)))
    gradient = jax.grad(in_units(STACK, UNITS).loss)(params, batch_of(STACK))
    expected = jax.grad(STACK.loss)(params, by_hand(batch_of(STACK)))
    jax.tree.map(lambda one, other: np.testing.assert_allclose(one, other, rtol=1e-10), gradient, expected)


def test_without_units_nothing_is_changed() -> None:
    assert in_units(STACK, None) is STACK
    assert units_of(DataConfig()) is None
    batch = batch_of(STACK)
    assert standardised(batch, None) is batch
    assert in_units(STACK, UNITS) is in_units(STACK, Units(*UNITS))  # programs are kept by the model they are of
