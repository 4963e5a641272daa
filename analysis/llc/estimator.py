"""The local learning coefficient at the checkpoints of a run: the estimate of `analysis.llc.any_model` on its tasks."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from icl_lab.analysis.llc import sgld
from icl_lab.analysis.llc.any_model import Problem, estimate, spectrum_at
from icl_lab.analysis.llc.estimate import Estimate
from icl_lab.analysis.llc.loss import Losses, split
from icl_lab.analysis.llc.mask import mask_vector
from icl_lab.analysis.llc.sampling import Asked, SourceOf
from icl_lab.analysis.llc.settings import Settings
from icl_lab.analysis.llc.spectrum import Spectrum
from icl_lab.families.native_kernel import of_config
from icl_lab.families.task import model_of, task_key, task_of, training_set
from icl_lab.src.checks import require
from icl_lab.src.model import Batch, Model, Params
from icl_lab.src.native.library import Library
from icl_lab.src.prng import Purpose
from icl_lab.src.train import BatchFn, Shared


class Estimator:
    """Estimates the LLC at any parameters of a run, by one compiled program: the settings are a part of it.

    library: the compiled C++ that computes the steps' gradients, for models that it can; None, JAX does.
    """

    def __init__(self, config: Any, settings: Settings, shared: Shared | None = None, library: Library | None = None):
        self.settings, self.config = settings, config
        self.loss_and_gradient = None if library is None else of_config(config, library)
        self.model = model_of(config, shared or {})
        require_null_predictor(config, self.model)
        self.shared = dict(shared or {})
        self.tasks = fixed_tasks(config, settings.tasks, self.shared)
        self.size = len(jax.tree.leaves(self.tasks)[0])
        require(
            settings.data != "fixed" or settings.batch_size <= self.size,
            f"batch_size is {settings.batch_size}, more than the {self.size} tasks that {config.name} is trained on",
        )
        self.null_loss = float(jnp.mean(_null_losses(self.model, self.tasks)))
        self.batched = dict(task_of(config).batched(config)) if settings.data == "fresh" else {}

    def __call__(
        self, step: int, params: Params, spectrum: Spectrum | None = None
    ) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """The row of a step, and the traces of its chains as `sgld.Draws` has them, burn-in included.

        Where a chain becomes non-finite there is no estimate: the row's reasons name the chain and the draw.
        """
        found = self.estimate(step, params, spectrum)
        row = {"step": step} | found.row() | {"tasks": self.size}  # of a finite training set, whatever was asked for
        return row, dict(found.traces)

    def estimate(self, step: int, params: Params, spectrum: Spectrum | None = None) -> Estimate:
        """The estimate of a step; spectrum: that at these parameters, where it is known."""
        root = task_key(self.config, Purpose.LLC_CHAIN)
        return estimate(self.problem(params), self.settings, root=root, step=step, spectrum=spectrum)

    def spectrum(self, params: Params) -> Spectrum:
        """The spectrum of the Hessian at these parameters, once for all settings."""
        return spectrum_at(self.problem(params))

    def problem(self, params: Params) -> Problem:
        """What is estimated: the run's model at these parameters, on its tasks."""
        taken = split(self.model.losses, params)
        fresh = _fresh(self.config, self.settings.batch_size) if self.settings.data == "fresh" else None
        return Problem(
            taken,
            self.tasks,
            self.size,
            mask_vector(taken, params, self.settings.mask),
            self.null_loss,
            asked=Asked(source_of=fresh, loss_and_gradient=self.loss_and_gradient),
            arguments=(self.batched, self.shared) if fresh else (),
        )

    def with_settings(self, settings: Settings) -> Estimator:
        """The same tasks with other settings, of the same number of tasks and where they come from."""
        other = copy(self)
        other.settings = settings
        return other


def check_mask(model: Model, pattern: str) -> None:
    """`ConfigError` for a mask that is found in no parameter of a model."""
    shapes = jax.eval_shape(model.init, jax.random.key(0))
    params = jax.tree.map(lambda like: np.broadcast_to(np.zeros((), like.dtype), like.shape), shapes)
    mask_vector(split(model.losses, params), params, pattern)


def require_null_predictor(config: Any, model: Model) -> None:
    """`ConfigError` for a model without null_losses, which saturation is measured by."""
    require(
        model.null_losses is not None,
        f"the model of {config.name} has no null predictor, which saturation needs: give its Model "
        "null_losses(batch) -> [B], the losses of a predictor that ignores the context",
    )


# --- tasks ---


def fixed_tasks(config: Any, count: int, shared: Shared) -> Batch:
    """The fixed set: `count` tasks like those of the training, or its whole training set where that is finite."""
    if (finite := training_set(config)) is not None:
        return finite
    batch_fn, batched = _batches(config, count), task_of(config).batched(config)
    batch: Batch = jax.jit(batch_fn)(task_key(config, Purpose.LLC_TASKS), np.int32(0), batched, shared)
    return batch


@lru_cache(maxsize=8)
def _batches(config: Any, count: int) -> BatchFn:
    """The training's batch function for batches of another size."""
    return task_of(config).batches(replace(config, training=replace(config.training, batch_size=count)))


@lru_cache(maxsize=8)
def _fresh(config: Any, size: int) -> SourceOf:
    """Steps on tasks that none has seen."""
    batches = _batches(config, size)

    def source(losses: Losses, centre: Array, data: Any, arguments: tuple[Mapping[str, Array], Shared]) -> sgld.Source:
        return sgld.fresh_tasks(losses, centre, lambda key: batches(key, jnp.int32(0), *arguments))

    return source


_null_losses = jax.jit(lambda model, batch: model.null_losses(batch), static_argnums=0)
