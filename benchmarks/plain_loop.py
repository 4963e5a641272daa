"""The plain training loop that a careful person would write first; all speeds are ratios to it.

It dispatches one jitted batch and one jitted step at a time, with JAX's own random numbers and attention with explicit
queries, keys, values and projections over all rows. Model, optimiser and data distribution are the same as ours, so it
reaches the same loss.

python -m benchmarks.plain_loop --steps 5000     trains lsa1 from process start
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array

from icl_lab.benchmarks import plain_decoder, plain_text
from icl_lab.families.regression.config import RegressionConfig
from icl_lab.families.task import model_of
from icl_lab.families.tokens.config import TokenModel
from icl_lab.src.batch import Batch
from icl_lab.src.checks import require
from icl_lab.src.config import ModelConfig
from icl_lab.src.data import tokenise
from icl_lab.src.decoder_config import DecoderConfig
from icl_lab.src.losses import half_mse
from icl_lab.src.optimizer import make_optimizer
from icl_lab.src.prng import key as make_key


def sample(key: Array, config: Any, size: int) -> Batch:
    """A batch of noiseless linear regression on uniform inputs, with JAX's own random numbers."""
    data = config.data
    task, inputs, query = jax.random.split(key, 3)
    half = data.input_range / 2
    w = data.weight_scale * jax.random.normal(task, (size, data.dim))
    x = jax.random.uniform(inputs, (size, data.num_pairs, data.dim), minval=-half, maxval=half)
    x_query = jax.random.uniform(query, (size, data.dim), minval=-half, maxval=half)
    return Batch(x, jnp.einsum("bnd,bd->bn", x, w), x_query, jnp.einsum("bd,bd->b", x_query, w), w)


def predict(params: Any, batch: Batch, config: Any) -> Array:
    """The model's predictions, computed layer by layer over all rows."""
    model = config.model
    tokens = tokenise(batch, model)
    for layer in range(model.num_layers):
        part = params[f"{model.layer_names[0 if model.recurrent else layer]}/attention"]
        context = tokens[:, :-1]
        query = jnp.einsum("brw,whk->bhrk", tokens, part["query"])
        key = jnp.einsum("bnw,whk->bhnk", context, part["key"])
        value = jnp.einsum("bnw,whk->bhnk", context, part["value"])
        scores = jnp.einsum("bhrk,bhnk->bhrn", query, key)
        if model.kind(layer) == "softmax":
            scores = jax.nn.softmax(scores / jnp.sqrt(query.shape[-1]), axis=-1)
        mixed = jnp.einsum("bhrn,bhnk->bhrk", scores, value)
        tokens = tokens + model.damping * jnp.einsum("bhrk,hkw->brw", mixed, part["projection"])
        if model.activation_clip > 0:
            tokens = jnp.clip(tokens, -model.activation_clip, model.activation_clip)
    return -tokens[:, -1, config.architecture.prediction_channel]


def loss(predictions: Array, batch: Batch) -> Array:
    """Half the mean squared error."""
    return half_mse(predictions, batch.y_query)


class Plain(NamedTuple):
    """The parts that depend on the kind of model: data, predictions and their loss."""

    sample: Callable[[Array, Any, int], Any]
    predict: Callable[[Any, Any, Any], Array]
    loss: Callable[[Array, Any], Array] = loss


PARTS: dict[type[Any], Plain] = {
    ModelConfig: Plain(sample, predict),
    DecoderConfig: Plain(plain_decoder.sample, plain_decoder.predict),
    TokenModel: Plain(plain_text.sample, plain_text.predict, plain_text.loss),
}


def plain_loop(config: Any) -> tuple[Callable[[int], float], Callable[[], float]]:
    """Returns (train, loss): train(n) -> seconds of n more steps, loss() on `test_batch`."""
    sample, predict, loss_of = PARTS[type(config.model)]
    require(not getattr(config.model, "merged", False), "merged is on, but the plain loop multiplies four factors")
    optimizer = make_optimizer(config.training)
    draw = jax.jit(lambda key: sample(key, config, config.training.batch_size))

    @jax.jit
    def step(params: Any, state: Any, batch: Any) -> tuple[Any, Any]:
        gradient = jax.grad(lambda params: loss_of(predict(params, batch, config), batch))(params)
        updates, state = optimizer.update(gradient, state, params)
        return optax.apply_updates(params, jax.tree.map(lambda u: -config.training.lr * u, updates)), state

    params = model_of(config).init(make_key(config.init_seed))
    state = optimizer.init(params)
    keys = jax.random.key(config.data_seed)
    count = 0

    def train(steps: int) -> float:
        nonlocal params, state, count
        began = time.perf_counter()
        for _ in range(steps):
            params, state = step(params, state, draw(jax.random.fold_in(keys, count)))
            count += 1
        jax.block_until_ready(params)
        return time.perf_counter() - began

    @jax.jit
    def test_loss(params: Any) -> Array:
        test = test_batch(config)
        return loss_of(predict(params, test, config), test)

    return train, lambda: float(test_loss(params))


def test_batch(config: Any) -> Any:
    """A test set of 10 000 tasks."""
    return PARTS[type(config.model)].sample(jax.random.key(10**6), config, 10_000)


def main() -> None:
    """Trains lsa1 and prints the loss and the times."""
    import argparse

    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=5000)
    steps = parser.parse_args().steps
    train, loss = plain_loop(RegressionConfig())
    first = train(1)
    seconds = train(steps - 1)
    print(f"loss {loss():.4f} after {steps} steps, {1e3 * seconds / max(steps - 1, 1):.2f} ms a step")
    print(f"the first step took {first:.1f} s, compiling")


if __name__ == "__main__":
    main()
