"""Trainings of one layer on the population loss itself, many at once: no batch is drawn, so no sampling stands between
initial weights and where they lead.

Weights, optimiser and learning rate are those of the preset lsa1.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from icl_lab.families.regression.config import RegressionConfig
from icl_lab.families.task import model_of
from icl_lab.lab.configs.presets import preset, resolve, set_values
from icl_lab.src.one_layer import Point, Setting, heads_of, loss_of_heads, setting_of
from icl_lab.src.optimizer import make_optimizer, scheduled
from icl_lab.src.prng import key

STARTS = 16  # of a seed
STEPS = 15_000
RECORDS = 60
LAYER = "attention"


class Arm(NamedTuple):
    """What differs from the preset: fields of the config, and what is changed in the weights that it starts from.

    without_changed: p and b, by which inputs and labels change roles, are 0 at the start, and noise of this standard
    deviation is added to them; None leaves the weights as they are drawn.
    """

    fields: Mapping[str, Any] = {}
    without_changed: float | None = None


ARMS: dict[str, Arm] = {
    "preset": Arm(),
    "small weights": Arm({"init_scale": 2e-4}),
    "large weights": Arm({"init_scale": 0.2}),
    "merged": Arm({"merged": True}),
    "unchanged roles": Arm({}, 0.0),
    "unchanged roles, noise": Arm({}, 1e-3),
    "two heads": Arm({"num_heads": 2}),
    "sgd": Arm({"optimizer": "sgd", "lr": 0.5, "grad_clip": 0.0}),
}


class Trained(NamedTuple):
    """Trainings: their last points by head [S, H, ...], the steps of records [R] and losses there [R, S]."""

    heads: Point
    steps: np.ndarray
    losses: np.ndarray


def config_of(dim: int, pairs: int, arm: str, steps: int = STEPS) -> RegressionConfig:
    """The config whose weights and optimiser trainings have."""
    config = preset("lsa1")
    set_values(config, {"dim": dim, "num_pairs": pairs, "steps": steps} | dict(ARMS[arm].fields))
    resolved: RegressionConfig = resolve(config)
    return resolved


@lru_cache(maxsize=256)
def trained(dim: int, pairs: int, arm: str, seed: int, starts: int = STARTS, steps: int = STEPS) -> Trained:
    """Trainings from weights of these starts of a seed; a start is one run's initial weights."""
    config = config_of(dim, pairs, arm, steps)
    model, setting = model_of(config), setting_of(config.data)
    keys = jax.vmap(lambda number: jax.random.fold_in(key(seed), number))(jnp.arange(starts))
    params = jax.vmap(model.init)(keys)
    if ARMS[arm].without_changed is not None:
        params = _without_changed(params, dim, float(ARMS[arm].without_changed or 0.0), key(seed))
    at = np.unique(np.concatenate([[0], np.geomspace(1, steps, RECORDS)]).round().astype(int))
    last, losses = _train(config, setting, params, tuple(int(step) for step in at))
    heads = jax.vmap(lambda each: _heads(config, each))(last)
    return Trained(Point(*(np.asarray(part, np.float64) for part in heads)), at, np.asarray(losses))


def _layer(config: RegressionConfig, params: Any) -> Mapping[str, Array]:
    layer: Mapping[str, Array] = params[f"{config.model.layer_names[0]}/{LAYER}"]
    return layer


def _heads(config: RegressionConfig, params: Any) -> Point:
    return heads_of(_layer(config, params), config.data.dim, config.architecture.prediction_channel)


def _without_changed(params: Any, dim: int, noise: float, drawn: Array) -> Any:
    """Factors whose rows of W_V for x and of W_K for y, and so p and b, are 0 but for this noise."""

    def changed(module: Mapping[str, Array]) -> dict[str, Array]:
        one, other = jax.random.split(drawn)
        value, scores = module["value"], module["key"]
        value = value.at[:, :dim].set(noise * jax.random.normal(one, value[:, :dim].shape))
        scores = scores.at[:, dim].set(noise * jax.random.normal(other, scores[:, dim].shape))
        return {**module, "value": value, "key": scores}

    return {name: changed(module) for name, module in params.items()}


def _train(config: RegressionConfig, setting: Setting, params: Any, at: tuple[int, ...]) -> tuple[Any, Array]:
    """The last parameters, and the losses [R, S] at these steps."""
    optimizer, rate = make_optimizer(config.training), jnp.float32(config.training.lr)

    def loss(params: Any) -> Array:
        return loss_of_heads(setting, _heads(config, params))

    def step(carried: tuple[Any, Any], number: Array) -> tuple[tuple[Any, Any], None]:
        params, state = carried
        updates, state = optimizer.update(jax.grad(loss)(params), state, params)
        lr = scheduled(rate, config.training, number)
        return (optax.apply_updates(params, jax.tree.map(lambda update: -lr * update, updates)), state), None

    @jax.jit
    def until(carried: tuple[Any, Any], begin: Array, end: Array) -> tuple[tuple[Any, Any], Array]:
        one = lambda each: jax.lax.fori_loop(begin, end, lambda number, at: step(at, number)[0], each)  # noqa: E731
        carried = jax.vmap(one)(carried)
        return carried, jax.vmap(loss)(carried[0])

    carried = params, jax.vmap(optimizer.init)(params)
    losses = []
    for begin, end in zip((0, *at[:-1]), at, strict=True):
        carried, now = until(carried, jnp.int32(begin), jnp.int32(end))
        losses.append(now)
    return carried[0], jnp.stack(losses)
