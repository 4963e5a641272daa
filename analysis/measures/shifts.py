"""Distribution shift: whether the transformer still does what the algorithms do.

The distribution of a run's test tasks with one thing changed: the range of the inputs (labels follow), the scale of the
teacher, distractor labels, or inputs of another distribution divided by their norm. Von Oswald et al. 2023, App. A.5.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import jax
import numpy as np

from analysis.measures.test_set import half_squared_errors
from baselines.gradient_descent import Predictor
from configs.regression import RegressionConfig
from families.experiment import task_key
from families.regression import make_test_batches
from src.batch import Batch
from src.config import DataConfig
from src.data import sample_other_batch
from src.prng import Purpose

# shift -> the data config with a value of it
SHIFTS: Mapping[str, Callable[[DataConfig, float], DataConfig]] = {
    "input_range": lambda data, value: replace(data, input_range=value * data.input_range),
    "weight_scale": lambda data, value: replace(data, weight_scale=value * data.weight_scale),
    "distractors": lambda data, value: replace(data, num_distractors=int(value)),
}
REPLACED = (0, 2, 4, 6, 8)  # labels, of von Oswald et al. 2023


def shifted_batches(config: RegressionConfig, shift: str, values: Sequence[float]) -> Sequence[Batch]:
    """A batch of test tasks for each value; "other_inputs" are exponential, normal or Laplace, times the value."""
    if shift == "other_inputs":
        key = task_key(config, Purpose.TEST_SET)
        return [_other(key, config.data, config.test_tasks, alpha=value) for value in values]
    return make_test_batches(config, [SHIFTS[shift](config.data, value) for value in values])


def shifted_losses(
    config: RegressionConfig, predictors: Mapping[str, Predictor], shift: str, values: Sequence[float]
) -> dict[str, np.ndarray]:
    """Half the squared errors [values, tasks] of each predictor: the same tasks for all of them."""
    found = [half_squared_errors(predictors, batch) for batch in shifted_batches(config, shift, values)]
    return {name: np.stack([errors[name] for errors in found]) for name in predictors}


def replaced_labels(
    config: RegressionConfig, predictors: Mapping[str, Predictor], counts: Sequence[int] = REPLACED
) -> dict[int, dict[str, np.ndarray]]:
    """count -> predictor -> half the squared errors [tasks] with so many labels of a context replaced by N(0, 1).

    Counts above the number of pairs are left out. Which labels, and by what, is the same for all predictors.
    """
    possible = [count for count in counts if count <= config.data.num_pairs]
    losses = shifted_losses(config, predictors, "distractors", possible)
    return {count: {name: losses[name][at] for name in predictors} for at, count in enumerate(possible)}


_other = partial(jax.jit, static_argnums=(1, 2))(sample_other_batch)
