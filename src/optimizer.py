"""The optimiser of a training and its learning rate at each step."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax import Array

from icl_lab.src import config as configs
from icl_lab.src import registries
from icl_lab.src.checks import named, require
from icl_lab.src.config import TrainConfig
from icl_lab.src.model import Params
from icl_lab.src.registry import Functions

TRAINED, FROZEN = "trained", "frozen"  # parameters
HALF_PERIOD = 1000  # steps of an oscillation from 0 to the learning rate


def constant(lr: Array, config: TrainConfig, step: Array) -> Array:
    """lr itself."""
    return lr


def cosine(lr: Array, config: TrainConfig, step: Array) -> Array:
    """lr (1 + cos(pi (step - W) / (steps - W))) / 2 from step W on, the end of the warm-up: 0 after the last step."""
    falling = max(config.steps - config.warmup_steps, 1)
    done = jnp.clip((step - config.warmup_steps).astype(lr.dtype) / falling, 0, 1)
    return lr * (1 + jnp.cos(jnp.pi * done)) / 2


def linear_up_down(lr: Array, config: TrainConfig, step: Array) -> Array:
    """lr min(step + 1, steps - step) / (steps / 2), at most lr: up to the middle of the training, then down to 0."""
    return lr * jnp.minimum(jnp.minimum(step + 1, config.steps - step).astype(lr.dtype) / (config.steps / 2), 1)


def cosine_oscillation(lr: Array, config: TrainConfig, step: Array) -> Array:
    """lr (1 - cos(pi step / 1000)) / 2: it oscillates between 0 and lr; published, not recommended."""
    return lr * (1 - jnp.cos(jnp.pi * step.astype(lr.dtype) / HALF_PERIOD)) / 2


SCHEDULES: Functions[Callable[[Array, TrainConfig, Array], Array]] = Functions(
    registries.SCHEDULES, "rate", named(registries.SCHEDULES.built_in, globals())
)


def scheduled(lr: Array, config: TrainConfig, step: Array) -> Array:
    """The learning rate of a step (from 0): lr min(1, (step + 1) / W), W = `warmup_steps`, times the schedule."""
    if config.warmup_steps > 0:
        lr = lr * jnp.minimum((step + 1).astype(lr.dtype) / config.warmup_steps, 1)
    return SCHEDULES[config.schedule](lr, config, step)


def adamw(config: TrainConfig) -> optax.GradientTransformation:
    """Adam's scaling; weight decay is decoupled (Loshchilov and Hutter 2019)."""
    return optax.scale_by_adam(b1=config.b1, b2=config.b2)


def sgd(config: TrainConfig) -> optax.GradientTransformation:
    """The gradient itself."""
    return optax.identity()


OPTIMIZERS: dict[str, Callable[[TrainConfig], optax.GradientTransformation]] = named(configs.OPTIMIZERS, globals())


def make_optimizer(config: TrainConfig, decayed: Callable[[Params], Any] | None = None) -> optax.GradientTransformation:
    """Clip by global norm, the optimiser's scaling, decoupled weight decay of what `decayed` says, else of all.

    The learning rate is the run's. With `train_only` the other parameters are neither updated nor decayed, and have no
    part in the norm that is clipped.
    """
    clip = optax.clip_by_global_norm(config.grad_clip) if config.grad_clip > 0 else optax.identity()
    decay = optax.add_decayed_weights(config.weight_decay, decayed) if config.weight_decay > 0 else optax.identity()
    chain = optax.chain(clip, OPTIMIZERS[config.optimizer](config), decay)
    if not config.train_only:
        return chain
    return optax.partition({TRAINED: chain, FROZEN: optax.set_to_zero()}, partial(_labels, config.train_only))


def _labels(pattern: str, params: Params) -> Any:
    """For each parameter, whether it is trained."""
    return {
        module: {name: TRAINED if is_trained(pattern, f"{module}/{name}") else FROZEN for name in leaves}
        for module, leaves in params.items()
    }


def trained_part(config: TrainConfig, tree: Params) -> Params:
    """A tree like the parameters with 0 for those that are not trained."""
    if not config.train_only:
        return tree
    labels = _labels(config.train_only, tree)
    zeroed: Params = jax.tree.map(lambda label, leaf: leaf if label == TRAINED else jnp.zeros_like(leaf), labels, tree)
    return zeroed


def is_trained(pattern: str, name: str) -> bool:
    """Whether `train_only` names a parameter, `module/name`: its pattern is found somewhere in it."""
    return re.search(pattern, name) is not None


def check_trained(pattern: str, names: Iterable[str]) -> None:
    """`ConfigError` unless `train_only` names some parameters of a model and not all."""
    names = [*names]
    trained = [name for name in names if is_trained(pattern, name)]
    require(bool(trained), f"train_only is {pattern!r}; it matches none of the parameters {', '.join(names)}")
    require(len(trained) < len(names), f"train_only is {pattern!r}; it matches all parameters: {', '.join(names)}")
