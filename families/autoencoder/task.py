"""The autoencoder of strings: its layers, the strings it is trained on, and what is recorded."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache, partial
from typing import Any, NamedTuple

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from icl_lab.families.autoencoder.config import AutoencoderConfig, AutoencoderModel
from icl_lab.families.languages.codes import aligned
from icl_lab.families.languages.pools import Pool, alphabet, pools_of
from icl_lab.families.task import NO_ARRAYS, TaskSpec, task_key
from icl_lab.src.batch import StringBatch
from icl_lab.src.losses import cross_entropies, half_squared_errors
from icl_lab.src.model import Model, Params
from icl_lab.src.prng import Purpose, purpose_key
from icl_lab.src.statistics import means_and_errors, not_defined, ratio_and_error
from icl_lab.src.train import BatchFn, Shared


class Network(NamedTuple):
    """encode(params, symbols [B, L]) -> codes [B, D]; decode(params, symbols) -> [B, L, V], or [B, L] of numbers."""

    init: Any
    encode: Any
    decode: Any


@lru_cache
def network(model: AutoencoderModel, length: int, pad: int) -> Network:
    """The layers of a model on strings of a length over symbols 0 to pad."""
    one_hot = model.input == "one_hot"
    outputs = length * (pad + 1) if one_hot else length

    def features(symbols: Array) -> Array:
        if one_hot:
            return jax.nn.one_hot(symbols, pad + 1).reshape(len(symbols), -1)
        return symbols.astype(jnp.float32)

    def encode(symbols: Array) -> Array:
        seen = features(symbols)
        if one_hot:
            hidden = jax.nn.gelu(hk.Linear(model.hidden, name="encoder_in")(seen))
            return hk.Linear(model.dim, name="code")(hidden)
        hidden = jax.nn.relu(hk.Linear(model.hidden, name="encoder_out")(hk.Linear(model.dim, name="encoder_in")(seen)))
        return jax.nn.relu(hk.Linear(model.dim, name="code")(hidden))

    def decode(symbols: Array) -> Array:
        activation = jax.nn.gelu if one_hot else jax.nn.relu
        hidden = activation(hk.Linear(model.hidden, name="decoder_in")(encode(symbols)))
        if not one_hot:
            hidden = activation(hk.Linear(model.dim, name="decoder_hidden")(hidden))
        output = hk.Linear(outputs, name="decoder_out")(hidden)
        return output.reshape(len(symbols), length, pad + 1) if one_hot else output

    encoder: Any = hk.without_apply_rng(hk.transform(encode))
    decoder: Any = hk.without_apply_rng(hk.transform(decode))
    return Network(decoder.init, encoder.apply, decoder.apply)


def network_of(config: AutoencoderConfig) -> Network:
    """The layers of a config."""
    return network(config.model, config.data.max_length, len(alphabet(config.data)))


def make_model(config: AutoencoderConfig, shared: Shared = NO_ARRAYS) -> Model:
    """The model of a config: always the same one for configs that differ in nothing it depends on."""
    return _model(config.model, config.data.max_length, len(alphabet(config.data)))


@lru_cache
def _model(model: AutoencoderModel, length: int, pad: int) -> Model:
    layers = network(model, length, pad)

    def init(key: Array) -> Params:
        params: Params = layers.init(key, jnp.zeros((1, length), jnp.uint8))
        return params

    def predict(params: Params, batch: StringBatch) -> Array:
        output: Array = layers.decode(params, batch.symbols)
        return output

    def losses(params: Params, batch: StringBatch) -> Array:
        output, symbols = predict(params, batch), batch.symbols.astype(jnp.int32)
        if model.input == "one_hot":
            return jnp.mean(cross_entropies(output, symbols), axis=1)
        return jnp.mean(half_squared_errors(output, symbols.astype(output.dtype)), axis=1)

    return Model(init, predict, losses)


def decoded(output: Array, pad: int) -> Array:
    """The symbols [B, L] of a decoder's output: the likeliest or, of numbers, the nearest."""
    if output.ndim == 3:
        return jnp.argmax(output, axis=2)
    return jnp.clip(jnp.round(output), 0, pad).astype(jnp.int32)


def batches(config: AutoencoderConfig) -> BatchFn:
    """The batch function of a run's training: draws of the training pool, each language with the same chance."""

    def batch_fn(key: Array, step: Array, batched: Mapping[str, Array], shared: Shared) -> StringBatch:
        drawn = draw(jax.random.fold_in(key, step), shared, config.negative_share, config.training.batch_size)
        return StringBatch(drawn)

    return batch_fn


