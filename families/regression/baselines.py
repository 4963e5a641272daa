"""What a run of linear regression is compared with; `src.registries.BASELINES` says of each what it knows.

A function makes a baseline from the run's config and its gradient descent (`find_gd`), which says how many steps there
are; `ConfigError` says why it is not defined there. Algorithms take as many steps as the model has layers; what is
tuned is tuned on separate clean tasks. Solvers on an interval are given the smallest and the largest eigenvalue of
each context, which makes them the strongest of their kind. S = sum_i x_i x_i^T.

Baselines of corrupted contexts see the pairs, and none sees which were hit. On clean contexts `gd_clean_step` and
`gd_tuned_step` are gradient descent, `linear_mmse` and `mask_bayes` ridge: least squares without observation noise.
`gd_positions` and `gd_positions_trained` take one step, whatever the model; in random order it is gradient descent's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.tree_util import Partial
from jax.typing import ArrayLike

from icl_lab.baselines import gradient_descent, iterations, registry
from icl_lab.baselines import linear_mmse as linear
from icl_lab.baselines import mask_bayes as masks
from icl_lab.baselines.iterations import Interval, Normal, eigenvalue_interval, normal_equations
from icl_lab.baselines.loss_curves import MOST_SQUARINGS
from icl_lab.baselines.position_weighted import best_step_sizes as best_by_position
from icl_lab.baselines.position_weighted import position_weighted_gd, regress
from icl_lab.baselines.step_size_search import search_step_size
from icl_lab.baselines.step_sizes import best_step_sizes, guarded, spectrum_of
from icl_lab.families.regression.config import RegressionConfig, gd_steps
from icl_lab.families.regression.task import (
    GradientDescent,
    corrupted_step_size_batch,
    find_gd,
    position_steps_batch,
    step_size_batch,
)
from icl_lab.src.batch import Batch
from icl_lab.src.checks import ConfigError, require
from icl_lab.src.config import ContextConfig
from icl_lab.src.registries import BASELINES, NAMED, REGRESSION
from icl_lab.src.units import Units, predictor_in_units, standardised, units_of

Predictor = Callable[[Batch], ArrayLike]

NO_GD_PLUS_PLUS = "GD++ is a baseline only for several linear layers on concatenated tokens"
UNTIED = "these layers have untied weights: gd_plus_plus has rates for each step"

# --- of every run ---


def gd(config: RegressionConfig, descent: GradientDescent) -> Partial:
    """Gradient descent as the run has it."""
    return descent.predict


@lru_cache(maxsize=64)
def _ridge(penalty: float) -> Partial:
    return Partial(partial(linear.ridge, penalty=penalty))


def ridge(config: RegressionConfig, descent: GradientDescent) -> Partial:
    """Ridge regression, Bayes on clean contexts: the end of all iterations."""
    return _ridge(linear.bayes_penalty(config.data))


def zero(config: RegressionConfig, descent: GradientDescent) -> Partial:
    """Predicts zero."""
    return Partial(gradient_descent.zero)


# --- algorithms, as many steps as layers ---


def gd_own_steps(config: RegressionConfig, descent: GradientDescent) -> Partial:
    """Gradient descent with the best step size for each step: no polynomial of that degree in S is better."""
    require(descent.steps > 1, "with one step this baseline is the same as gd")
    return Partial(_with_step_sizes, step_sizes_of(config, descent.steps))


@lru_cache(maxsize=256)
def step_sizes_of(config: RegressionConfig, steps: int) -> np.ndarray:
    """The step sizes [K] of least expected loss on the clean contexts on which a run's step size is searched.

    `ConfigError` unless queries and tasks are isotropic, of which the expected loss is.
    """
    config.data.check_isotropic_loss()
    spectrum = guarded(spectrum_of(np.asarray(step_size_batch(config).x)))
    return best_step_sizes(spectrum, steps, linear.bayes_penalty(config.data))


def _with_step_sizes(step_sizes: Array, batch: Batch) -> Array:
    return _predictions(iterations.descent_with_step_sizes(normal_equations(batch), step_sizes), batch)


def gd_plus_plus(config: RegressionConfig, descent: GradientDescent) -> Partial:
    """GD++ with the best rates, which all steps share where the layers share their weights."""
    return _gd_plus_plus(config, descent, config.model.recurrent)


def gd_plus_plus_own_rates(config: RegressionConfig, descent: GradientDescent) -> Partial:
    """GD++ with the best rates for each step, of layers that share their weights: no GD++ is better."""
    _require_gd_plus_plus(config, descent)
    require(config.model.recurrent, UNTIED)
    return _gd_plus_plus(config, descent, False)


def _gd_plus_plus(config: RegressionConfig, descent: GradientDescent, shared: bool) -> Partial:
    _require_gd_plus_plus(config, descent)
    from icl_lab.baselines.gd_plus_plus import fitted_gd_plus_plus  # brings SciPy, which most runs do without

    return fitted_gd_plus_plus(config.data, descent.steps, shared, config.data_seed)


def gd_plus_plus_paper(config: RegressionConfig, descent: GradientDescent) -> Partial:
    """The paper's GD++, of rates that all steps share and a short training finds, also of layers with untied weights.

    The paper has rates for each layer there. What a short training finds of those depends on where it starts.
    """
    _require_gd_plus_plus(config, descent)
    from icl_lab.baselines.gd_plus_plus import trained_gd_plus_plus

    return trained_gd_plus_plus(config.data, descent.steps, config.data_seed)


def _require_gd_plus_plus(config: RegressionConfig, descent: GradientDescent) -> None:
    require(descent.steps > 1 and config.model.tokens == "concatenated", NO_GD_PLUS_PLUS)


def conjugate_gradients(config: RegressionConfig, descent: GradientDescent) -> Partial:
    """Conjugate gradients, which adapt to each context: no fixed polynomial."""
    return _solver(iterations.conjugate_gradients, min(descent.steps, config.data.dim))


def momentum(config: RegressionConfig, descent: GradientDescent) -> Partial:
    """The heavy ball with the best rates on the interval of a context's own eigenvalues."""
    return _on_interval(iterations.momentum, descent.steps)


