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

from typing import Any

import jax
import numpy as np

from icl_lab.analysis.separation import separation
from icl_lab.baselines.registry import score_of_pairs
from icl_lab.families.regression.config import RegressionConfig
from icl_lab.families.regression.outputs import DETECTORS
from icl_lab.src.batch import Batch
from icl_lab.src.checks import ConfigError
from icl_lab.src.context import Context

MOST_MASKS = 2**23  # masks times contexts that are tried: a quarter of a second; all 2048 contexts up to 12 pairs


def most_contexts(name: str, pairs: int) -> int:
    """How many contexts of so many pairs a detector is measured on at most."""
    return max(2, MOST_MASKS >> pairs) if name == "mask_bayes" else MOST_MASKS


@np.errstate(over="ignore", invalid="ignore")  # non-finite values are null in the file
def detectors(config: RegressionConfig, context: Context, twin: Batch, seed: int) -> dict[str, dict[str, Any]]:
    """Each detector in numbers, as `separation` has them, with `tasks`, the first contexts that it is measured on.

    `twin` is the context's clean twin. Where a detector is not defined its numbers are nan, and `reason` says why.
    """
    hit, pairs = np.asarray(context.hit), context.batch.y.shape[1]
    separations = {}
    for name in DETECTORS:
        score, tasks = score_of_pairs(name), min(len(hit), most_contexts(name, pairs))
        parts = [_first(batch, tasks) for batch in (context.batch, twin)]
        try:
            scores, reason = [score(part, config) for part in parts], {}
        except ConfigError as error:
            scores, reason = [np.full((tasks, pairs), np.nan)] * 2, {"reason": str(error)}
        separations[name] = {"tasks": tasks, **separation(scores[0], hit[:tasks], scores[1], seed), **reason}
    return separations


def _first(batch: Batch, tasks: int) -> Batch:
    return Batch(*(jax.device_get(part)[:tasks] for part in batch))
