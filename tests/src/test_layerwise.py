"""The stack read after every layer, and one layer rolled out: theory in float64, and what training makes of them."""

from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from icl_lab.baselines.construction import gd_params
from icl_lab.families.layerwise.config import LayerwiseConfig
from icl_lab.families.layerwise.task import make_model
from icl_lab.src.batch import Batch
from icl_lab.src.config import EmbeddedModel, LayersTrainConfig, TrainConfig
from icl_lab.src.data_config import QueriesData
from icl_lab.src.layerwise import roll_out
from icl_lab.src.model import Params
from icl_lab.src.optimizer import scheduled
from icl_lab.src.prng import key
from icl_lab.src.queries import sample_batch
from icl_lab.src.train import Hyperparameters, make_trainer
from tests import reference

DATA = QueriesData(dim=3, num_pairs=5, num_queries=4, input_distribution="gaussian")
LINEAR = EmbeddedModel(num_layers=3, init_scale=0.5)
SOFTMAX = EmbeddedModel(
    num_layers=2, attention=("softmax",), num_heads=2, d_model=8, key_size=8, mlp_width=16, layer_norm=True
)
MODELS = {"linear": LINEAR, "softmax": replace(SOFTMAX, init_scale=1.0)}

close = partial(np.testing.assert_allclose, rtol=1e-10, atol=1e-10)


def run(model: EmbeddedModel, data: QueriesData = DATA, **training: Any) -> LayerwiseConfig:
    return LayerwiseConfig(data=data, model=model, training=LayersTrainConfig(**training))


def batch_of(seed: int = 0, tasks: int = 4) -> Batch:
    """A batch with queries, of whatever float is in force."""
    return jax.tree.map(jnp.asarray, sample_batch(key(seed), DATA, tasks))


def random_params(config: LayerwiseConfig, seed: int = 0) -> Params:
    rng = np.random.default_rng(seed)
    shapes = jax.eval_shape(make_model(config).init, key(0))
    return jax.tree.map(lambda leaf: jnp.asarray(rng.normal(size=leaf.shape) / 2), shapes)


def descended(batch: Batch, step_size: float, steps: int) -> np.ndarray:
    """Predictions [B, Q] of explicit gradient descent, pair by pair in NumPy."""
    weights = [
        reference.gd_weights(np.asarray(x), np.asarray(y), step_size, steps, np.zeros(x.shape[1]))
        for x, y in zip(batch.x, batch.y, strict=True)
    ]
    return np.einsum("bqd,bd->bq", batch.x_query, np.array(weights))


# Theory


def test_a_constructed_layer_rolled_out_is_damped_gradient_descent(x64: None) -> None:
    config, batch = run(replace(LINEAR, num_layers=1)), batch_of()
    found = roll_out(make_model(config), gd_params(config.architecture, 0.1), batch, 5, 0.75)
    close(found, [descended(batch, 0.075, steps) for steps in range(1, 6)])


def test_constructed_layers_are_read_as_steps(x64: None) -> None:
    config, batch = run(LINEAR), batch_of(1)
    found = make_model(config).trace(gd_params(config.architecture, 0.1), batch).layer_predictions
    close(found, [descended(batch, 0.1, steps) for steps in range(1, 4)])


def test_in_a_roll_out_only_labels_move(x64: None) -> None:
    """With GD++ weights, which move inputs too, a roll-out is plain gradient descent all the same."""
    config, batch = run(replace(LINEAR, num_layers=1)), batch_of(2)
    model = make_model(config)
    plus_plus = roll_out(model, gd_params(config.architecture, 0.1, 0.02), batch, 3, 0.5)
    close(plus_plus, [descended(batch, 0.05, steps) for steps in range(1, 4)])


