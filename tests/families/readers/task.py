"""What the family computes: its models, its batches, its evaluation set, and what is recorded in training."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import haiku as hk
import jax
import jax.numpy as jnp
from jax import Array

from icl_lab.families.task import NO_ARRAYS, TaskSpec, batches_of, task_key
from icl_lab.src.losses import cross_entropies
from icl_lab.src.model import Model, Params
from icl_lab.src.prng import Purpose, purpose_key
from icl_lab.src.statistics import means_and_errors
from icl_lab.src.train import Shared
from icl_lab.store.params import flattened, nested

from .config import EMBEDDING, MaskedBatch, ReadersConfig

BASE = "base."  # before the names of the frozen parameters


class EvalSet(NamedTuple):
    """What a run is evaluated on: its evaluation batch, and the loss log V of equal probabilities."""

    batch: MaskedBatch
    uniform_loss: float


class Chains(NamedTuple):
    """Sequences, and the probabilities [B, V, V] of the chains that they are of."""

    batch: MaskedBatch
    transitions: Array


def sample(key: Array, config: ReadersConfig, batch_size: int) -> Chains:
    """Each row of a chain's transitions is uniform on the simplex, as are first states and lengths."""
    vocab, length = config.data.vocab, config.data.length
    weights = jax.random.exponential(purpose_key(key, Purpose.TASK), (batch_size, vocab, vocab))
    transitions = weights / jnp.sum(weights, axis=2, keepdims=True)
    first = jax.random.randint(purpose_key(key, Purpose.INPUT), (batch_size,), 0, vocab)
    noise = jax.random.gumbel(purpose_key(key, Purpose.OBSERVATION), (length, batch_size, vocab))

    def step(state: Array, drawn: Array) -> tuple[Array, Array]:
        row = jnp.take_along_axis(transitions, state[:, None, None], axis=1)[:, 0]
        then = jnp.argmax(jnp.log(row) + drawn, axis=1).astype(jnp.int32)
        return then, then

    _, states = jax.lax.scan(step, first, noise)
    sequences = jnp.concatenate([first[None], states]).T
    lengths = jax.random.randint(purpose_key(key, Purpose.CHOICE), (batch_size, 1), 1, length + 1)
    mask = jnp.broadcast_to(jnp.arange(length)[None], (batch_size, length)) < lengths
    return Chains(MaskedBatch(sequences[:, :-1], sequences[:, 1:], mask), transitions)


def masked_mean(values: Array, mask: Array) -> Array:
    """The mean [B] of the values [B, T] where the mask [B, T] is set."""
    return jnp.sum(jnp.where(mask, values, 0), axis=1) / jnp.sum(mask, axis=1)


def read(embedded: Array, vocab: int) -> Array:
    """Logits [B, T, V] of embedded tokens [B, T, C] by causal attention; the read-out is 0 at the start."""
    _, length, channels = embedded.shape
    place = hk.get_parameter("place", (length, channels), init=hk.initializers.RandomNormal(0.1))
    rows = embedded + jnp.broadcast_to(place, embedded.shape)
    query, key, value = (hk.Linear(channels, name=name)(rows) for name in ("query", "key", "value"))
    scores = jnp.einsum("btc,bsc->bts", query, key) / math.sqrt(channels)
    causal = jnp.broadcast_to(jnp.tril(jnp.ones((length, length), bool)), scores.shape)
    weights = jax.nn.softmax(jnp.where(causal, scores, -1e9), axis=-1)
    seen = jnp.concatenate([rows, jnp.einsum("bts,bsc->btc", weights, value)], axis=2)
    logits: Array = hk.Linear(vocab, w_init=jnp.zeros, name="read_out")(jax.nn.tanh(seen))
    return logits


def make_model(config: ReadersConfig, shared: Shared = NO_ARRAYS) -> Model:
    """A reader; a boosted one adds its logits to those of the frozen one."""
    matrix, length = shared[EMBEDDING], config.data.length
    transformed: Any = hk.without_apply_rng(hk.transform(lambda embedded: read(embedded, config.data.vocab)))

    def init(key: Array) -> Params:
        params: Params = transformed.init(key, jnp.zeros((1, length, config.model.channels)))
        return params

    def predict(params: Params, batch: MaskedBatch) -> Array:
        embedded = matrix[batch.tokens]
        logits: Array = transformed.apply(params, embedded)
        return logits + transformed.apply(base_of(shared), embedded) if config.model.boosted else logits

    def losses(params: Params, batch: MaskedBatch) -> Array:
        return masked_mean(cross_entropies(predict(params, batch), batch.targets), batch.mask)

    return Model(init, predict, losses)


def frozen(config: ReadersConfig, runs: list[Any]) -> dict[str, Any]:
    """The parameters of the run that a boosted one adds to, as shared arrays."""
    return {f"{BASE}{name}": array for params in runs for name, array in flattened(params).items()}


def base_of(shared: Shared) -> Params:
    """Those parameters again."""
    found: Params = nested({name.removeprefix(BASE): array for name, array in shared.items() if name.startswith(BASE)})
    return found


_sample = jax.jit(sample, static_argnums=(1, 2))


def make_eval_set(config: ReadersConfig, shared: Shared) -> EvalSet:
    """The evaluation set of a config; its batch is also the analysis batch."""
    chains: Chains = _sample(task_key(config, Purpose.EVAL), config, config.eval_tasks)
    return EvalSet(chains.batch, math.log(config.data.vocab))


def make_test_chains(config: ReadersConfig) -> Chains:
    """The test set, with its chains."""
    chains: Chains = _sample(task_key(config, Purpose.TEST_SET), config, config.test_tasks)
    return chains


def eval_metrics(model: Model, params: Any, eval_set: EvalSet) -> dict[str, float]:
    """A record: the loss on the evaluation batch, and that of a predictor that knows nothing."""
    return {"eval_loss": float(_loss(model, params, eval_set.batch)), "eval_uniform_loss": eval_set.uniform_loss}


def _mean_loss(model: Model, params: Any, batch: MaskedBatch) -> Array:
    return model.loss(params, batch)


_loss = jax.jit(_mean_loss, static_argnums=0)


@jax.jit
def _losses_of_the_chain(chains: Chains) -> jax.Array:
    """The losses of who knows each sequence's chain."""
    batch = chains.batch
    rows = jnp.take_along_axis(chains.transitions, batch.tokens[:, :, None], axis=1)
    return masked_mean(cross_entropies(jnp.log(rows), batch.targets), batch.mask)


def predictions(model: Model, params: Any, eval_set: EvalSet) -> dict[str, Array]:
    """The losses [B] of the evaluation batch."""
    return {"losses": jax.jit(model.losses)(params, eval_set.batch)}


def test_metrics(config: ReadersConfig, model: Model, params: Any, eval_set: EvalSet) -> dict[str, Any]:
    """The loss on the test set, and that of who knows the chains."""
    chains = make_test_chains(config)
    losses = {"loss": jax.jit(model.losses)(params, chains.batch), "chain_loss": _losses_of_the_chain(chains)}
    return {"tasks": config.test_tasks, **means_and_errors(losses)}


TASK = TaskSpec(
    make_model=make_model,
    batches=batches_of(lambda key, config, count: sample(key, config, count).batch),
    make_eval_set=make_eval_set,
    eval_metrics=eval_metrics,
    frozen=frozen,
    predictions=predictions,
    test_metrics=test_metrics,
)
