"""Measures on the algorithms alone, for one seed: gradient descent, GD++ and its spectrum."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import jax
import numpy as np

from icl_lab.baselines import step_sizes
from icl_lab.baselines.gd_plus_plus import Rates, fit_gd_plus_plus, gd_plus_plus_losses
from icl_lab.baselines.gradient_descent import search_step_size
from icl_lab.baselines.iterations import least_between
from icl_lab.src.batch import Batch
from icl_lab.src.data import sample_batch
from icl_lab.src.data_config import DataConfig

TASKS = 10_000


def inputs_of(seed: int, data: DataConfig, count: int = TASKS) -> np.ndarray:
    """The inputs [B, N, D] of sampled contexts, in double precision."""
    return np.asarray(_tasks(seed, data, count).x, np.float64)


def _tasks(seed: int, data: DataConfig, count: int = TASKS) -> Batch:
    batch: Batch = _sample(jax.random.key(seed), data, count)
    return batch


_sample = jax.jit(sample_batch, static_argnums=(1, 2))


def tuned_gd(steps: int) -> Callable[[int], float]:
    """The loss of gradient descent of so many steps, at the step size that is best on other contexts.

    Averaged over teachers and queries: v/2 sum_d (1 - c l_d)^(2K), of eigenvalues l of X'X and inputs of variance v.
    A few contexts with large eigenvalues diverge at large c, so it takes many to choose c.
    """

    def measure(seed: int) -> float:
        data = DataConfig()
        chosen, tested = (step_sizes.eigenvalues(inputs_of(2 * seed + i, data, 16 * TASKS)) for i in (0, 1))
        best = least_between(lambda c: float(_residual(c, chosen, steps)), 0.1, 1.0)
        return 0.5 * data.input_variance * _residual(best, tested, steps)

    return measure


def _residual(step_size: float, eigenvalues: np.ndarray, steps: int) -> float:
    return float(((1 - step_size * eigenvalues) ** (2 * steps)).sum(axis=1).mean())


def best_step(seed: int) -> float:
    """The step size eta/N of one step with the least loss on sampled tasks."""
    return search_step_size(_tasks(seed, DataConfig(), 65_536), 1)


def learned_gd_plus_plus(steps: int, shared: bool, statistic: Callable[..., Any] = np.mean) -> Callable[[int], float]:
    """The loss of GD++ with learned rates on fresh tasks."""

    def measure(seed: int) -> float:
        rates = _fitted(steps, shared, seed)
        return float(statistic(gd_plus_plus_losses(rates, DataConfig(), 1000 + seed, 32_768)))

    return measure


def learned_gamma(steps: int) -> Callable[[int], float]:
    """The shared gamma of GD++."""
    return lambda seed: float(_fitted(steps, True, seed).gammas[0])


@lru_cache(maxsize=128)
def _fitted(steps: int, shared: bool, seed: int) -> Rates:
    """GD++ with learned rates, fitted once for all claims on it."""
    return fit_gd_plus_plus(DataConfig(), steps, shared, seed)


def eigenvalue(num_pairs: int, which: str) -> Callable[[int], float]:
    """The smallest ("min") or largest ("max") eigenvalue of the scatter matrices of 10 000 contexts."""

    def measure(seed: int) -> float:
        values = step_sizes.eigenvalues(inputs_of(seed, DataConfig(num_pairs=num_pairs)))
        return float(values.min() if which == "min" else values.max())

    return measure


def condition_change(num_pairs: int, gamma: float) -> Callable[[int], float]:
    """The median condition number after a step of GD++ on the inputs over that before."""

    def measure(seed: int) -> float:
        values = step_sizes.eigenvalues(inputs_of(seed, DataConfig(num_pairs=num_pairs)))
        after = step_sizes.condition_number(np.abs(step_sizes.after_a_step(values, gamma)))
        return float(np.median(after / step_sizes.condition_number(values)))

    return measure