@pytest.mark.parametrize("name", MODELS)
def test_queries_influence_neither_each_other_nor_the_context(name: str, x64: None) -> None:
    config = run(MODELS[name])
    model, params, batch = make_model(config), random_params(config), batch_of(3)
    other = batch._replace(x_query=batch.x_query.at[:, 1].add(1.0))
    before, after = model.trace(params, batch), model.trace(params, other)
    moved = np.abs(before.layer_predictions - after.layer_predictions).max(axis=(0, 1))
    assert moved[1] > 1e-3
    np.testing.assert_allclose(moved[[0, 2, 3]], 0, atol=1e-14)
    for ours, theirs in zip(before.tokens, after.tokens, strict=True):
        np.testing.assert_allclose(ours[:, :5], theirs[:, :5], atol=1e-14)


@pytest.mark.parametrize("name", MODELS)
def test_a_query_among_others_is_answered_as_alone(name: str, x64: None) -> None:
    together, alone = run(MODELS[name]), run(MODELS[name], replace(DATA, num_queries=1))
    params, batch = random_params(together), batch_of(4)
    found = make_model(together).trace(params, batch).layer_predictions
    for query in range(4):
        single = batch._replace(x_query=batch.x_query[:, [query]], y_query=batch.y_query[:, [query]])
        close(found[:, :, [query]], make_model(alone).trace(params, single).layer_predictions)


@pytest.mark.parametrize("name", MODELS)
def test_labels_of_queries_are_not_seen(name: str) -> None:
    config = run(MODELS[name])
    model, params, batch = make_model(config), random_params(config), batch_of(5)
    blind = batch._replace(y_query=batch.y_query + 1)
    np.testing.assert_array_equal(model.predict(params, batch), model.predict(params, blind))


@pytest.mark.parametrize("name", MODELS)
def test_what_the_loss_is_taken_of(name: str, x64: None) -> None:
    """The last layer's predictions, or all layers' with deep supervision: then the loss is the mean of theirs."""
    config = run(MODELS[name])
    params, batch = random_params(config), batch_of(6)
    layers = make_model(config).trace(params, batch).layer_predictions
    deep = make_model(run(MODELS[name], deep_supervision=True))
    close(make_model(config).predict(params, batch), layers[-1])
    close(deep.predict(params, batch), layers[-1])
    errors = 0.5 * (np.asarray(layers) - np.asarray(batch.y_query)) ** 2  # [L, B, Q]
    for model, supervised in ((make_model(config), errors[-1:]), (deep, errors)):
        close(model.losses(params, batch), supervised.mean(axis=(0, 2)))
        np.testing.assert_allclose(model.loss(params, batch), supervised.mean(), rtol=1e-12)
        np.testing.assert_allclose(np.mean(model.losses(params, batch)), supervised.mean(), rtol=1e-12)


def test_all_layers_share_one_read_out_of_normalised_rows(x64: None) -> None:
    """(row - mean) / sqrt(variance + 1e-5), scaled and shifted, then a linear map: NumPy on the traced tokens."""
    config = run(MODELS["softmax"])
    params, batch = random_params(config), batch_of(7)
    trace = make_model(config).trace(params, batch)
    names = [name for name in params if "read_out" in name]
    assert sorted(names) == ["read_out/linear", "read_out/norm"]
    norm, linear = (jax.tree.map(np.asarray, params[name]) for name in ("read_out/norm", "read_out/linear"))
    for tokens, found in zip(trace.tokens, trace.layer_predictions, strict=True):
        rows = np.asarray(tokens)[:, -4:]
        centred = rows - rows.mean(axis=2, keepdims=True)
        normal = centred / np.sqrt(rows.var(axis=2, keepdims=True) + 1e-5) * norm["scale"] + norm["offset"]
        close(found, (normal @ linear["w"] + linear["b"])[:, :, 0])


