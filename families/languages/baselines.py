"""What a model of languages is compared with on the same contexts and codes, fitted on separate tasks of its training.

`src.registries.BASELINES` says what each knows. A function makes one from what is fitted; K is the number of layers.
All but `version_space` and `any_language` are functions of a batch; those know the strings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.tree_util import Partial
from scipy.optimize import minimize

from icl_lab.baselines import classifiers, gradient_descent, least_squares, registry
from icl_lab.baselines.classifiers import Prior, discriminant, logistic_regression, posterior_mean, prior_of
from icl_lab.baselines.gd_plus_plus import LARGEST, is_minimum
from icl_lab.baselines.iterations import least_between
from icl_lab.baselines.linear_mmse import dual_ridge
from icl_lab.baselines.step_size_search import search_step_size
from icl_lab.families.languages.codes import fit, frequencies
from icl_lab.families.languages.config import LanguagesConfig
from icl_lab.families.languages.contexts import Drawn, coded, draw
from icl_lab.families.languages.data import CodeConfig, LanguageData
from icl_lab.families.languages.named import Language, members
from icl_lab.families.languages.outputs import IN_WORDS
from icl_lab.families.languages.pools import Pool, pools_of
from icl_lab.lab.configs.identity import array_hash
from icl_lab.src.batch import Batch
from icl_lab.src.prng import Purpose
from icl_lab.src.prng import key as make_key
from icl_lab.src.registries import BASELINES, LANGUAGES

CHUNK, LEAST_TASKS, TASKS_A_WEIGHT = 4096, 65_536, 40  # of least squares: tasks for each of its D^2 weights
TUNED = 4096  # tasks on which step sizes, rates and penalties are chosen
PENALTIES, POINTS = (1e-2, 1e4), 13  # between which penalties are searched, on a grid and then inside it
STARTS = 4  # of GD++'s rates
OF_SEVERAL = ("gd_own_steps", "gd_plus_plus")  # steps
OF_STRINGS = tuple(name for name in IN_WORDS if LANGUAGES not in BASELINES[name].where)


class FittedBaselines(NamedTuple):
    """Predictors by name, batch in, predictions [B] out, and what was fitted.

    step_size: of gradient descent; layer [D, D]: A of `optimum`.
    """

    predictors: Mapping[str, Partial]
    step_size: float
    layer: np.ndarray


_KEPT: dict[tuple[Any, ...], FittedBaselines] = {}
MOST_KEPT = 16


def fitted_baselines(config: LanguagesConfig, codes: np.ndarray) -> FittedBaselines:
    """The baselines of a config, whose training strings have these codes [S, D]: one fit for equal arguments."""
    asked = (config.data, config.code, config.model.num_layers, array_hash(codes))
    if asked not in _KEPT:
        while len(_KEPT) >= MOST_KEPT:
            _KEPT.pop(next(iter(_KEPT)))
        _KEPT[asked] = _fitted(config.data, config.code, config.model.num_layers, codes)
    return _KEPT[asked]


def _fitted(data: LanguageData, code: CodeConfig, steps: int, codes: np.ndarray) -> FittedBaselines:
    fits = Fits(data, code, steps, codes)
    predictors = {
        name: Partial(_on, fits.seen, registry.function(name, LANGUAGES)(fits))
        for name in IN_WORDS
        if LANGUAGES in BASELINES[name].where and (steps > 1 or name not in OF_SEVERAL)
    }
    return FittedBaselines(predictors, fits.step_size, fits.theta.reshape(fits.dim, fits.dim))


class Fits:
    """What baselines are fitted on, and what they share of it: tasks of the training pool of a config."""

    def __init__(self, data: LanguageData, code: CodeConfig, steps: int, codes: np.ndarray):
        self.steps, pool = steps, pools_of(data).train
        self.seen = Partial(_as_they_are)
        if code.kind == "learned":  # a model's features are its own; baselines see the main directions of the symbols
            affine = fit(codes, frequencies(pool), code.dim, "whitened", "one-hot symbols")
            self.seen = Partial(_projected, *(jnp.asarray(part, jnp.float32) for part in affine))
            codes = affine(codes)
        self.dim, self.tasks = codes.shape[1], Tasks(data, pool, codes)
        self.tuning = self.tasks.draw(Purpose.STEP_SIZE, TUNED)

    @cached_property
    def step_size(self) -> float:
        """Of gradient descent."""
        return search_step_size(self.tuning, self.steps)

    @cached_property
    def moments(self) -> least_squares.Moments:
        """Of `layer_and_query_features`."""
        count = max(LEAST_TASKS, TASKS_A_WEIGHT * self.dim**2)
        return least_squares.moments(least_squares.layer_and_query_features, self.tasks.chunks(count))

    @cached_property
    def theta(self) -> np.ndarray:
        """Of `optimum`."""
        return least_squares.solve(self.moments, slice(self.dim**2))

    def best(self, features: least_squares.Features, columns: slice) -> Partial:
        """The best predictor linear in these features, which are these columns of the moments."""
        return least_squares.predictor(features, least_squares.solve(self.moments, columns))


def gd(fits: Fits) -> Partial:
    """K steps of gradient descent with one step size."""
    return Partial(_gd_of(fits.steps), jnp.float32(fits.step_size))


def gd_own_steps(fits: Fits) -> Partial:
    """The same with a step size for each, K > 1."""
    krylov = least_squares.krylov(fits.steps)
    moments = least_squares.moments(krylov, fits.tasks.chunks(LEAST_TASKS))
    return least_squares.predictor(krylov, least_squares.solve(moments))


def gd_plus_plus(fits: Fits) -> Partial:
    """GD++ with rates for each step, K > 1."""
    return _fitted_gd_plus_plus(fits.tuning, fits.steps)


def ridge(fits: Fits) -> Partial:
    """Ridge regression, its penalty fitted."""
    return _tuned(Partial(_ridge), fits.tuning)


def discriminants(fits: Fits) -> Partial:
    """The same with the training languages' discriminants as prior."""
    return _tuned(Partial(_informed, _prior(fits.tasks.pool, fits.tasks.codes)), fits.tuning)


