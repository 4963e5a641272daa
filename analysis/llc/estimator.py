"""The local learning coefficient of a point of a training: how little noise in the weights raises the loss.

    LLC(w*) = nbeta (mean over draws of L(w) - L(w*)),    w ~ exp(-nbeta L(w) - gamma/2 |w - w*|^2)

by SGLD from w* (Lau et al. 2023, Eq. 15). A regular minimum of d parameters has d/2, a degenerate one less. Every
estimate is reported with its settings and the diagnostics that say whether the chains sampled that posterior; one from
chains with a reason to distrust them says so and is excluded from averages.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from copy import copy
from dataclasses import asdict, replace
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.flatten_util import ravel_pytree

from icl_lab.analysis.hessian import eigenvalue_ends, largest_eigenvalue
from icl_lab.analysis.llc import sgld
from icl_lab.analysis.llc.health import Diagnostics, diagnose
from icl_lab.analysis.llc.settings import Settings
from icl_lab.families.task import model_of, task_key, task_of, training_set
from icl_lab.src import intervals
from icl_lab.src.checks import ConfigError, require
from icl_lab.src.model import Batch, Model, Params
from icl_lab.src.prng import Purpose
from icl_lab.src.train import BatchFn, Shared
from icl_lab.store.params import flattened, nested

CURVATURE_TASKS = 256  # of the fixed set, for the largest eigenvalue of the Hessian: a bound on eps needs no more
CHECK_TASKS = 256  # of the fixed set, for the losses that R-hat and the share below L(w*) are taken from
LEVEL = 0.95  # of intervals over chains
NO_ESTIMATE = intervals.Interval(np.nan, np.nan, np.nan, 0)
MADE = {"": sgld.PLAIN, "rmsprop": sgld.rmsprop()}
SECONDS = 1  # of a processor, for all names; a match takes microseconds
MATCH = f"""
import json, re, resource, sys
resource.setrlimit(resource.RLIMIT_CPU, ({SECONDS}, {SECONDS}))
pattern, names = json.load(sys.stdin)
json.dump([re.search(pattern, name) is not None for name in names], sys.stdout)
"""


class Estimator:
    """Estimates the LLC at any parameters of a run, by one compiled program: the settings are a part of it."""

    def __init__(self, config: Any, settings: Settings, shared: Shared | None = None):
        self.settings, self.config = settings, config
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
        self.batches = _batches(config, settings.batch_size) if settings.data == "fresh" else None
        self.batched = dict(task_of(config).batched(config)) if settings.data == "fresh" else {}

    def __call__(self, step: int, params: Params) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """The row of a step, and the traces of its chains: excess and distance [C, T], fixed_loss, acceptance [C, K].

        Where a chain becomes non-finite there is no estimate: the row's reasons name the chain and the draw.
        """
        settings, mask = self.settings, mask_of(params, self.settings.mask)
        losses = np.asarray(_losses(self.model, params, self.tasks), np.float64)
        top = largest_eigenvalue(self.model, params, first(self.tasks, CURVATURE_TASKS), mask)
        if settings.gamma == 0:
            require_no_flat_direction(self.model, params, first(self.tasks, CURVATURE_TASKS), mask)
        sizes = map(np.float32, (settings.eps, settings.nbeta, settings.gamma))
        fixed = self._keys(step), params, mask, self.tasks, self.batched, self.shared
        drawn = _chains(self.model, settings.program, self.batches, *fixed, *sizes)
        traces = {name: np.asarray(values, np.float64) for name, values in drawn._asdict().items()}
        weights = np.asarray(ravel_pytree(params)[0])
        moving = weights if mask is None else weights[np.asarray(ravel_pytree(mask)[0]) > 0]
        diagnostics = diagnose(traces, settings, losses.mean(), self.null_loss, top, moving)
        estimate = row(step, traces, settings, float(losses.mean()), self.null_loss, diagnostics)
        return estimate | {"tasks": self.size}, traces  # of a finite training set, whatever was asked for

    def with_settings(self, settings: Settings) -> Estimator:
        """The same tasks with other settings, of the same number of tasks and where they come from."""
        other = copy(self)
        other.settings = settings
        return other

    def _keys(self, step: int) -> Array:
        root = task_key(self.config, Purpose.LLC_CHAIN)
        keys: Array = _chain_keys(root, np.uint32(self.settings.seed), np.uint32(step), self.settings.chains)
        return keys


@partial(jax.jit, static_argnames="chains")
def _chain_keys(root: Array, seed: Array, step: Array, chains: int) -> Array:
    """A key for each chain."""
    return jax.random.split(jax.random.fold_in(jax.random.fold_in(root, seed), step), chains)


def row(
    step: int,
    traces: Mapping[str, np.ndarray],
    settings: Settings,
    loss: float,
    null_loss: float,
    diagnostics: Diagnostics,
) -> dict[str, Any]:
    """A row of llc.csv: the estimate with its 95 % t interval over chain means, diagnostics and settings."""
    means = settings.nbeta * traces["excess"][:, settings.burn_in :].mean(axis=1)
    estimate = intervals.of(means, "linear", LEVEL) if np.isfinite(means).all() else NO_ESTIMATE
    return {
        "step": step,
        "llc": estimate.estimate,
        "llc_low": estimate.low,
        "llc_high": estimate.high,
        "loss": loss,
        "null_loss": null_loss,
        **diagnostics._asdict(),
        **asdict(settings),
    }


def require_null_predictor(config: Any, model: Model) -> None:
    """`ConfigError` for a model without null_losses, which saturation is measured by."""
    require(
        model.null_losses is not None,
        f"the model of {config.name} names no null predictor, which saturation is measured by: give its Model "
        "null_losses(batch) -> [B], the losses of a predictor that takes nothing from the context",
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


def first(tasks: Batch, count: int) -> Batch:
    """The first tasks of a batch, or all of them."""
    return jax.tree.map(lambda values: values[:count], tasks)


_losses = jax.jit(lambda model, params, batch: model.losses(params, batch), static_argnums=0)
_null_losses = jax.jit(lambda model, batch: model.null_losses(batch), static_argnums=0)


# --- parameters that move ---


def mask_of(params: Params, pattern: str) -> Params | None:
    """A tree of 0 and 1 like the parameters: whether the pattern is found in module/name; None without a pattern.

    `ConfigError` if it is found in none, and for one that takes too long to match.
    """
    if not pattern:
        return None
    names = flattened(params)
    chosen = dict(zip(names, matches(pattern, tuple(names)), strict=True))
    require(any(chosen.values()), f"mask {pattern!r} is found in no parameter; there are {', '.join(names)}")
    return nested({name: np.full(np.shape(leaf), chosen[name], np.float32) for name, leaf in names.items()})


@lru_cache(maxsize=8)
def matches(pattern: str, names: tuple[str, ...]) -> tuple[bool, ...]:
    """Whether a valid regular expression is found in each name; `ConfigError` if that takes more than `SECONDS`.

    It is matched in a process whose time is limited: some, such as ((.+)+)+X, would take longer than the age of the
    universe on a name of 30 letters.
    """
    line, given = [sys.executable, "-I", "-S", "-c", MATCH], json.dumps([pattern, names])
    done = subprocess.run(line, input=given, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ConfigError(
            f"mask is {pattern!r}, which takes more than {SECONDS} s to match with the names of the parameters; "
            "leave out repetitions of repetitions"
        )
    return tuple(json.loads(done.stdout))


def require_no_flat_direction(model: Model, params: Params, tasks: Batch, mask: Params | None) -> None:
    """`ConfigError` unless the Hessian's smallest eigenvalue is above a millionth of its largest, as gamma 0 needs."""
    low, high = eigenvalue_ends(model, params, tasks, mask)
    require(
        low > 1e-6 * high,
        f"with gamma 0 nothing bounds the flat directions at these parameters (Hessian eigenvalues from {low:.2g} to "
        f"{high:.2g}); choose gamma above 0",
    )


# --- the program ---


@partial(jax.jit, static_argnames=("model", "settings", "batches"))
def _chains(
    model: Model,
    settings: Settings,
    batches: BatchFn | None,
    keys: Array,
    params: Params,
    mask: Params | None,
    tasks: Batch,
    batched: Mapping[str, Array],
    shared: Shared,
    eps: Array,
    nbeta: Array,
    gamma: Array,
) -> sgld.Draws:
    losses, centre = sgld.flat(model, params)
    if batches is not None:
        source = sgld.fresh_tasks(losses, centre, lambda key: batches(key, jnp.int32(0), batched, shared))
    elif settings.data == "full":
        source = sgld.all_tasks(losses, centre, tasks)
    else:
        source = sgld.minibatches(losses, centre, tasks, settings.batch_size)
    target = sgld.Target(losses, centre, nbeta, gamma, None if mask is None else ravel_pytree(mask)[0])
    steps = sgld.Steps(settings.burn_in, settings.draws, settings.thin, settings.check_every)
    fixed, preconditioner = first(tasks, CHECK_TASKS), MADE[settings.preconditioner]
    return jax.vmap(lambda key: sgld.chain(key, target, source, fixed, eps, steps, preconditioner))(keys)