def test_heads_divide_by_the_root_of_their_own_size(x64: None) -> None:
    """The first layer's maps, by NumPy: softmax of scores over sqrt(key_size / heads), of the context alone."""
    config = run(replace(MODELS["softmax"], layer_norm=False))
    params, batch = random_params(config), batch_of(8)
    trace = make_model(config).trace(params, batch)
    zeros = np.zeros((4, 4, 1))
    rows = np.concatenate([np.concatenate([batch.x, np.asarray(batch.y)[:, :, None]], axis=2),
                           np.concatenate([batch.x_query, zeros], axis=2)], axis=1)  # fmt: skip
    embed, attention = (jax.tree.map(np.asarray, params[name]) for name in ("embed", "layer_0/attention"))
    embedded = rows @ embed["w"] + embed["b"]
    _, maps = reference.attention(attention, "softmax", embedded, embedded[:, :5])
    close(trace.attention[0], maps)


def test_equal_models_are_one_and_repeat() -> None:
    config = run(LINEAR)
    assert make_model(config) is make_model(replace(config, data_seed=3))
    assert make_model(config) is not make_model(run(LINEAR, deep_supervision=True))
    first, second = (make_model(config).init(key(1)) for _ in range(2))
    jax.tree.map(np.testing.assert_array_equal, first, second)


# The learning rate


def test_the_learning_rate_rises_then_falls_along_half_a_cosine() -> None:
    config = TrainConfig(steps=110, warmup_steps=10, schedule="cosine")
    rates = [float(scheduled(jnp.float32(2.0), config, jnp.int32(step))) for step in (0, 4, 9, 10, 60, 110)]
    assert rates == pytest.approx([0.2, 1.0, 2.0, 2.0, 1.0, 0.0], abs=1e-6)


def test_without_a_schedule_it_is_the_number_itself() -> None:
    rate = jnp.float32(2.0)
    assert scheduled(rate, TrainConfig(), jnp.int32(3)) is rate
    held = TrainConfig(steps=110, warmup_steps=10)
    assert float(scheduled(rate, held, jnp.int32(109))) == 2.0


# Training


def trained(config: LayerwiseConfig, steps: int, fixed: bool = False) -> tuple[Params, float]:
    """Parameters and the last loss after some steps, on fresh batches or on one and the same."""

    def batch_fn(data_key: jax.Array, step: jax.Array, *_: Any) -> Batch:
        return sample_batch(jax.random.fold_in(data_key, 0 if fixed else step), config.data, config.training.batch_size)

    trainer = make_trainer(lambda shared: make_model(config), config.training, batch_fn)
    pack = jax.tree.map(lambda leaf: leaf[None], Hyperparameters(key(0), key(1), jnp.float32(config.training.lr)))
    state, info = trainer.chunk(trainer.init(pack, {}), pack, {}, jnp.int32(0), jnp.int32(steps))
    return jax.tree.map(lambda leaf: leaf[0], state.params), float(info.loss[0])


@pytest.mark.slow
def test_a_single_task_is_learned_by_heart() -> None:
    config = run(MODELS["softmax"], lr=1e-2, batch_size=1, grad_clip=1.0, steps=300, schedule="cosine")
    _, loss = trained(config, 300, fixed=True)
    assert loss < 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("name", ["linear", "softmax"])
def test_under_deep_supervision_the_loss_decreases_with_depth(name: str) -> None:
    """On average over fresh tasks; without it inner layers may lie above the loss of predicting zero."""
    data = QueriesData(dim=2, num_pairs=8, num_queries=8, input_distribution="gaussian")
    model = replace(MODELS[name], num_layers=3, init_scale=0.01 if name == "linear" else 1.0)
    config = run(model, data, lr=3e-3, batch_size=64, grad_clip=1.0, deep_supervision=True)
    params, _ = trained(config, 500)
    batch = sample_batch(key(9), data, 2000)
    layers = np.asarray(make_model(config).trace(params, batch).layer_predictions)
    losses = ((layers - np.asarray(batch.y_query)) ** 2).mean(axis=(1, 2))
    zero = float((batch.y_query**2).mean())
    assert (np.diff(losses) < 0).all(), losses
    assert losses[0] < 0.9 * zero
    assert losses[-1] < 0.5 * zero
