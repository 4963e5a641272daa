"""The paper's GD++: its two rates after a short training, which at depth has not converged to the best ones.

`baselines.gd_plus_plus_fit` has the best polynomial of that form. The two agree for two steps. At ten the best step
size is near 5.4 and this one is near 3.0, and the losses are .031 and .039 (D = N = 10): training would go on.
"""

from __future__ import annotations

from functools import lru_cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array
from jax.tree_util import Partial

from icl_lab.baselines.gd_plus_plus_fit import Rates, expected_losses, gd_plus_plus_of, sampled_spectra
from icl_lab.src.data_config import LinearData
from icl_lab.src.one_step import one_step_size

TRAINING_STEPS, LEARNING_RATE, BATCH = 1000, 1e-3, 512
POOL, TRIED = 65_536, 8192  # contexts: from which batches are drawn, and for the start
GRID = np.linspace(0.02, 6.6, 330)  # of the start, in units of the best step size of one step


@lru_cache(maxsize=128)
def train_gd_plus_plus(data: LinearData, steps: int, seed: int) -> Rates:
    """Rates that all steps share after 1000 steps of Adam, from the shared optimum; von Oswald et al. 2023, App. A.10.

    The start is the best c of GD++ with gamma = c / N: one learning rate for labels and inputs. Teachers, label noise
    and queries are averaged in closed form. Deterministic in its arguments.

    For rates that all steps share alone: with rates of their own, what 30 000 steps find depends on the start (losses
    of .024 to .042 at five steps, where the best is below .0175).
    """
    pool_key, step_key = jax.random.split(jax.random.key(seed), 5)[3:]  # the first three are `fit_gd_plus_plus`'s
    with jax.enable_x64(True):
        pool = jnp.asarray(sampled_spectra(pool_key, data, POOL))
        start = shared_optimum(pool[:TRIED], data, steps)
        rates = _trained(data, steps, jnp.array([start, start / data.num_pairs]), pool, step_key)
        c, gammas = (np.full(steps, rate, np.float32) for rate in np.asarray(rates))
    return Rates(jnp.array(c), jnp.array(gammas))


def shared_optimum(spectra: Array, data: LinearData, steps: int) -> float:
    """The c of least expected loss on spectra [B, D] among GD++ of gamma = c / N, on a grid."""
    grid = GRID * one_step_size(data)
    tried = jnp.asarray(np.stack([grid, grid / data.num_pairs], axis=1))
    losses = _losses(tried, spectra, data, steps)
    return float(grid[np.argmin(np.nan_to_num(np.asarray(losses), nan=np.inf))])


# One program for all seeds.
@partial(jax.jit, static_argnames=("data", "steps"))
def _losses(tried: Array, spectra: Array, data: LinearData, steps: int) -> Array:
    """The expected losses [T] of rates [T, 2]."""
    losses: Array = jax.lax.map(lambda rates: _loss(rates, spectra, data, steps), tried)
    return losses


def _loss(rates: Array, spectra: Array, data: LinearData, steps: int) -> Array:
    """The expected loss of GD++ with c, gamma = rates [2] in every step."""
    return jnp.mean(expected_losses(Rates(*(jnp.broadcast_to(rate, (steps,)) for rate in rates)), spectra, data))


@partial(jax.jit, static_argnames=("data", "steps"))
def _trained(data: LinearData, steps: int, start: Array, pool: Array, key: Array) -> Array:
    """The rates [2] that Adam ends at, on batches of the pool's spectra."""
    optimizer = optax.adam(LEARNING_RATE)

    def step(state: tuple[Array, optax.OptState], key: Array) -> tuple[tuple[Array, optax.OptState], None]:
        rates, moments = state
        batch = pool[jax.random.randint(key, (BATCH,), 0, len(pool))]
        update, moments = optimizer.update(jax.grad(_loss)(rates, batch, data, steps), moments)
        return (optax.apply_updates(rates, update), moments), None

    keys = jax.random.split(key, TRAINING_STEPS)
    (rates, _), _ = jax.lax.scan(step, (start, optimizer.init(start)), keys)
    return rates


def trained_gd_plus_plus(data: LinearData, steps: int, seed: int) -> Partial:
    """The paper's GD++ as a predictor: batch in, predictions [B] out."""
    return gd_plus_plus_of(train_gd_plus_plus(data, steps, seed))
