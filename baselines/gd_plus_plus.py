"""GD++ with rates that are fitted, best or trained: two numbers for all steps or two for each.

What is learned are the diagonals of the construction's P and V (App. A.10 of von Oswald et al. 2023), with its keys and
queries frozen. Teachers and queries are averaged in closed form, so that the objective depends on the spectrum of
the contexts alone.

`fit_gd_plus_plus` fits to convergence: the best polynomial of GD++'s form, fitted on some contexts and chosen on
others. `train_gd_plus_plus` is the paper's GD++, whose rates a short training finds; at depth these have not converged.
The two agree for two steps. At ten the best step size is near 5.4 and the trained one is near 3.0, and the losses are
.031 and .039 (D = N = 10): training would go on, as the best first steps overshoot most directions.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array
from jax.tree_util import Partial
from scipy.optimize import OptimizeResult, minimize

from icl_lab.baselines.gradient_descent import gd_plus_plus
from icl_lab.baselines.step_sizes import eigenvalues
from icl_lab.src.batch import Batch
from icl_lab.src.checks import require
from icl_lab.src.data import sample_batch
from icl_lab.src.data_config import LinearData
from icl_lab.src.one_step import one_step_size

STARTS = 12  # random rates that learning starts from, in addition to the shared ones
TRIED, LEARNED, HELD_OUT = 1024, 8192, 65_536  # contexts: for the starts, for the best of them, to choose among these
KEPT = 3  # of the starts
TRIES, MOST, FLAT = 300, 10_000, 1e-2  # iterations from a start, and of the fit; of the slope at its end
CHUNK = 4096  # contexts whose spectra are computed together
BEYOND, WEIGHT = 1.3, 1e-4  # grid end over the largest eigenvalue, and the weight of the loss on that grid
LARGEST = 1e3  # the logarithm of a loss that is not finite


class Rates(NamedTuple):
    """The step sizes and gammas [K] of GD++."""

    step_sizes: Array
    gammas: Array


def expected_losses(rates: Rates, spectra: Array, data: LinearData) -> Array:
    """Half the squared error [B] of GD++, averaged over teachers, label noise and queries, from spectra [B, D].

    In the direction of an eigenvalue l of X'X what is left of the teacher is r <- (1 - c_k l) r, and the inputs' step
    makes l <- l (1 - gamma_k l)^2. The loss is v/2 sum_d (s^2 r^2 + sigma^2 l a^2) with v the variance of an input, s
    the teacher's scale, and a the weight that labels have in the prediction, (1 - r)/l for the first l.
    """
    left, shrunk, weight = jnp.ones_like(spectra), jnp.ones_like(spectra), jnp.zeros_like(spectra)
    for c, gamma in zip(*rates, strict=True):
        now = spectra * shrunk**2
        weight += c * left * shrunk**2
        left *= 1 - c * now
        shrunk *= 1 - gamma * now
    errors = data.task_variance * left**2 + data.noise_std**2 * spectra * weight**2
    return 0.5 * data.query_variance * jnp.sum(errors, axis=-1)


@lru_cache(maxsize=128)
def fit_gd_plus_plus(data: LinearData, steps: int, shared: bool, seed: int, starts: int = STARTS) -> Rates:
    """Rates of `steps` steps of GD++ with the least expected loss, by L-BFGS from several starts.

    Distractor labels are not averaged over. The last gamma does not affect the prediction, and is 0 where steps have
    rates of their own. Deterministic in its arguments. `ConfigError` where no start leads to a minimum.
    """
    keys = jax.random.split(jax.random.key(seed), 3)
    with jax.enable_x64(True):
        few, many, others = (
            jnp.asarray(sampled_spectra(key, data, count))
            for key, count in zip(keys, (TRIED, LEARNED, HELD_OUT), strict=True)
        )
        tied = 1 if shared or steps == 1 else steps
        objective = _objective(data, steps)
        candidates = [_learned(objective, few, start, TRIES).x for start in _starts(few, tied, seed, starts)]
        if tied > 1:
            tied_rates = np.repeat(_both(fit_gd_plus_plus(data, steps, True, seed)), steps)
            candidates.append(_learned(objective, few, tied_rates, TRIES).x)
        best = sorted(candidates, key=lambda rates: float(objective(rates, few)[0]))[:KEPT]
        polished = [fit.x for fit in (_learned(objective, many, rates, MOST) for rates in best) if is_minimum(fit)]
        require(len(polished) > 0, f"the rates of GD++ have not converged after {MOST} iterations of L-BFGS")
        chosen = min(polished, key=lambda rates: float(objective(rates, others)[0]))
    c, gammas = (np.broadcast_to(part, steps).astype(np.float32) for part in np.split(chosen, 2))
    return Rates(jnp.array(c), jnp.array(gammas if tied < steps else [*gammas[:-1], 0.0], jnp.float32))


Objective = Callable[[Any, Array], tuple[Array, Array]]


@lru_cache(maxsize=32)  # one program for all seeds
def _objective(data: LinearData, steps: int) -> Objective:
    """The logarithm of the mean loss of rates [2 T] on spectra, and its gradient; T is 1 if shared, or the steps.

    Rates that fit the contexts at hand may explode on one in a million. So a small share of the loss is taken on an
    even grid of eigenvalues, to some way past the largest one.
    """

    def loss(rates: Array, spectra: Array) -> Array:
        learned = Rates(*(jnp.broadcast_to(part, (steps,)) for part in jnp.split(rates, 2)))
        grid = jnp.linspace(0, BEYOND * jnp.max(spectra), 512)[:, None]
        on_grid = spectra.shape[1] * jnp.mean(expected_losses(learned, grid, data))
        return jnp.log((1 - WEIGHT) * jnp.mean(expected_losses(learned, spectra, data)) + WEIGHT * on_grid)

    return jax.jit(jax.value_and_grad(loss))


def is_minimum(fit: OptimizeResult) -> bool:
    """Whether L-BFGS on the logarithm of a loss ended at a minimum: by its own criteria, or by the slope there.

    There the loss changes by at most a hundredth of what a rate does, both relative: as far as rounding lets a line
    search go. A loss that is not finite (`LARGEST`) has no minimum.
    """
    flat = fit.success or np.max(np.abs(fit.jac * fit.x)) <= FLAT
    return bool(fit.fun < LARGEST and flat)


def _learned(objective: Objective, spectra: Array, start: np.ndarray, most: int) -> OptimizeResult:
    """Descent from a start, at most so many iterations."""

    def value_and_gradient(rates: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = objective(rates, spectra)
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            return LARGEST, np.zeros_like(rates)
        return float(value), np.asarray(gradient, np.float64)

    return minimize(value_and_gradient, start, jac=True, method="L-BFGS-B", options={"maxiter": most})


def _starts(spectra: Array, tied: int, seed: int, count: int) -> list[np.ndarray]:
    """Random rates: step sizes of .5 to 4 and gammas of up to .65 over the mean largest eigenvalue."""
    rng, largest = np.random.default_rng(seed), float(jnp.mean(jnp.max(spectra, axis=1)))
    draw: Callable[..., np.ndarray] = rng.uniform
    return [np.concatenate([draw(0.5, 4, tied), draw(0, 0.65, tied)]) / largest for _ in range(count)]


def _both(rates: Rates) -> np.ndarray:
    return np.array([rates.step_sizes[0], rates.gammas[0]], np.float64)


_sample = partial(jax.jit, static_argnums=(1, 2))(sample_batch)


def sampled_spectra(key: Array, data: LinearData, count: int) -> np.ndarray:
    """The eigenvalues [count, D] of sampled contexts, of which a part is in memory at a time."""
    sizes = [min(CHUNK, count - start) for start in range(0, count, CHUNK)]
    keys = jax.random.split(key, len(sizes))
    parts = (_sample(part, data, size).x for part, size in zip(keys, sizes, strict=True))
    return np.concatenate([eigenvalues(np.asarray(x, np.float64)) for x in parts])


def fitted_gd_plus_plus(data: LinearData, steps: int, shared: bool, seed: int) -> Partial:
    """GD++ with the best rates as a predictor: batch in, predictions [B] out."""
    return gd_plus_plus_of(fit_gd_plus_plus(data, steps, shared, seed))


def gd_plus_plus_of(rates: Rates) -> Partial:
    """GD++ of these rates as a predictor."""
    return Partial(_predictions, rates)


def _predictions(rates: Rates, batch: Batch) -> Array:
    return gd_plus_plus(batch, rates.step_sizes, rates.gammas, len(rates.gammas))


def gd_plus_plus_losses(rates: Rates, data: LinearData, seed: int, tasks: int) -> np.ndarray:
    """The expected losses [tasks] of GD++ with these rates on fresh contexts."""
    with jax.enable_x64(True):
        spectra = jnp.asarray(sampled_spectra(jax.random.key(seed), data, tasks))
        return np.asarray(expected_losses(rates, spectra, data))


TRAINING_STEPS, LEARNING_RATE, BATCH = 1000, 1e-3, 512
POOL, FOR_START = 65_536, 8192  # contexts: from which batches are drawn, and for the start
GRID = np.linspace(0.02, 6.6, 330)  # of the start, in units of the best step size of one step


@lru_cache(maxsize=128)
def train_gd_plus_plus(data: LinearData, steps: int, seed: int) -> Rates:
    """Rates that all steps share after 1000 steps of Adam, from the shared optimum; von Oswald et al. 2023, App. A.10.

    The start is the best c of GD++ with gamma = c / N: one learning rate for labels and inputs. Teachers, label noise
    and queries are averaged in closed form. Deterministic in its arguments.

    For rates that all steps share alone: with rates of their own, what 30 000 steps find depends on the start (losses
    of .024 to .042 at five steps, where the best is below .0175).
    """
    pool_key, step_key = jax.random.split(jax.random.key(seed), 5)[3:]  # the first three are `fit_gd_plus_plus`'s
    with jax.enable_x64(True):
        pool = jnp.asarray(sampled_spectra(pool_key, data, POOL))
        start = shared_optimum(pool[:FOR_START], data, steps)
        rates = _trained(data, steps, jnp.array([start, start / data.num_pairs]), pool, step_key)
        c, gammas = (np.full(steps, rate, np.float32) for rate in np.asarray(rates))
    return Rates(jnp.array(c), jnp.array(gammas))


def shared_optimum(spectra: Array, data: LinearData, steps: int) -> float:
    """The c of least expected loss on spectra [B, D] among GD++ of gamma = c / N, on a grid."""
    grid = GRID * one_step_size(data)
    tried = jnp.asarray(np.stack([grid, grid / data.num_pairs], axis=1))
    losses = _losses(tried, spectra, data, steps)
    return float(grid[np.argmin(np.nan_to_num(np.asarray(losses), nan=np.inf))])


# One program for all seeds.
@partial(jax.jit, static_argnames=("data", "steps"))
def _losses(tried: Array, spectra: Array, data: LinearData, steps: int) -> Array:
    """The expected losses [T] of rates [T, 2]."""
    losses: Array = jax.lax.map(lambda rates: _loss(rates, spectra, data, steps), tried)
    return losses


def _loss(rates: Array, spectra: Array, data: LinearData, steps: int) -> Array:
    """The expected loss of GD++ with c, gamma = rates [2] in every step."""
    return jnp.mean(expected_losses(Rates(*(jnp.broadcast_to(rate, (steps,)) for rate in rates)), spectra, data))


@partial(jax.jit, static_argnames=("data", "steps"))
def _trained(data: LinearData, steps: int, start: Array, pool: Array, key: Array) -> Array:
    """The rates [2] that Adam ends at, on batches of the pool's spectra."""
    optimizer = optax.adam(LEARNING_RATE)

    def step(state: tuple[Array, optax.OptState], key: Array) -> tuple[tuple[Array, optax.OptState], None]:
        rates, moments = state
        batch = pool[jax.random.randint(key, (BATCH,), 0, len(pool))]
        update, moments = optimizer.update(jax.grad(_loss)(rates, batch, data, steps), moments)
        return (optax.apply_updates(rates, update), moments), None

    keys = jax.random.split(key, TRAINING_STEPS)
    (rates, _), _ = jax.lax.scan(step, (start, optimizer.init(start)), keys)
    return rates


def trained_gd_plus_plus(data: LinearData, steps: int, seed: int) -> Partial:
    """The paper's GD++ as a predictor: batch in, predictions [B] out."""
    return gd_plus_plus_of(train_gd_plus_plus(data, steps, seed))
