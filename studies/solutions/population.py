"""Trainings of one layer on the population loss itself, many at once: no batch is drawn, so no sampling stands between
initial weights and where they lead.

Initial weights, optimiser and learning rate are those of the preset lsa1: a seed starts where a run of that seed does.
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
from icl_lab.src.one_layer import Point, heads_of, loss_of_heads, setting_of
from icl_lab.src.optimizer import make_optimizer, scheduled
from icl_lab.src.prng import Purpose, key, purpose_key
from icl_lab.src.solutions import Found, classify

BLOCK = 64  # seeds that are trained together
STEPS = 15_000
EVERY = 50  # steps between records


class Arm(NamedTuple):
    """What differs from the preset: fields of the config, and what is changed in the weights that it starts from.

    without_swap: p and b, by which inputs and labels are swapped, are 0 at the start, and noise of this standard
    deviation is added to them; None leaves the weights as they are drawn.
    """

    fields: Mapping[str, Any] = {}
    without_swap: float | None = None


PRESET = "preset"
ARMS: dict[str, Arm] = {
    PRESET: Arm(),
    "small": Arm({"init_scale": 2e-4}),
    "large": Arm({"init_scale": 0.2}),
    "merged": Arm({"merged": True}),
    "no_swap": Arm({}, 0.0),
    "noisy_swap": Arm({}, 1e-3),
    "two_heads": Arm({"num_heads": 2}),
    "sgd": Arm({"optimizer": "sgd", "lr": 2.0, "grad_clip": 0.0}),
}


class Trained(NamedTuple):
    """Trainings of a block: their last heads [S, H, ...], the steps of records [R] and losses there [R, S]."""

    heads: Point
    steps: np.ndarray
    losses: np.ndarray


def config_of(dim: int, pairs: int, arm: str = PRESET, steps: int = STEPS) -> RegressionConfig:
    """The config whose weights and optimiser trainings have."""
    config = preset("lsa1")
    set_values(config, {"dim": dim, "num_pairs": pairs, "steps": steps} | dict(ARMS[arm].fields))
    resolved: RegressionConfig = resolve(config)
    return resolved


@lru_cache(maxsize=4096)
def found(dim: int, pairs: int, arm: str, seed: int) -> Found:
    """Which solution the training of a seed finds."""
    block = trained(dim, pairs, arm, seed // BLOCK)
    heads = Point(*(part[seed % BLOCK] for part in block.heads))
    return classify(setting_of(config_of(dim, pairs, arm).data), heads)


@lru_cache(maxsize=256)
def trained(dim: int, pairs: int, arm: str, block: int, steps: int = STEPS) -> Trained:
    """Trainings of the seeds from BLOCK * block on."""
    config = config_of(dim, pairs, arm, steps)
    params = jax.jit(jax.vmap(lambda seed: initial(config, arm, key(seed))))(BLOCK * block + jnp.arange(BLOCK))
    at = tuple(range(EVERY, steps + 1, EVERY))
    last, losses = _train(config, params, (0, *at))
    heads = jax.vmap(lambda each: _heads(config, each))(last)
    return Trained(Point(*(np.asarray(part, np.float64) for part in heads)), np.array((0, *at)), np.asarray(losses))


def initial(config: RegressionConfig, arm: str, seed_key: Array) -> Any:
    """The weights that a training of an arm starts from."""
    drawn = purpose_key(seed_key, Purpose.INIT)
    params = model_of(config).init(drawn)
    noise, dim = ARMS[arm].without_swap, config.data.dim
    return params if noise is None else {name: _without_swap(each, dim, noise, drawn) for name, each in params.items()}


def _without_swap(layer: Mapping[str, Array], dim: int, noise: float, drawn: Array) -> dict[str, Array]:
    """The factors with rows of W_V of x and of W_K of y, and so p and b, that are noise alone."""
    value, scores = layer["value"], layer["key"]
    one, other = jax.random.split(drawn)
    value = value.at[:dim].set(noise * jax.random.normal(one, value[:dim].shape))
    scores = scores.at[dim].set(noise * jax.random.normal(other, scores[dim].shape))
    return {**layer, "value": value, "key": scores}


def _heads(config: RegressionConfig, params: Any) -> Point:
    layer = params[f"{config.model.layer_names[0]}/attention"]
    return heads_of(layer, config.data.dim, config.architecture.prediction_channel)


def _train(config: RegressionConfig, params: Any, at: tuple[int, ...]) -> tuple[Any, Array]:
    """The last parameters, and the losses [R, S] at these steps."""
    optimizer, setting = make_optimizer(config.training), setting_of(config.data)
    rate = jnp.float32(config.training.lr)

    def loss(params: Any) -> Any:
        return loss_of_heads(setting, _heads(config, params))

    def step(number: Array, carried: tuple[Any, Any]) -> tuple[Any, Any]:
        params, state = carried
        updates, state = optimizer.update(jax.grad(loss)(params), state, params)
        lr = scheduled(rate, config.training, number)
        return optax.apply_updates(params, jax.tree.map(lambda update: -lr * update, updates)), state

    @jax.jit
    def until(begin: Array, end: Array, carried: tuple[Any, Any]) -> tuple[tuple[Any, Any], Array]:
        carried = jax.lax.fori_loop(
            begin, end, lambda number, each: jax.vmap(lambda one: step(number, one))(each), carried
        )
        return carried, jax.vmap(loss)(carried[0])

    carried, losses = (params, jax.vmap(optimizer.init)(params)), []
    for begin, end in zip((0, *at), at, strict=False):
        carried, now = until(jnp.int32(begin), jnp.int32(end), carried)
        losses.append(now)
    return carried[0], jnp.stack(losses)
