"""The algorithms that a transformer is compared with, in a table: as many steps as it has layers.

    gd                   gradient descent, the best step size for all steps
    gd_own_steps         the best step size for each step: no polynomial of that degree in S is better
    gd_plus_plus_paper   GD++ with one step size and one gamma for all steps, which a short training finds: the paper's
    gd_plus_plus         GD++ with the best rates: shared by all steps where the layers share their weights
    gd_plus_plus_own_rates  the best rates for each step, where the layers share their weights: no GD++ is better
    conjugate_gradients  adapts to each context; no fixed polynomial
    momentum             the heavy ball with the best rates on the interval of a context's own eigenvalues
    chebyshev            the Chebyshev semi-iteration on that interval
    newton_schulz        squares its error in every step, from a multiple of S
    newton_schulz_identity  the same from a multiple of I, on that interval
    ridge                Bayes on clean contexts: the end of all of them
    zero                 predicts zero

What is tuned is tuned on separate clean tasks; the three on an interval are given the smallest and the largest
eigenvalue of each context, which makes them the strongest of their kind. S = sum_i x_i x_i^T.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache, partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.tree_util import Partial

from icl_lab.analysis.loaded_run import ComparedRun
from icl_lab.analysis.over_training import baselines_of
from icl_lab.analysis.paired_losses import zero
from icl_lab.baselines.gd_plus_plus import fitted_gd_plus_plus, trained_gd_plus_plus
from icl_lab.baselines.iterations import (
    Interval,
    Normal,
    chebyshev,
    conjugate_gradients,
    descent_with_own_steps,
    momentum,
    newton_schulz,
    newton_schulz_identity,
    normal_equations,
    own_interval,
)
from icl_lab.baselines.linear_mmse import bayes_penalty, ridge
from icl_lab.baselines.loss_curves import MOST_SQUARINGS
from icl_lab.baselines.opponents import OPPONENTS
from icl_lab.baselines.step_sizes import best_step_sizes, guarded, spectrum_of
from icl_lab.families.regression.config import RegressionConfig
from icl_lab.families.regression.task import step_size_batch
from icl_lab.src import registries
from icl_lab.src.batch import Batch
from icl_lab.src.checks import ConfigError, require

TF = "tf"  # the transformer's name among them
NO_GD_PLUS_PLUS = "GD++ is compared with where there are several linear layers on concatenated tokens"
OWN_RATES = "these layers have untied weights: gd_plus_plus has rates for each step"


def with_own_steps(loaded: ComparedRun) -> Partial:
    """Gradient descent with a step size for each step."""
    require(loaded.gd.steps > 1, "one step has one step size: it is gd")
    return Partial(_with_own_steps, own_step_sizes(loaded.config, loaded.gd.steps))


@lru_cache(maxsize=256)
def own_step_sizes(config: RegressionConfig, steps: int) -> np.ndarray:
    """The step sizes [K] of least expected loss on the clean contexts on which a run's step size is searched.

    `ConfigError` unless queries and tasks are isotropic, of which the expected loss is.
    """
    config.data.check_isotropic_loss()
    spectrum = guarded(spectrum_of(np.asarray(step_size_batch(config).x)))
    return best_step_sizes(spectrum, steps, bayes_penalty(config.data))


def paper_gd_plus_plus(loaded: ComparedRun) -> Partial:
    """The paper's GD++, of rates that all steps share, also where layers have untied weights.

    The paper has rates for each layer there. What a short training finds of those depends on where it starts.
    """
    config, steps = loaded.config, loaded.gd.steps
    _require_gd_plus_plus(loaded)
    return trained_gd_plus_plus(config.data, steps, config.data_seed)


def own_rates_gd_plus_plus(loaded: ComparedRun) -> Partial:
    """GD++ with the best rates for each step, of layers that share their weights."""
    config, steps = loaded.config, loaded.gd.steps
    _require_gd_plus_plus(loaded)
    require(config.model.recurrent, OWN_RATES)
    return fitted_gd_plus_plus(config.data, steps, False, config.data_seed)


def _require_gd_plus_plus(loaded: ComparedRun) -> None:
    require(loaded.gd.steps > 1 and loaded.config.model.tokens == "concatenated", NO_GD_PLUS_PLUS)


def best_gd_plus_plus(loaded: ComparedRun) -> Partial:
    """GD++ with the best rates, as `over_training.baselines_of` has it."""
    baseline = baselines_of(loaded).get("gd_plus_plus", NO_GD_PLUS_PLUS)
    if isinstance(baseline, str):
        raise ConfigError(baseline)
    return baseline


def _with_own_steps(step_sizes: Array, batch: Batch) -> Array:
    return _predictions(descent_with_own_steps(normal_equations(batch), step_sizes), batch)


def _solved(solver: Callable[[Normal, int], Array], steps: int, batch: Batch) -> Array:
    return _predictions(solver(normal_equations(batch), steps), batch)


def _predictions(path: Array, batch: Batch) -> Array:
    return jnp.einsum("bd,bd->b", path[-1], batch.x_query)


# One object for all runs, and so one program: a `functools.partial` is equal to itself alone.
@lru_cache(maxsize=64)
def _solver(solver: Callable[[Normal, int], Array], most: int) -> Partial:
    return Partial(partial(_solved, solver, most))


@lru_cache(maxsize=64)
def _on_interval(solver: Callable[[Normal, int, Interval], Array], most: int) -> Partial:
    return Partial(partial(_solved_on_interval, solver, most))


def _solved_on_interval(solver: Callable[[Normal, int, Interval], Array], steps: int, batch: Batch) -> Array:
    normal = normal_equations(batch)
    return _predictions(solver(normal, steps, own_interval(normal)), batch)


@lru_cache(maxsize=64)
def _ridge(penalty: float) -> Partial:
    return Partial(partial(ridge, penalty=penalty))


# name -> how it is made for a run; `ConfigError` says why it is not defined there
ALGORITHMS: dict[str, Callable[[ComparedRun], Partial]] = registries.OPPONENTS.reserving(
    {
        "gd": lambda loaded: loaded.gd.predict,
        "gd_own_steps": with_own_steps,
        "gd_plus_plus_paper": paper_gd_plus_plus,
        "gd_plus_plus": best_gd_plus_plus,
        "gd_plus_plus_own_rates": own_rates_gd_plus_plus,
        "conjugate_gradients": lambda loaded: _solver(
            conjugate_gradients, min(loaded.gd.steps, loaded.config.data.dim)
        ),
        "momentum": lambda loaded: _on_interval(momentum, loaded.gd.steps),
        "chebyshev": lambda loaded: _on_interval(chebyshev, loaded.gd.steps),
        "newton_schulz": lambda loaded: _solver(newton_schulz, min(loaded.gd.steps, MOST_SQUARINGS)),
        "newton_schulz_identity": lambda loaded: _on_interval(
            newton_schulz_identity, min(loaded.gd.steps, MOST_SQUARINGS)
        ),
        "ridge": lambda loaded: _ridge(bayes_penalty(loaded.config.data)),
        "zero": lambda loaded: Partial(zero),
    }
)


def algorithms_of(loaded: ComparedRun, names: Iterable[str] = ()) -> dict[str, Partial | str]:
    """The algorithms of a run as predictors, and the opponents that its config names; all if no names are given.

    An undefined one is replaced by the reason.
    """
    opponents = {name: partial(_opponent, name) for name in loaded.config.opponents}
    made = ALGORITHMS | opponents
    return {name: _or_reason(made[name], loaded) for name in names or made}


def defined(algorithms: dict[str, Partial | str]) -> dict[str, Partial]:
    """Those that are defined."""
    return {name: predict for name, predict in algorithms.items() if not isinstance(predict, str)}


def _opponent(name: str, loaded: ComparedRun) -> Partial:
    predict = Partial(partial(OPPONENTS[name], config=loaded.config))
    jax.eval_shape(predict, loaded.batch)  # where it is not defined it says so when it is called
    return predict


def _or_reason(make: Callable[[ComparedRun], Partial], loaded: ComparedRun) -> Partial | str:
    try:
        return make(loaded)
    except ConfigError as reason:
        return str(reason)
