"""Losses of the exact predictors for a pool of M tasks, with which trained models are compared.

Losses are squared errors of noiseless labels, averaged over sequences and the K predictions, over D; in distribution
(id) on the pool's tasks, out of it (ood) on fresh ones. Raventos et al. 2023 (Fig. 2, 6, 12); Carroll et al. 2025
(Fig. 3).
"""

from __future__ import annotations

import math
from functools import partial

import jax
import numpy as np
from jax import Array

from icl_lab.baselines import bayes
from icl_lab.src.batch import Batch
from icl_lab.src.data import labels
from icl_lab.src.data_config import PoolData
from icl_lab.src.prng import Purpose, purpose_key
from icl_lab.src.prng import key as make_key
from icl_lab.src.sequences import sample_sequences, task_pool, traced_size

SEQUENCES = 4096


@partial(jax.jit, static_argnames=("data", "count"))
def _sample(seed: Array, data: PoolData, count: int, num_tasks: Array, which: Array) -> tuple[Batch, Array]:
    key = make_key(seed)
    sequence_key = jax.random.fold_in(purpose_key(key, Purpose.IDEALISED), which)
    batch, _ = sample_sequences(sequence_key, purpose_key(key, Purpose.POOL), data, count, num_tasks)
    return batch, labels(batch.x, batch.w)


_pool = jax.jit(task_pool, static_argnames=("data", "num_tasks"))
_ridge = jax.jit(bayes.ridge, static_argnums=1)
_dmmse = jax.jit(bayes.dmmse, static_argnums=2)
_smoothed = jax.jit(bayes.smoothed_dmmse, static_argnums=2)


def exact_losses(data: PoolData, num_tasks: int, seed: int, count: int = SEQUENCES) -> dict[str, float]:
    """id_ and ood_ losses of ridge and dmmse, and `apart`, their Delta, for the first M tasks of a seed's pool."""
    tasks = _pool(purpose_key(make_key(seed), Purpose.POOL), data=data, num_tasks=num_tasks)
    losses = {}
    for which, (prefix, pool_size) in enumerate((("id", num_tasks), ("ood", math.inf))):
        batch, targets = _sample(np.uint32(seed), data, count, traced_size(pool_size), np.uint32(which))
        variance = data.noise_std**2
        ridge = _ridge(batch, variance / data.task_variance)
        dmmse = _dmmse(batch, tasks, variance)
        losses[f"{prefix}_ridge"] = _loss(ridge, targets, data)
        losses[f"{prefix}_dmmse"] = _loss(dmmse, targets, data)
        losses[f"{prefix}_apart"] = _loss(ridge, dmmse, data)
    return losses


def smoothed(data: PoolData, num_tasks: int, seed: int, count: int = SEQUENCES) -> dict[str, float]:
    """The smoothing that is best on fresh tasks, and its loss on held-out ones."""
    tasks = _pool(purpose_key(make_key(seed), Purpose.POOL), data=data, num_tasks=num_tasks)
    variance = data.noise_std**2
    (batch, targets), (test, test_targets) = (
        _sample(np.uint32(seed), data, count, traced_size(math.inf), np.uint32(which)) for which in (2, 1)
    )
    best = bayes.best_smoothing(batch, targets, tasks, variance)
    return {"best": best, "loss": _loss(_smoothed(test, tasks, variance, best), test_targets, data)}


def _loss(one: Array, other: Array, data: PoolData) -> float:
    return float(np.mean((np.asarray(one, np.float64) - np.asarray(other, np.float64)) ** 2) / data.dim)