def optimum(fits: Fits) -> Partial:
    """The best s^T A x_q, the exact optimum of one linear layer."""
    return least_squares.predictor(least_squares.one_layer_features, fits.theta)


def optimum_biased(fits: Fits) -> Partial:
    """The same with a b^T x_q besides."""
    return fits.best(least_squares.biased_layer_features, slice(fits.dim**2 + fits.dim))


def logit(fits: Fits) -> Partial:
    """Logistic regression, its penalty fitted."""
    return _tuned(Partial(_logistic), fits.tuning)


def nearest(fits: Fits) -> Partial:
    """The nearest neighbour's label."""
    return Partial(classifiers.nearest_neighbour)


def majority(fits: Fits) -> Partial:
    """The mean label."""
    return Partial(classifiers.majority)


def no_context(fits: Fits) -> Partial:
    """The best linear predictor of the query alone."""
    return fits.best(least_squares.query_features, slice(fits.dim**2, None))


class Tasks(NamedTuple):
    """Tasks of a training pool on which baselines are fitted: by the pool's seed, so that runs on it share the fit."""

    data: LanguageData
    pool: Pool
    codes: np.ndarray

    def draw(self, purpose: Purpose, count: int, part: int = 0) -> Batch:
        """So many tasks for a purpose; parts are different ones."""
        draws, seed, data = (self.pool.positives, self.pool.negatives), np.uint32(self.data.pool_seed), self.data
        place = np.array([purpose, part], np.uint32)
        batch: Batch = _drawn(seed, place, draws, self.codes, count, data.num_pairs, data.positive_share)
        return batch

    def chunks(self, count: int) -> Iterator[Batch]:
        """At least so many, a part at a time."""
        for part in range(-(-count // CHUNK)):
            yield self.draw(Purpose.IDEALISED, CHUNK, part)


@partial(jax.jit, static_argnums=(4, 5, 6))
def _drawn(
    seed: Array, place: Array, draws: tuple[Array, Array], codes: Array, size: int, pairs: int, share: float
) -> Batch:
    key = jax.random.fold_in(jax.random.fold_in(make_key(seed), place[0]), place[1])
    return coded(draw(key, *draws, size, pairs, share), codes)


def _prior(pool: Pool, codes: np.ndarray) -> Prior:
    """The prior of the training languages' discriminants, each of all of its draws."""
    wide = codes.astype(np.float64)
    size = pool.positives.shape[1]
    y = np.concatenate([np.ones(size), -np.ones(size)])
    draws = zip(pool.positives, pool.negatives, strict=True)
    return prior_of(np.stack([discriminant(wide[np.concatenate(both)], y) for both in draws]))


# --- predictors whose fitted numbers are arguments of a jit ---


def _as_they_are(batch: Batch) -> Batch:
    return batch


def _projected(centre: Array, directions: Array, batch: Batch) -> Batch:
    def project(x: Array) -> Array:
        moved = x - jnp.broadcast_to(centre, x.shape)
        return moved @ directions

    return batch._replace(x=project(batch.x), x_query=project(batch.x_query))


def _on(seen: Partial, predict: Partial, batch: Batch) -> Array:
    predictions: Array = predict(seen(batch))
    return predictions


@lru_cache(maxsize=64)  # always the same functions, so that programs which call them are compiled once
def _gd_of(steps: int) -> Callable[[Array, Batch], Array]:
    return partial(_gd, steps)


@lru_cache(maxsize=64)
def _gd_plus_plus_of(steps: int) -> Callable[[Array, Array, Batch], Array]:
    return partial(_gd_plus_plus, steps)


def _gd(steps: int, step_size: Array, batch: Batch) -> Array:
    return gradient_descent.gd(batch, step_size, steps)


def _gd_plus_plus(steps: int, step_sizes: Array, gammas: Array, batch: Batch) -> Array:
    return gradient_descent.gd_plus_plus(batch, step_sizes, gammas, steps)


def _ridge(penalty: Array, batch: Batch) -> Array:
    return dual_ridge(batch, penalty)


def _logistic(penalty: Array, batch: Batch) -> Array:
    return logistic_regression(batch, penalty)


def _informed(prior: Prior, noise: Array, batch: Batch) -> Array:
    return posterior_mean(batch, prior, noise)


# --- fits of one number or a few ---


def _tuned(predict: Partial, batch: Batch) -> Partial:
    """The predictor with the number, behind those it has, of least loss on a batch; one without a loss is not it."""

    def loss(log_penalty: float) -> float:
        value = float(_loss(Partial(predict.func, *predict.args, jnp.float32(np.exp(log_penalty))), batch))
        return value if np.isfinite(value) else np.inf

    grid = np.log(np.geomspace(*PENALTIES, POINTS))
    best = int(np.argmin([loss(point) for point in grid]))
    bounds = grid[max(best - 1, 0)], grid[min(best + 1, POINTS - 1)]
    return Partial(predict.func, *predict.args, jnp.float32(np.exp(least_between(loss, *bounds, within=1e-2))))


@jax.jit
def _loss(predict: Partial, batch: Batch) -> Array:
    return 0.5 * jnp.mean((predict(batch) - batch.y_query) ** 2)


def _fitted_gd_plus_plus(batch: Batch, steps: int) -> Partial:
    """GD++ with the step sizes and gammas of least loss on a batch, by L-BFGS from several starts.

    Rates are nan, and with them predictions, where no start leads to a minimum.

    Rates are in units of the inverse mean largest eigenvalue of the contexts, as in `baselines.gd_plus_plus`.
    """
    largest = float(np.mean(np.linalg.eigvalsh(np.einsum("bnd,bne->bde", batch.x, batch.x, dtype=np.float64))[:, -1]))

    @jax.jit
    def value_and_gradient(rates: Array) -> tuple[Array, Array]:
        def loss(rates: Array) -> Array:
            c, gammas = jnp.split(rates / largest, 2)
            return jnp.log(jnp.mean((gradient_descent.gd_plus_plus(batch, c, gammas, steps) - batch.y_query) ** 2))

        value, gradient = jax.value_and_grad(loss)(rates)
        return value, gradient

    def objective(rates: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = value_and_gradient(jnp.asarray(rates, jnp.float32))
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            return LARGEST, np.zeros_like(rates)
        return float(value), np.asarray(gradient, np.float64)

    rng = np.random.default_rng(0)
    starts = [np.concatenate([rng.uniform(0.3, 2, steps), rng.uniform(0, 0.5, steps)]) for _ in range(STARTS)]
    minima = [minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": 200}) for start in starts]
    fits = [fit for fit in minima if is_minimum(fit)]
    best = min(fits, key=lambda fit: float(fit.fun)).x / largest if fits else np.full(2 * steps, np.nan)
    c, gammas = (jnp.asarray(part, jnp.float32) for part in np.split(best, 2))
    return Partial(_gd_plus_plus_of(steps), c, gammas)


# --- predictors that know the strings ---


def of_strings(languages: list[Language], pool: Pool, drawn: Drawn) -> dict[str, np.ndarray]:
    """Predictions [B] of those that know the training languages, on tasks drawn from a pool."""
    belongs, strings = members(languages, pool.strings), np.asarray(drawn.strings)
    labels = np.asarray(drawn.labels)[:, :-1]
    return {name: registry.function(name)(belongs, strings, labels) for name in OF_STRINGS}
