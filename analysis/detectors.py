"""What a detector of corruption could reach: positive controls for the AUROC of a model's scores.

A random pair alone has the distribution of a clean one, so a score that looks at one pair has AUROC .5 by construction,
and so has one that does not look at labels under label noise. Only the agreement between pairs tells:

    mask_bayes  the posterior probability that a pair is clean; knows p, sigma and the tasks: no score does better
    loo_gd      minus the leave-one-out error of gradient descent, -|y_i - c sum_(j != i) y_j x_j.x_i| with the step c
                that is best on N - 1 clean pairs; knows nothing of the corruption

Higher scores mean cleaner, as everywhere: above .5 a corrupted pair is recognised by a lower posterior, or by a larger
error. Neither depends on a model.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from icl_lab.analysis.separation import separation
from icl_lab.baselines.mask_bayes import mask_posterior
from icl_lab.families.regression.config import RegressionConfig
from icl_lab.src.batch import Batch
from icl_lab.src.checks import ConfigError
from icl_lab.src.context import Context
from icl_lab.src.ordering import leave_one_out_gd_error

MOST_MASKS = 2**23  # masks times contexts that are tried: a quarter of a second; all 2048 contexts up to 12 pairs

_gd_error = jax.jit(leave_one_out_gd_error, static_argnames="data")


def clean_posterior(batch: Batch, config: RegressionConfig) -> np.ndarray:
    """P(pair j is clean | the context's pairs) [B, N], summed over all 2^N masks of hit pairs."""
    return mask_posterior(batch, config.data, config.eval).clean


def minus_gd_error(batch: Batch, config: RegressionConfig) -> np.ndarray:
    """Minus the error [B, N] of one GD step from the other pairs about a pair, whose size is best for clean ones."""
    config.data.check_moments("the leave-one-out error")
    return -np.asarray(_gd_error(batch, config.data), np.float64)


class Detector(NamedTuple):
    """A score [B, N] of a batch's pairs, and how many contexts of N pairs it is measured on at most."""

    score: Callable[[Batch, RegressionConfig], np.ndarray]
    most: Callable[[int], int]


DETECTORS: dict[str, Detector] = {
    "mask_bayes": Detector(clean_posterior, lambda pairs: max(2, MOST_MASKS >> pairs)),
    "loo_gd": Detector(minus_gd_error, lambda pairs: MOST_MASKS),
}


@np.errstate(over="ignore", invalid="ignore")  # non-finite values are null in the file
def detectors(config: RegressionConfig, context: Context, twin: Batch, seed: int) -> dict[str, dict[str, Any]]:
    """Each detector in numbers, as `separation` has them, with `tasks`, the first contexts that it is measured on.

    `twin` is the context's clean twin. Where a detector is not defined its numbers are nan, and `reason` says why.
    """
    hit, pairs = np.asarray(context.hit), context.batch.y.shape[1]
    separations = {}
    for name, (score, most) in DETECTORS.items():
        tasks = min(len(hit), most(pairs))
        parts = [_first(batch, tasks) for batch in (context.batch, twin)]
        try:
            scores, reason = [score(part, config) for part in parts], {}
        except ConfigError as error:
            scores, reason = [np.full((tasks, pairs), np.nan)] * 2, {"reason": str(error)}
        separations[name] = {"tasks": tasks, **separation(scores[0], hit[:tasks], scores[1], seed), **reason}
    return separations


def _first(batch: Batch, tasks: int) -> Batch:
    return Batch(*(jax.device_get(part)[:tasks] for part in batch))
