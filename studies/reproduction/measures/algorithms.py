"""The best step size of one step, and inputs, of one seed's sampled contexts: nothing is trained."""

from __future__ import annotations

import jax
import numpy as np

from icl_lab.baselines.step_size_search import search_step_size
from icl_lab.src.batch import Batch
from icl_lab.src.data import sample_batch
from icl_lab.src.data_config import DataConfig

TASKS = 65_536


def inputs_of(seed: int, data: DataConfig, count: int) -> np.ndarray:
    """The inputs [B, N, D] of sampled contexts, in double precision."""
    return np.asarray(_tasks(seed, data, count).x, np.float64)


def _tasks(seed: int, data: DataConfig, count: int) -> Batch:
    batch: Batch = _sample(jax.random.key(seed), data, count)
    return batch


_sample = jax.jit(sample_batch, static_argnums=(1, 2))


def best_step(seed: int, pairs: int = 10) -> float:
    """The step size eta/N of one step with the least loss on sampled tasks."""
    return search_step_size(_tasks(seed, DataConfig(num_pairs=pairs), TASKS), 1)
