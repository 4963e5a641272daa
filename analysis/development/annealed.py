"""A branch of a training whose learning rate falls to 0: what a checkpoint becomes without the rate's own noise.

While the rate is high parameters jump about a minimum, and an LLC there has a part of slope and scatter that is no
property of the solution. From the checkpoint of step t a branch trains `share` t further steps, on tasks that no other
step has seen, at the rate of step t times (1 + cos(pi s)) / 2, s from 0 to 1. Its length follows t, so that in log step
each branch goes on as far: by log(1 + share / 2) at most, measured by the sum of its rates.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from icl_lab.families.task import task_key, task_of, with_parts_as_batches
from icl_lab.lab.configs.run import RunConfig
from icl_lab.src.model import Params
from icl_lab.src.optimizer import make_optimizer, scheduled
from icl_lab.src.prng import Purpose
from icl_lab.src.train import Hyperparameters, Shared, Trainer, TrainState, make_trainer, run_of

PIECES = 20  # in each of which the rate is constant: one program for branches of all lengths


def annealed(config: RunConfig, shared: Shared, params: Params, step: int, share: float) -> Params:
    """The parameters at the end of the branch from step `step`; those given where it has no steps or no rate.

    Adam begins anew. Not finite where the branch diverges.
    """
    steps = round(share * step)
    rate = float(scheduled(jnp.float32(config.training.lr), config.training, jnp.int32(step)))
    if steps == 0 or rate == 0:
        return params
    trainer, one = _trainer(config), partial(jax.tree.map, lambda value: jnp.asarray(value)[None])
    batched, placed = one(task_of(config).batched(config)), trainer.placed(dict(shared), 0)
    key = jax.random.fold_in(task_key(config, Purpose.ANNEALED), step)[None]
    model = task_of(config).make_model(config, shared)
    begun = TrainState(params, make_optimizer(config.training, model.decayed).init(params))
    state: TrainState = jax.tree.map(lambda leaf: jnp.array(leaf)[None], begun)
    ends = np.linspace(0, steps, PIECES + 1).round().astype(np.int32)
    for piece in range(PIECES):
        lr = jnp.float32([rate * (1 + np.cos(np.pi * (piece + 0.5) / PIECES)) / 2])
        pack = trainer.placed(Hyperparameters(key, key, lr, batched), 1)
        state, _ = trainer.chunk(state, pack, placed, ends[piece], ends[piece + 1])
    ended: Params = run_of(state.params, 0)
    return ended


def _trainer(config: RunConfig) -> Trainer:
    return _of_shape(replace(config, training=replace(config.training, schedule="constant", warmup_steps=0)))


@lru_cache(maxsize=4)
def _of_shape(config: Any) -> Trainer:
    """The trainer of a config's shape at a constant rate, which is an argument of its program."""
    task = task_of(config)
    batches = task.batches(with_parts_as_batches(config))
    return make_trainer(partial(task.make_model, config), config.training, batches, jax.devices()[:1])
