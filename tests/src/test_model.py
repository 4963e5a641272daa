"""A model's losses are a value for each task, what training minimises is their mean, and both are NumPy's."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from icl_lab.src import decoder, layerwise, sine, transformer
from icl_lab.src.activations import no_hook
from icl_lab.src.config import Architecture, EmbeddedModel, ModelConfig, SineModel
from icl_lab.src.decoder_config import DecoderConfig
from icl_lab.src.losses import LOSSES, OF_A_NUMBER
from icl_lab.src.model import Model, as_model, losses_of_zero
from icl_lab.src.prng import key
from tests.reference import random_batch

TASKS, PAIRS, DIM, QUERIES = 7, 4, 3, 2
BATCH = random_batch(0, TASKS, PAIRS, DIM)
SEVERAL = BATCH._replace(x_query=BATCH.x[:, :QUERIES] + 1, y_query=BATCH.y[:, :QUERIES] - 1)
SEQUENCES = BATCH._replace(x_query=BATCH.x, y_query=BATCH.y)
ON_A_LINE = BATCH._replace(x=BATCH.x[:, :, :1], x_query=BATCH.x_query[:, :1])

STACK = Architecture(EmbeddedModel(num_layers=2, init_scale=0.5), DIM, PAIRS, QUERIES)
EMBEDDED = replace(STACK, model=replace(STACK.model, d_model=4))
# name -> model, its batch, and whether the loss is over all layers
MODELS = {
    "one query": (transformer.make_model(Architecture(ModelConfig(num_layers=2), DIM, PAIRS)), BATCH, False),
    "several queries": (layerwise.make_model(STACK), SEVERAL, False),
    "deep supervision": (layerwise.make_model(STACK, True), SEVERAL, True),
    "embedded, deep supervision": (layerwise.make_model(EMBEDDED, True), SEVERAL, True),
    "sines": (sine.make_model(Architecture(SineModel(d_model=3, mlp_width=2), 1, PAIRS)), ON_A_LINE, False),
    "decoder": (decoder.make_model(DecoderConfig(d_model=4, mlp_width=2), DIM, PAIRS), SEQUENCES, False),
}

# Programs that run once: compiling them for speed would take most of the time.
compiled = partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})


def params_of(model: Model) -> dict:
    """Parameters no entry of which is 0 by design."""
    rng = np.random.default_rng(1)
    return jax.tree.map(lambda leaf: rng.normal(size=leaf.shape) / 2, jax.eval_shape(model.init, key(0)))


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", MODELS)
def test_losses_are_half_the_squared_errors_of_each_task_and_their_mean_is_the_loss(name: str) -> None:
    """To 1e-12 in float64; NumPy takes the predictions of the trace, of all layers under deep supervision."""
    model, batch, deep = MODELS[name]
    params = params_of(model)
    found = compiled(lambda: (model.losses(params, batch), model.loss(params, batch), model.predict(params, batch)))()
    losses, loss, predictions = map(np.asarray, found)
    layers = np.asarray(compiled(lambda: model.trace(params, batch).layer_predictions)())
    np.testing.assert_allclose(predictions, layers[-1], rtol=1e-12)
    assert layers.shape == (len(layers), *batch.y_query.shape)
    errors = 0.5 * (layers if deep else layers[-1:]) - 0.5 * batch.y_query
    by_task = 2 * np.moveaxis(errors**2, 1, 0).reshape(TASKS, -1).mean(axis=1)
    np.testing.assert_allclose(losses, by_task, rtol=1e-12)
    assert loss == pytest.approx(losses.mean(), rel=1e-12)
    assert by_task.std() > 0.01 * by_task.mean()


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", ["several queries", "deep supervision"])
def test_a_tasks_loss_is_what_it_would_be_alone(name: str) -> None:
    model, batch, _ = MODELS[name]
    params = params_of(model)
    together = compiled(lambda: model.losses(params, batch))()
    alone = compiled(lambda: model.loss(params, jax.tree.map(lambda part: part[2:3], batch)))()
    assert float(together[2]) == pytest.approx(float(alone), rel=1e-12)


def test_deep_supervision_changes_the_loss_and_no_prediction() -> None:
    plain, _, _ = MODELS["several queries"]
    deep, batch, _ = MODELS["deep supervision"]
    params = params_of(plain)
    first, second = (model.predict(params, batch) for model in (plain, deep))
    np.testing.assert_array_equal(first, second)
    assert abs(float(plain.loss(params, batch)) - float(deep.loss(params, batch))) > 1e-3


def test_a_models_own_losses_are_what_is_averaged() -> None:
    """Of a model that is made of other parts: without a mean of its own, the loss is the losses' mean."""
    model = Model(lambda _: {}, lambda params, batch: batch, lambda params, batch: jnp.abs(batch))
    assert float(model.loss({}, jnp.array([1.0, -2.0, 6.0]))) == 3.0
    looks = (
        lambda: model.trace({}, jnp.zeros(1)),
        lambda: model.watch({}, jnp.zeros(1), no_hook),
        lambda: model.forward({}, jnp.zeros(1), no_hook),
    )
    for look in looks:
        with pytest.raises(NotImplementedError, match="has no hooks"):
            look()


def test_a_function_of_tokens_becomes_a_model() -> None:
    """Of one that predicts a parameterless sum: the losses are of y_query, of whatever shape it has."""
    model = as_model(lambda tokens, hook: tokens.sum(axis=(1, 2)), lambda batch: batch.x, (PAIRS, DIM))
    assert model.init(key(0)) == {}
    expected = 0.5 * (BATCH.x.sum(axis=(1, 2)) - BATCH.y_query) ** 2
    np.testing.assert_allclose(model.losses({}, BATCH), expected, rtol=1e-5)
    assert float(model.loss({}, BATCH)) == pytest.approx(expected.mean(), rel=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_the_null_predictor_is_zero(name: str) -> None:
    """Half the mean square of each task's targets, whatever the model and its layers; NumPy."""
    model, batch, _ = MODELS[name]
    assert model.null_losses is not None
    expected = 0.5 * np.mean(np.reshape(batch.y_query, (TASKS, -1)) ** 2, axis=1)
    np.testing.assert_allclose(model.null_losses(batch), expected, rtol=1e-6)


def test_null_losses_of_logits() -> None:
    """One logit: an even chance, log 2. Several: how many there are is not in the batch, so that there is none."""
    labels = BATCH._replace(y_query=np.array([0.0, 1.0, 1.0, 0.0, 1.0])[:, None])
    found = losses_of_zero("binary_cross_entropy")
    assert found is not None
    np.testing.assert_allclose(found(labels), np.log(2), rtol=1e-6)
    assert losses_of_zero("cross_entropy") is None
    assert {*LOSSES} == {*OF_A_NUMBER, "cross_entropy"}