def chebyshev(config: RegressionConfig, descent: GradientDescent) -> Partial:
    """The Chebyshev semi-iteration on that interval."""
    return _on_interval(iterations.chebyshev, descent.steps)


def newton_schulz(config: RegressionConfig, descent: GradientDescent) -> Partial:
    """Newton-Schulz, which squares its error in every step, from a multiple of S."""
    return _solver(iterations.newton_schulz, min(descent.steps, MOST_SQUARINGS))


def newton_schulz_identity(config: RegressionConfig, descent: GradientDescent) -> Partial:
    """The same from a multiple of I, on that interval."""
    return _on_interval(iterations.newton_schulz_identity, min(descent.steps, MOST_SQUARINGS))


# One object for all runs, and so one program: a `functools.partial` is equal to itself alone.
@lru_cache(maxsize=64)
def _solver(solver: Callable[[Normal, int], Array], most: int) -> Partial:
    return Partial(partial(_solved, solver, most))


def _solved(solver: Callable[[Normal, int], Array], steps: int, batch: Batch) -> Array:
    return _predictions(solver(normal_equations(batch), steps), batch)


@lru_cache(maxsize=64)
def _on_interval(solver: Callable[[Normal, int, Interval], Array], most: int) -> Partial:
    return Partial(partial(_solved_on_interval, solver, most))


def _solved_on_interval(solver: Callable[[Normal, int, Interval], Array], steps: int, batch: Batch) -> Array:
    normal = normal_equations(batch)
    return _predictions(solver(normal, steps, eigenvalue_interval(normal)), batch)


def _predictions(path: Array, batch: Batch) -> Array:
    return jnp.einsum("bd,bd->b", path[-1], batch.x_query)


# --- of corrupted or ordered contexts ---

# One program for all batches of a shape, whatever the step size.
_gd = jax.jit(gradient_descent.gd, static_argnames="steps")
_linear_mmse = jax.jit(linear.linear_mmse, static_argnames=("data", "context"))
_position_weighted_gd = jax.jit(position_weighted_gd)


def gd_clean_step(config: RegressionConfig, descent: GradientDescent) -> Predictor:
    """Gradient descent as the run has it: it knows a step size for clean tasks, and nothing of the corruption."""
    return partial(_gd, step_size=descent.step_size, steps=descent.steps)


def gd_tuned_step(config: RegressionConfig, descent: GradientDescent) -> Predictor:
    """Gradient descent that knows the best step size for this corruption, found on separate tasks: `tuned_gd`."""
    return gd_clean_step(config, tuned_gd(config))


