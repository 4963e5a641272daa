"""The built-in opponents, which a run of regression names in `opponents`: predict(batch, config) -> [B] each.

`src.registries.OPPONENTS` holds their names and those of plugins.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import jax.numpy as jnp
import numpy as np
from jax import Array

from icl_lab.baselines import mixture, preconditioned, sparse
from icl_lab.baselines.linear_mmse import ridge
from icl_lab.src import registries
from icl_lab.src.batch import Batch
from icl_lab.src.checks import named, require
from icl_lab.src.covariance import fixed_eigenvalues
from icl_lab.src.data import TASK_POWERS
from icl_lab.src.registry import Functions

if TYPE_CHECKING:
    from icl_lab.families.regression.config import RegressionConfig


def preconditioned_gd(batch: Batch, config: RegressionConfig) -> Array:
    """One preconditioned gradient step, the best of one linear attention layer (`baselines.preconditioned`).

    `ConfigError` where that has no closed form, and where the run trains or is tested on corrupted pairs.
    """
    check_clean(config)
    return preconditioned.predict(batch, preconditioned.preconditioner(config.data))


def gaussian_posterior(batch: Batch, config: RegressionConfig) -> Array:
    """The posterior mean under tasks N(m 1, W) and the config's noise: m 1 + W X^T (X W X^T + s^2 I)^-1 (y - m X 1).

    Of tasks that are not Gaussian the best predictor that is linear in the labels. `ConfigError` where labels are not
    linear, where W differs between contexts, and where the run trains or is tested on corrupted pairs.
    """
    data = config.data
    check_clean(config)
    require(data.teacher == "linear", f"the posterior is of linear labels; the teacher is {data.teacher}")
    eigenvalues, power = fixed_eigenvalues(data), TASK_POWERS[data.task_covariance]
    shared = power == 0 or (eigenvalues is not None and data.axes == "coordinates")
    require(shared, "the posterior is of tasks whose covariance no context draws for itself")
    deviations = np.ones(data.dim) if power == 0 or eigenvalues is None else eigenvalues**power
    scale = jnp.asarray(deviations, batch.x.dtype)
    white = batch._replace(
        x=batch.x * scale[None, None],
        x_query=batch.x_query * scale[None],
        y=batch.y - data.task_mean * jnp.sum(batch.x, axis=2),
    )
    mean = data.task_mean * jnp.sum(batch.x_query, axis=1)
    return ridge(white, data.noise_std**2 / data.mean_task_variance) + mean


def mixture_posterior(batch: Batch, config: RegressionConfig) -> Array:
    """The posterior mean under tasks of the distribution `mixture` (`baselines.mixture`), whatever the run's are.

    `ConfigError` without label noise, and where labels are not linear or tasks have a mean or a covariance besides.
    """
    return mixture.predict(batch, _noise_variance(config), config.data.weight_scale)


def sparse_posterior(batch: Batch, config: RegressionConfig) -> Array:
    """The posterior mean under tasks of the distribution `sparse` (`baselines.sparse`); errors as above."""
    return sparse.predict(batch, _noise_variance(config), config.data.weight_scale)


def check_clean(config: RegressionConfig) -> None:
    """`ConfigError` if pairs of the training or of the test are corrupted, of which these opponents know nothing."""
    clean = config.train.hit_rate == 0 and config.eval.hit_rate == 0 and config.data.num_distractors == 0
    require(clean, "it is of contexts without corrupted pairs or distractor labels")


def _noise_variance(config: RegressionConfig) -> float:
    check_clean(config)
    data = config.data
    plain = data.teacher == "linear" and data.task_covariance == "isotropic" and data.task_mean == 0
    require(plain, "the posterior is of linear labels and of tasks without a mean or a covariance besides")
    require(data.noise_std > 0, "noise_std is 0; the posterior is of labels with noise")
    return data.noise_std**2


OPPONENTS: Functions[Callable[..., Array]] = Functions(
    registries.OPPONENTS, "predict", named(registries.OPPONENTS.built_in, globals())
)
