"""Batches of contexts from a file: those of a training step, and the sets that a run is evaluated on."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from icl_lab.families.own_data import take
from icl_lab.families.own_sets import sets_of
from icl_lab.src.batch import Batch
from icl_lab.src.decoder_config import LOSSES
from icl_lab.src.prng import Purpose
from icl_lab.src.stored_contexts import as_sequence, sample_stored
from icl_lab.src.train import Shared
from icl_lab.src.units import units_of


def training_batch(key: Array, config: Any, size: int, shared: Shared) -> Batch:
    """`size` training contexts, drawn by the step's key, of the arrays that the runs of a pack share."""
    rows = config.data.num_pairs - int(config.sequences) + int("x_query" not in shared)
    batch = sample_stored(key, shared, size, rows, drawn="lengths" in shared)
    return as_sequence(batch) if config.sequences else batch


PURPOSES = {"train": Purpose.STEP_SIZE, "eval": Purpose.EVAL, "test": Purpose.TEST_SET}


def own_set(config: Any, name: str, most: int | None = None) -> Batch:
    """The contexts of a set (train, eval, test), at most so many; baselines are fitted on those of the training.

    Where a context has more pairs than a batch, the data seed and the set's purpose draw which.
    """
    sets = sets_of(config)
    contexts: np.ndarray = getattr(sets, name)
    if most is not None and len(contexts) > most:
        contexts = np.sort(np.random.default_rng(config.data.split_seed).permutation(contexts)[:most])
    seeds = (config.data_seed, int(PURPOSES[name]))
    batch = take(sets.data, contexts, config.data.num_pairs, config.sequences, seeds).batch
    return Batch(*map(jnp.asarray, batch))


def loss_unit(config: Any) -> float:
    """The unit of a training loss: 1 unless the data are standardised."""
    units, degree = units_of(config.data), LOSSES[getattr(config.model, "loss", "half_squared_error")]
    return 1.0 if units is None else units.loss_unit(degree)