def draw(key: Array, pool: Mapping[str, Array], negative_share: float, count: int) -> Array:
    """`count` strings of a pool's draws."""
    positives, negatives = jnp.asarray(pool["positives"]), jnp.asarray(pool["negatives"])
    languages, size = positives.shape
    language = jax.random.randint(purpose_key(key, Purpose.TASK), (count,), 0, languages)
    index = jax.random.randint(purpose_key(key, Purpose.INPUT), (count,), 0, size)
    negative = jax.random.uniform(purpose_key(key, Purpose.OBSERVATION), (count,)) < negative_share
    rows = jnp.where(negative, negatives[language, index], positives[language, index])
    strings: Array = jnp.asarray(pool["strings"])[rows]
    return strings


class EvalSet(NamedTuple):
    """Unseen strings, as many of them as the config says, and the number that pads have."""

    batch: StringBatch
    pad: int


def strings_of(config: AutoencoderConfig, purpose: Purpose, count: int) -> StringBatch:
    """Strings of the test set, for a purpose."""
    pool: Pool = pools_of(config.data).test
    arrays = {name: jnp.asarray(getattr(pool, name)) for name in ("strings", "positives", "negatives")}
    drawn = np.asarray(draw(task_key(config, purpose), arrays, config.negative_share, count))
    return StringBatch(jnp.asarray(aligned(drawn, len(alphabet(config.data)), config.data.alignment)))


def make_eval_set(config: AutoencoderConfig, shared: Shared = NO_ARRAYS) -> EvalSet:
    """The evaluation set of a config: strings that are not trained on."""
    return EvalSet(strings_of(config, Purpose.EVAL, config.eval_tasks), len(alphabet(config.data)))


class Measured(NamedTuple):
    """Of strings [B]: losses, the share of places that are decoded as they were, how many symbols are, and all symbols.

    A place of a string holds a symbol or a pad; of long pads a decoder is right that knows nothing of the symbols.
    """

    losses: Array
    accuracies: Array
    right_symbols: Array
    symbols: Array


@partial(jax.jit, static_argnums=(0, 3))
def measured(model: Model, params: Params, batch: StringBatch, pad: int) -> Measured:
    """What a decoder makes of strings."""
    right, symbol = decoded(model.predict(params, batch), pad) == batch.symbols, batch.symbols != pad
    counts = (jnp.sum(right & symbol, axis=1), jnp.sum(symbol, axis=1))
    return Measured(model.losses(params, batch), jnp.mean(right, axis=1), *counts)


def eval_metrics(model: Model, params: Any, eval_set: EvalSet) -> dict[str, float]:
    """Metrics of a record: loss and token accuracy on unseen strings."""
    losses, accuracies, *_ = measured(model, params, eval_set.batch, eval_set.pad)
    return {"eval_loss": float(jnp.mean(losses)), "eval_accuracy": float(jnp.mean(accuracies))}


def codes_of(config: AutoencoderConfig, params: Any, strings: np.ndarray) -> np.ndarray:
    """The codes [S, D] of strings [S, L], a part at a time."""
    encode, pad = jax.jit(network_of(config).encode), len(alphabet(config.data))
    symbols = aligned(strings, pad, config.data.alignment)
    parts = [np.asarray(encode(params, symbols[start : start + 4096])) for start in range(0, len(symbols), 4096)]
    return np.concatenate(parts) if parts else np.zeros((0, config.model.dim), np.float32)


def predictions(model: Model, params: Any, eval_set: EvalSet) -> dict[str, Array]:
    """The losses [B] of unseen strings."""
    return {"losses": measured(model, params, eval_set.batch, eval_set.pad).losses}


def test_metrics(config: AutoencoderConfig, model: Model, params: Any, eval_set: EvalSet) -> dict[str, Any]:
    """The loss and the accuracies on unseen strings, with standard errors over strings."""
    batch = strings_of(config, Purpose.TEST_SET, config.test_tasks)
    losses, accuracies, right, symbols = (
        np.asarray(part, np.float64) for part in measured(model, params, batch, eval_set.pad)
    )
    numbers: dict[str, Any] = {"tasks": config.test_tasks}
    numbers |= means_and_errors({"loss": losses, "token_accuracy": accuracies})
    if not symbols.any():
        return numbers | not_defined("symbol_accuracy", "all strings of the test set are empty")
    numbers["symbol_accuracy"], numbers["symbol_accuracy_se"] = ratio_and_error(right, symbols)
    return numbers


TASK = TaskSpec(
    make_model=make_model,
    batches=batches,
    make_eval_set=make_eval_set,
    eval_metrics=eval_metrics,
    predictions=predictions,
    test_metrics=test_metrics,
)
