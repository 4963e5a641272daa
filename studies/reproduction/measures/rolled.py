"""Measures on one trained layer applied again and again, without clipping."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.tree_util import Partial

from icl_lab.analysis import weights
from icl_lab.analysis.layerwise import paired_ratio
from icl_lab.analysis.weights import products
from icl_lab.baselines.loss_curves import summary
from icl_lab.families.regression.task import make_test_batch
from icl_lab.src.batch import Batch
from icl_lab.src.one_step import one_step_size
from icl_lab.studies.algorithm_distances import Measure, compared_run
from icl_lab.studies.reproduction.measures.trained import context_losses

ROLLED = 50  # applications


@lru_cache(maxsize=64)
def rolled_out(run: Path, damping: float) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Half the squared errors [K, B] of rolled-out layers and the unstable tasks [B], of the run and of descent."""
    loaded = compared_run(run)
    batch = make_test_batch(loaded.config)
    kq, pv = (part[0, 0].astype(np.float32) for part in products(loaded.config, loaded.params))
    descent = weights.gd_products(loaded.config.data.dim, one_step_size(loaded.config.data))
    rollouts = {}
    for name, pair in (("tf", (kq, pv)), ("gd", descent)):
        rolled = weights.rollout(*pair, batch, ROLLED, damping)
        predictions = np.asarray(rolled.predictions, np.float64)
        errors = np.where(np.isfinite(predictions), predictions, np.inf) - np.asarray(batch.y_query, np.float64)
        rollouts[name] = (0.5 * errors**2, np.asarray(rolled.unstable))
    return rollouts


def furthest(damping: float) -> Measure:
    """The largest |ratio - 1| of the transformer's loss to gradient descent's, over all numbers of applications.

    On the same tasks, less the thousandth on which either diverges most.
    """

    def measure(run: Path) -> float:
        rollouts = rolled_out(run, damping)
        ratios = [paired_ratio(*losses)[0] for losses in zip(rollouts["tf"][0], rollouts["gd"][0], strict=True)]
        return max(abs(ratio - 1) if np.isfinite(ratio) else float("inf") for ratio in ratios)

    return measure


def furthest_of_bounded_steps(damping: float) -> Measure:
    """The same of gradient descent with the step size 1 / (largest eigenvalue of X'X) of each context.

    w_K = V (1 - (1 - l / l_max)^K) / l V' X'y: what a layer would be that knows how far each context allows to go.
    """

    def measure(run: Path) -> float:
        batch = make_test_batch(compared_run(run).config)
        x, y, x_query = (np.asarray(part, np.float64) for part in (batch.x, batch.y, batch.x_query))
        eigenvalues, vectors = np.linalg.eigh(np.einsum("bnd,bne->bde", x, x))
        gradient, query = (np.einsum("bde,bd->be", vectors, one) for one in (np.einsum("bnd,bn->bd", x, y), x_query))
        left = 1 - eigenvalues / eigenvalues[:, -1:]
        ratios = []
        for steps, descent in enumerate(rolled_out(run, damping)["gd"][0], 1):
            made = np.where(eigenvalues > 1e-9, (1 - left**steps) / np.maximum(eigenvalues, 1e-9), 0.0)
            errors = 0.5 * ((made * gradient * query).sum(axis=1) - np.asarray(batch.y_query, np.float64)) ** 2
            ratios.append(paired_ratio(errors, descent)[0])
        return max(abs(ratio - 1) for ratio in ratios)

    return measure


def trimmed_means(run: Path, damping: float, whose: str = "tf") -> list[float]:
    """The mean without the largest thousandth after each number of applications."""
    return summary(rolled_out(run, damping)[whose][0])["trimmed_mean"]


def end(damping: float) -> Measure:
    """The trimmed mean after all applications."""
    return lambda run: trimmed_means(run, damping)[-1]


def median_end(damping: float) -> Measure:
    """The median over contexts after all applications, of the loss averaged over teachers and queries."""

    def measure(run: Path) -> float:
        loaded = compared_run(run)
        pair = [part[0, 0].astype(np.float32) for part in products(loaded.config, loaded.params)]
        last = Partial(_last, *pair, jnp.float32(damping))
        return float(np.median(context_losses({"tf": last}, loaded.config)["tf"]))

    return measure


def _last(kq: Array, pv: Array, damping: Array, batch: Batch) -> Array:
    last: Array = weights.rollout(kq, pv, batch, ROLLED, damping).predictions[-1]
    return last


def unstable(damping: float, whose: str = "tf") -> Measure:
    """The share of tasks whose updates grow."""
    return lambda run: float(rolled_out(run, damping)[whose][1].mean())


def lowest_mean(damping: float) -> Measure:
    """The smallest mean over tasks of any number of applications, before those that diverge are all of it."""
    return lambda run: float(np.nanmin(rolled_out(run, damping)["tf"][0].mean(axis=1)))
