"""Losses on the test set: the transformer, its baselines, and their paired ratios.

The squared errors of two predictors on the same task are strongly correlated, so a ratio is taken on the same tasks and
its standard error from the paired differences.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import Array
from jax.tree_util import Partial

from icl_lab.analysis.loaded_run import ComparedRun
from icl_lab.baselines.gradient_descent import Predictor, context_losses
from icl_lab.families.regression.baselines import defined, made, made_or_reason, names_of
from icl_lab.families.regression.config import RegressionConfig
from icl_lab.families.regression.task import GradientDescent, in_float64, make_test_batch, of_fields
from icl_lab.src.batch import Batch
from icl_lab.src.checks import ConfigError, same_shape
from icl_lab.src.data_config import DataConfig
from icl_lab.src.registries import ALWAYS, BASELINES
from icl_lab.src.statistics import mean_and_error, not_defined, ratio_and_error, with_error

TEST_SET = ("data", "eval", "data_seed", "test_tasks")  # fields on which the test tasks depend
MOST_RATES, LARGEST_DIM = 3, 20  # steps with rates of their own, and dimensions, up to which GD++ is fitted in seconds


def fitted_gd_plus_plus_of(loaded: ComparedRun) -> Partial | None:
    """GD++ with learned rates and a step for each linear layer, for several of them on concatenated tokens.

    None where fitting the rates takes more than a few seconds: five layers with rates of their own take twelve, twelve
    a minute. `analysis.over_training` compares with it at any depth. `ConfigError` where the inputs' variance is not
    known.
    """
    model, data, steps = loaded.config.model, loaded.config.data, loaded.gd.steps
    linear = all(model.kind(layer) == "linear" for layer in range(model.num_layers))
    if steps < 2 or not linear or model.tokens != "concatenated" or min(data.dim, data.num_pairs) > LARGEST_DIM:
        return None
    if steps > MOST_RATES and not model.recurrent:
        return None
    fitted: Partial = made("gd_plus_plus", loaded.config, loaded.gd)
    return fitted


def half_squared_errors(predictors: Mapping[str, Predictor], batch: Batch) -> dict[str, np.ndarray]:
    """Half the squared error [B] of each task, for each predictor.

    One program for all batches of a shape and all predictors of a kind: arrays that a `jax.tree_util.Partial` holds
    (parameters, step sizes) are its arguments, what a `functools.partial` holds are its constants.
    """
    errors = _half_squared_errors({name: _as_argument(predict) for name, predict in predictors.items()}, batch)
    return {name: np.asarray(errors[name], np.float64) for name in predictors}  # jit sorts names


@jax.jit
def _half_squared_errors(predictors: dict[str, Partial], batch: Batch) -> dict[str, Array]:
    predictions = {name: predict(batch) for name, predict in predictors.items()}
    for predicted in predictions.values():
        same_shape(predictions=predicted, y_query=batch.y_query)
    return {name: 0.5 * (predicted - batch.y_query) ** 2 for name, predicted in predictions.items()}


def _as_argument(predict: Predictor) -> Partial:
    if isinstance(predict, partial) and not isinstance(predict, Partial):
        predict = _the_same(predict.func, predict.args, tuple(sorted(predict.keywords.items())))
    return predict if isinstance(predict, Partial) else Partial(predict)


@lru_cache(maxsize=128)
def _the_same(function: Predictor, args: tuple[Any, ...], keywords: tuple[tuple[str, Any], ...]) -> Predictor:
    """One object for equal `functools.partial`s, which are not equal themselves."""
    return partial(function, *args, **dict(keywords))


class TestSetErrors(NamedTuple):
    """Half the squared errors [B] of each baseline on the test tasks, and why others are not defined."""

    errors: Mapping[str, np.ndarray]
    reasons: Mapping[str, str]


def _baselines(config: RegressionConfig, descent: GradientDescent, batch: Batch) -> TestSetErrors:
    """The errors of the baselines that every run has, computed once for all runs of a process with these test tasks.

    Those of a plugin may depend on the whole config, and a file may have gone: these are computed for each run.
    """
    if config.data.file or any(BASELINES.owner(name) for name in names_of(ALWAYS)):
        return _errors_on(config, descent, batch)
    return _errors_once(
        of_fields(config, *TEST_SET), descent._replace(step_size=float(descent.step_size)), in_float64()
    )


@lru_cache(maxsize=32)
def _errors_once(config: RegressionConfig, descent: GradientDescent, double: bool) -> TestSetErrors:
    return _errors_on(config, descent, make_test_batch(config))


def _errors_on(config: RegressionConfig, descent: GradientDescent, batch: Batch) -> TestSetErrors:
    made_of = {name: made_or_reason(name, config, descent, batch) for name in names_of(ALWAYS)}
    reasons = {name: why for name, why in made_of.items() if isinstance(why, str)}
    return TestSetErrors(half_squared_errors(defined(made_of), batch), reasons)


_context_losses = jax.jit(context_losses, static_argnums=1)


def measure_test_set(loaded: ComparedRun) -> dict[str, Any]:
    """Losses on the test tasks, with standard errors; ratios to gradient descent, and to GD++, are paired."""
    config = loaded.config
    batch = make_test_batch(config)
    baselines = _baselines(config, loaded.gd, batch)
    errors_of = {**half_squared_errors({"tf": loaded.predict}, batch), **baselines.errors}
    ratio, ratio_error = ratio_and_error(errors_of["tf"], errors_of["gd"])
    result: dict[str, Any] = {"tasks": config.test_tasks, "loss_ratio": ratio, "loss_ratio_se": ratio_error}
    losses = {name: with_error(f"{name}_loss", mean_and_error(errors)) for name, errors in errors_of.items()}
    losses |= {name: not_defined(f"{name}_loss", why) for name, why in baselines.reasons.items()}
    ratios, plus_plus = _ratio_to_gd_plus_plus(loaded, batch, errors_of["tf"])
    result |= ratios | losses["tf"] | losses["gd"] | plus_plus
    for numbers in losses.values():
        result |= numbers
    for name in config.baselines:
        result |= _ratio_to_named(loaded, name, batch, errors_of["tf"])
    if loaded.gd.steps == 1 and config.eval.noise_mode == "clean" and config.data.num_distractors == 0:
        result |= averaged_loss(batch, config.data, loaded.gd.step_size)
    return result


def _ratio_to_gd_plus_plus(loaded: ComparedRun, batch: Batch, tf: np.ndarray) -> tuple[dict[str, Any], dict[str, Any]]:
    """The ratio to GD++ and its loss, in its own program to keep the others bitwise; null with a reason if undefined.

    Nothing where it is not fitted.
    """
    ratio, loss = "gd_plus_plus_ratio", "gd_plus_plus_loss"
    try:
        plus_plus = fitted_gd_plus_plus_of(loaded)
    except ConfigError as reason:
        return not_defined(ratio, reason), not_defined(loss, reason)
    if plus_plus is None:
        return {}, {}
    errors = half_squared_errors({"gd_plus_plus": plus_plus}, batch)["gd_plus_plus"]
    return with_error(ratio, ratio_and_error(tf, errors)), with_error(loss, mean_and_error(errors))


def _ratio_to_named(loaded: ComparedRun, name: str, batch: Batch, tf: np.ndarray) -> dict[str, Any]:
    """The loss of a baseline that the config names, and the ratio to it, in its own program; null if undefined."""
    predict = made(name, loaded.config, loaded.gd)
    ratio, loss = f"{name}_ratio", f"{name}_loss"
    try:
        errors = half_squared_errors({name: predict}, batch)[name]
    except ConfigError as reason:
        return not_defined(ratio, reason) | not_defined(loss, reason)
    return with_error(ratio, ratio_and_error(tf, errors)) | with_error(loss, mean_and_error(errors))


def averaged_loss(batch: Batch, data: DataConfig, step_size: float | Array) -> dict[str, Any]:
    """One step's loss on clean contexts, teachers and queries averaged in closed form; null, and why, without one."""
    name = "gd_loss_averaged"
    try:
        losses = np.asarray(_context_losses(batch, data, step_size), np.float64)
    except ConfigError as reason:
        return not_defined(name, reason)
    return with_error(name, mean_and_error(losses))