def tuned_gd(config: RegressionConfig) -> GradientDescent:
    """Gradient descent at the step size that is best on separate tasks with the evaluation's corruption.

    As many steps as `find_gd` takes. Where nothing is corrupted the two are the same.
    """
    if config.eval.hit_rate == 0:
        return find_gd(config)
    steps, context, units = gd_steps(config.model), config.eval, units_of(config.data)
    batch = standardised(corrupted_step_size_batch(config), units)
    count, of = len(batch.y_query), "training contexts" if config.data.file else "separate tasks"
    source = f"line search on {count} {of} with {context.noise_mode}, p = {context.noise_p:g}"
    return GradientDescent(steps, search_step_size(batch, steps), source, units)


def linear_mmse(config: RegressionConfig, descent: GradientDescent) -> Predictor:
    """The best predictor that is linear in the labels; it knows p, sigma and the tasks' distribution: `linear_mmse`."""
    return partial(_linear_mmse, data=config.data, context=config.eval)


def mask_bayes(config: RegressionConfig, descent: GradientDescent) -> Predictor:
    """The best predictor that does not know which pairs were hit; it knows what `linear_mmse` does: `mask_bayes`."""
    return partial(masks.mask_bayes, data=config.data, context=config.eval)


def gd_positions(config: RegressionConfig, descent: GradientDescent) -> Predictor:
    """One step with a step size for each position; it knows the evaluation's order, noise and placement."""
    return partial(_position_weighted_gd, step_sizes=position_steps(config, config.eval))


def gd_positions_trained(config: RegressionConfig, descent: GradientDescent) -> Predictor:
    """One step with a step size for each position; it knows order, noise and placement of the training contexts."""
    return partial(_position_weighted_gd, step_sizes=position_steps(config, config.train))


def position_steps(config: RegressionConfig, context: ContextConfig) -> np.ndarray:
    """The step size of each position [N] that is best on separate tasks with a context's order, noise and placement."""
    return _position_steps(replace(config, train=ContextConfig(), eval=ContextConfig()), context)


@lru_cache(maxsize=64)  # where training and evaluation have the same contexts they are fitted once
def _position_steps(config: RegressionConfig, context: ContextConfig) -> np.ndarray:
    """Contexts of a file are fitted to their labels, which need not be those of any w."""
    batch = standardised(position_steps_batch(config, context), units_of(config.data))
    return (regress(batch, batch.y_query) if config.data.file else best_by_position(batch)).step_sizes


# --- all ---


def names_of(*compared: str) -> tuple[str, ...]:
    """The baselines that runs of regression are compared with, of these kinds (`src.registries`)."""
    return tuple(
        name for name, baseline in BASELINES.items() if REGRESSION in baseline.where and baseline.compared in compared
    )


SIZED = ("gd", "gd_clean_step")  # baselines that take the step size of a run's gradient descent
fitted_gd = lru_cache(maxsize=8)(find_gd)


def descent_for(name: str, config: RegressionConfig) -> GradientDescent:
    """The gradient descent that a baseline is made with; a step size is fitted where that takes it."""
    return fitted_gd(config) if name in SIZED else GradientDescent(gd_steps(config.model), 0.0, "none")


def made(name: str, config: RegressionConfig, descent: GradientDescent) -> Any:
    """A baseline as a predictor, batch in and predictions [B] out; `ConfigError` says why it is not defined.

    If the data are standardised, those of this module see standardised pairs, as the model does.
    """
    if BASELINES[name].compared == NAMED:
        return Partial(partial(registry.function(name), config=config))
    predict, units = registry.function(name, REGRESSION)(config, descent), units_of(config.data)
    return predict if units is None or name == "gd" else Partial(_predicted_in_units(units), predict)


@lru_cache(maxsize=64)
def _predicted_in_units(units: Units) -> Callable[..., Array]:
    return predictor_in_units(lambda predict, batch: jnp.asarray(predict(batch)), units)


def made_or_reason(name: str, config: RegressionConfig, descent: GradientDescent, batch: Batch) -> Partial | str:
    """A baseline as a predictor on batches of this one's shapes, or why it is not defined."""
    try:
        predict: Partial = made(name, config, descent)
        if BASELINES[name].compared == NAMED:
            jax.eval_shape(predict, batch)  # where it is not defined it says so when it is called
        return predict
    except ConfigError as reason:
        return str(reason)


def defined(predictors: Mapping[str, Partial | str]) -> dict[str, Partial]:
    """Those that are defined."""
    return {name: predict for name, predict in predictors.items() if not isinstance(predict, str)}
