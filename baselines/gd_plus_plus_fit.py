"""GD++ with learned rates: the step size and gamma of every step, trained on tasks as the transformer is.

What is trained are the diagonals of the construction's P and V (App. A.10 of von Oswald et al. 2023), with its keys and
queries frozen: two numbers for all steps, or two for each.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array
from jax.tree_util import Partial

from baselines.gd_step import gd_plus_plus, search_gd_plus_plus
from src.batch import Batch
from src.config import DataConfig
from src.data import sample_batch

BATCH = 512  # tasks in a batch, as in the published code
START_TASKS = 4096  # on which the shared rates that training starts from are searched
LEARNING_RATE = 3e-3
CLIP = 0.1  # of the global gradient norm: a few tasks of a deep stack have errors that dwarf all others


class Rates(NamedTuple):
    """The step sizes and gammas [K] of GD++."""

    step_sizes: Array
    gammas: Array


@lru_cache(maxsize=32)
def fit_gd_plus_plus(data: DataConfig, steps: int, shared: bool, seed: int, updates: int = 2000) -> Rates:
    """Rates of `steps` steps of GD++, trained from the best shared ones by Adam on fresh batches.

    The learning rate falls to zero by a cosine. Shared rates are the searched ones, of which there is nothing left to
    train. Deterministic in its arguments.
    """
    start_key, key = jax.random.split(jax.random.key(seed))
    found = search_gd_plus_plus(_sample(start_key, data, START_TASKS), steps)
    start = Rates(*(jnp.full(steps, value, jnp.float32) for value in found))
    return start if shared or steps == 1 else _train(start, key, data, updates)


def fitted_gd_plus_plus(data: DataConfig, steps: int, shared: bool, seed: int) -> Partial:
    """GD++ with learned rates as a predictor: batch in, predictions [B] out."""
    return Partial(_predictions, fit_gd_plus_plus(data, steps, shared, seed))


def _predictions(rates: Rates, batch: Batch) -> Array:
    return gd_plus_plus(batch, rates.step_sizes, rates.gammas, len(rates.gammas))


def gd_plus_plus_losses(rates: Rates, data: DataConfig, seed: int, tasks: int) -> np.ndarray:
    """Half the squared error [tasks] of GD++ with these rates on fresh tasks."""
    batch = _sample(jax.random.key(seed), data, tasks)
    errors = _predictions(rates, batch) - batch.y_query
    return 0.5 * np.asarray(errors, np.float64) ** 2


_sample = jax.jit(sample_batch, static_argnums=(1, 2))


@partial(jax.jit, static_argnums=(2, 3))
def _train(start: Rates, key: Array, data: DataConfig, updates: int) -> Rates:
    optimizer = optax.chain(
        optax.clip_by_global_norm(CLIP), optax.adam(optax.cosine_decay_schedule(LEARNING_RATE, updates))
    )

    def loss(rates: Rates, key: Array) -> Array:
        batch = sample_batch(key, data, BATCH)
        errors = _predictions(rates, batch) - batch.y_query
        return 0.5 * jnp.mean(errors**2)

    def update(index: Array, carry: tuple[Rates, optax.OptState]) -> tuple[Rates, optax.OptState]:
        rates, state = carry
        changes, state = optimizer.update(jax.grad(loss)(rates, jax.random.fold_in(key, index)), state)
        return Rates(*optax.apply_updates(rates, changes)), state

    rates: Rates = jax.lax.fori_loop(0, updates, update, (start, optimizer.init(start)))[0]
    return rates
