"""A stored run as the subject of an analysis: its predictor, and the gradient descent it is held against."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import jax
from jax import Array
from jax.tree_util import Partial

import store
from baselines.gradient_descent import gd, search_step_size
from configs.regression import RegressionConfig
from families.regression import make_model, step_size_batch
from src.batch import Batch
from src.config import ModelConfig
from src.model import Model
from src.prng import key as make_key
from store import layout
from store.params import flattened
from store.readers import check_arrays


class GradientDescent(NamedTuple):
    """Gradient descent as a baseline: how many steps of which size, and where the size comes from."""

    steps: int
    step_size: float | Array
    source: str

    @property
    def predict(self) -> Partial:
        """Gradient descent as a predictor: batch in, predictions [B] out."""
        return Partial(_descent(self.steps), self.step_size)


@lru_cache(maxsize=64)
def _descent(steps: int) -> Callable[[float | Array, Batch], Array]:
    """Gradient descent of so many steps; always the same function, so that programs which call it are compiled once."""
    return lambda step_size, batch: gd(batch, step_size, steps)


class Subject(NamedTuple):
    """What an analysis looks at."""

    run: Path
    config: RegressionConfig
    model: Model
    params: Any
    batch: Batch
    gd: GradientDescent

    @property
    def predict(self) -> Partial:
        """The trained transformer: batch in, predictions [B] out."""
        return Partial(self.model.predict, self.params)


def gd_steps(model: ModelConfig) -> int:
    """How many steps of gradient descent a model is compared with: one for each linear layer.

    A softmax layer below linear ones copies; without any linear layer every layer counts.
    """
    linear = sum(model.kind(layer) == "linear" for layer in range(model.num_layers))
    return linear or model.num_layers


def find_gd(config: RegressionConfig, eta: float | None = None) -> GradientDescent:
    """The gradient descent a run is compared with, at step `eta` (eta/N in the paper) or the best on other tasks."""
    steps = gd_steps(config.model)
    if eta is not None:
        return GradientDescent(steps, eta, "given")
    batch = step_size_batch(config)
    source = f"line search on {config.step_size_tasks} separate clean tasks"
    return GradientDescent(steps, search_step_size(batch, steps), source)


def load_subject(run: Path, eta: float | None = None, allow_pickle: bool = False) -> Subject:
    """Loads a finished run and finds its baseline; `StoreError` if the parameters are another model's."""
    jax.config.update("jax_default_matmul_precision", "highest")  # as in training, see runners.common
    config, params, batch = store.load(run, allow_pickle)
    model = make_model(config)
    expected = flattened(jax.eval_shape(model.init, make_key(0)))
    check_arrays(run / layout.PARAMS, flattened(params), {name: leaf.shape for name, leaf in expected.items()})
    return Subject(run, config, model, params, batch, find_gd(config, eta))
