"""A decoder and the posterior means of its possible priors, after every number of pairs: tasks retrieved or learnt.

On the same sequences of tasks of a mixture (`mixture` of `src.tasks`), or of one task outside it:

    tf     the decoder
    bayes  the posterior mean under the mixture
    ridge  the posterior mean under the Gaussian of the same total variance, w ~ N(0, v I)
    dmmse  the posterior mean on the centres alone: pure retrieval

Losses are half mean squares of the difference from noiseless labels. Lin and Lee 2024, arXiv 2402.18819; Panwar et al.
2024, arXiv 2306.04891.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from icl_lab.analysis.loaded_run import LoadedRun
from icl_lab.baselines import bayes, mixture
from icl_lab.families.diversity.task import predictions_of
from icl_lab.families.task import task_key
from icl_lab.src.batch import Batch
from icl_lab.src.checks import require
from icl_lab.src.data import labels
from icl_lab.src.data_config import PoolData
from icl_lab.src.prng import Purpose, purpose_key
from icl_lab.src.sequences import sequences_with, tasks_of

TF, BAYES, RIDGE, DMMSE = "tf", "bayes", "ridge", "dmmse"
OUTSIDE = 2  # the axis of the task outside the mixture: e_3, on which no centre lies


@dataclass(frozen=True, eq=False)
class Compared:
    """Predictions [B, K] of each predictor by its name, and the noiseless labels [B, K]; column n has seen n pairs."""

    predictions: Mapping[str, np.ndarray]
    targets: np.ndarray

    def losses(self, name: str) -> np.ndarray:
        """Half mean squared errors [K] after 0 to K - 1 pairs."""
        return np.asarray(0.5 * np.mean((self.predictions[name] - self.targets) ** 2, axis=0))

    def distances(self, other: str, name: str = TF) -> np.ndarray:
        """Half mean squared differences [K] of two predictors."""
        return np.asarray(0.5 * np.mean((self.predictions[name] - self.predictions[other]) ** 2, axis=0))

    def learnt(self, name: str = TF) -> np.ndarray:
        """The slope [K] of predictions on labels, sum f w.x / sum (w.x)^2: 0 of what predicts zero, 1 of the task."""
        products = np.sum(self.predictions[name] * self.targets, axis=0)
        return np.asarray(products / np.sum(self.targets**2, axis=0))


def of_mixture(loaded: LoadedRun, data: PoolData, count: int) -> Compared:
    """On sequences of fresh tasks of the mixture, which depend on the run's data seed alone."""
    return _compared(loaded, data, tasks_of(_key(loaded, Purpose.TASK), data, jnp.arange(count, dtype=jnp.uint32)))


def of_outside(loaded: LoadedRun, data: PoolData, count: int) -> Compared:
    """On sequences of the task weight_scale e_3, as long as the centres are and orthogonal to them; D at least 3."""
    require(data.dim > OUTSIDE, f"dim is {data.dim}; a task outside the mixture needs a third axis")
    w = jnp.zeros((count, data.dim)).at[:, OUTSIDE].set(data.weight_scale)
    return _compared(loaded, data, w)


def _key(loaded: LoadedRun, purpose: Purpose) -> Array:
    return purpose_key(task_key(loaded.config, Purpose.PATH), purpose)


def _compared(loaded: LoadedRun, data: PoolData, w: Array) -> Compared:
    require(data.task_distribution == "mixture", f"{data.task_distribution!r} tasks are no mixture of Gaussians")
    batch = sequences_with(_key(loaded, Purpose.INPUT), data, w)
    tf = predictions_of(loaded.model, loaded.params, batch)
    exact = {name: np.asarray(values, np.float64) for name, values in _exact(batch, data).items()}
    return Compared({TF: tf, **exact}, np.asarray(labels(batch.x, batch.w), np.float64))


@partial(jax.jit, static_argnums=1)
def _exact(batch: Batch, data: PoolData) -> dict[str, Array]:
    noise = data.noise_std**2
    means, _ = mixture.prior(data.dim, data.weight_scale)
    return {
        BAYES: mixture.predict_sequence(batch, noise, data.weight_scale),
        RIDGE: bayes.ridge(batch, noise / data.task_variance),
        DMMSE: bayes.dmmse(batch, means, noise),
    }


def ascent(losses: np.ndarray) -> float:
    """The largest loss after any number of pairs over that before the first: above 1 more context first does harm."""
    return float(losses.max() / losses[0])
