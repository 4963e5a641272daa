"""Estimators of the LLC that are wrong and in use, each with what it gives where the right value is known.

The case is least squares with 1000 tasks and 10 parameters, of coefficient 5; for the last two, a quadratic and a loss
that is bounded as a model's is. What each of them has to give is known in closed form: h_i are the eigenvalues of the
Hessian, a_i = nbeta h_i + gamma, and V_i = 1 / (a_i (1 - eps a_i / 4)) is the variance of w along them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from icl_lab.analysis.llc import sgld
from icl_lab.analysis.llc.estimate import LEVEL
from icl_lab.analysis.llc.sampling import SourceOf
from icl_lab.analysis.llc.settings import Settings
from icl_lab.analysis.llc.validation import cases as cases
from icl_lab.analysis.llc.validation import known
from icl_lab.analysis.llc.validation.cases import Case, chain_means, estimate, hessian_eigenvalues, losses_at_centre
from icl_lab.src import intervals
from icl_lab.src.prng import Purpose, key, purpose_key

TASKS, PARAMETERS, BATCH = 1000, 10, 64
NBETA = TASKS / math.log(TASKS)
OF_THE_BATCH = BATCH / math.log(BATCH)  # nbeta with the n of the batch
CHAIN = Settings(1e-4, NBETA, 1.0, batch_size=BATCH, chains=64, burn_in=200, draws=800, thin=6)
SATURATED = Settings(1e-2, 10.0, 0.01, data="full", chains=16, burn_in=200, draws=800, thin=100)
SLOW = Settings(5e-8, 100.0, 10.0, data="full", chains=32, burn_in=200, draws=800, thin=60, sampler="rmsprop")
STEEP = np.full(3, 100.0)  # eigenvalues, whose chain relaxes in 36 times as many steps as RMSprop averages over
RADIUS = 0.1  # standard deviation of independent perturbations
FIRST_BATCH = 1  # seed of the batch
DAMPING = 0.1  # of RMSprop, as in `sgld.rmsprop`


class Wrong(NamedTuple):
    """A row: the right value, what the estimator has to give, what it gives with its 95 % t interval over chains."""

    estimator: str
    right: float
    expected: float
    estimate: float
    low: float
    high: float
    reasons: str
    why: str


class Given(NamedTuple):
    """What an estimator gives: the value it has to give, that of each chain [C], and the reasons against the chains."""

    expected: float
    means: np.ndarray
    reasons: str = "no chain"


def wrong_estimators() -> Iterator[Wrong]:
    """The right estimate, then every wrong one."""
    case = cases.regression(TASKS, PARAMETERS)
    h = hessian_eigenvalues(case)
    for name, (estimator, why) in ESTIMATORS.items():
        given = estimator(case, h)
        right = RIGHT.get(name, _exact(h))
        yield Wrong(name, right, given.expected, *intervals.of(given.means, "linear", LEVEL)[:3], given.reasons, why)


def _paired(case: Case, h: np.ndarray) -> Given:
    return _of_chains(case, _exact(h), NBETA)


def _perturbed(case: Case, h: np.ndarray) -> Given:
    """nbeta E[L(w* + sigma xi) - L(w*)] = nbeta sigma^2 sum h / 2."""
    base = losses_at_centre(case).mean()
    return Given(NBETA * RADIUS**2 * h.sum() / 2, NBETA * (_perturbed_losses(case, 0) - base).mean(axis=1))


def _both_perturbed(case: Case, h: np.ndarray) -> Given:
    return Given(0.0, NBETA * (_perturbed_losses(case, 0) - _perturbed_losses(case, 1)).mean(axis=1))


def _no_nbeta(case: Case, h: np.ndarray) -> Given:
    return _of_chains(case, _exact(h) / NBETA, 1.0)


def _inverse_square(case: Case, h: np.ndarray) -> Given:
    """1 / E[(L(w) - L(w*))^2] = 1 / ((sum h V / 2)^2 + sum (h V)^2 / 2), on all tasks."""
    pulls = NBETA * h + CHAIN.gamma
    losses = h / (pulls * (1 - CHAIN.step_size * pulls / 4))
    row, traces = estimate(case, replace(CHAIN, data="full"))
    means = 1 / (traces["excess"][:, CHAIN.burn_in :] ** 2).mean(axis=1)
    return Given(1 / ((losses.sum() / 2) ** 2 + (losses**2).sum() / 2), means, row["reasons"])


def _unpaired(case: Case, h: np.ndarray) -> Given:
    return _of_chains(case, _exact(h), NBETA, _new_baselines)


def _first_batch(case: Case, h: np.ndarray) -> Given:
    """Off by nbeta (L(w*) - L_B(w*)) of that batch, in every chain alike."""
    losses = losses_at_centre(case)
    off = NBETA * (losses.mean() - losses[_chosen(key(FIRST_BATCH), TASKS)].mean())
    return _of_chains(case, _exact(h) + off, NBETA, _one_baseline)


def _batch_as_factor(case: Case, h: np.ndarray) -> Given:
    return _of_chains(case, _exact(h) * OF_THE_BATCH / NBETA, OF_THE_BATCH)


def _saturated(case: Case, h: np.ndarray) -> Given:
    """Of the bounded loss: nbeta (L_null - L(w*))."""
    bounded = cases.well(PARAMETERS)
    row, traces = estimate(bounded, SATURATED)
    return Given(SATURATED.nbeta * bounded.null_loss, chain_means(traces, SATURATED), row["reasons"])


def _preconditioned(case: Case, h: np.ndarray) -> Given:
    """Where V is the square of the gradient at w, and not its mean, chains draw from p(w) / G, G = 1 / (|g| + damping).

    Of each direction nbeta h E[w^2 (|h w| + d)] / (2 E[|h w| + d]), w normal of precision nbeta h + gamma.
    """
    spread = 1 / np.sqrt(SLOW.nbeta * STEEP + SLOW.gamma)
    mean = math.sqrt(2 / math.pi)  # of |w| / spread; that of its cube is twice it
    weighed = (2 * mean * STEEP * spread**3 + DAMPING * spread**2) / (mean * STEEP * spread + DAMPING)
    row, traces = estimate(cases.quadratic(STEEP), SLOW)
    return Given(float(np.sum(SLOW.nbeta * STEEP * weighed / 2)), chain_means(traces, SLOW), row["reasons"])


# name -> the right value, of those that are not on least squares
RIGHT = {
    "a saturated setting": known.regular(PARAMETERS).value,
    "RMSprop, slower than its own average": known.quadratic(STEEP, SLOW.nbeta, SLOW.gamma),
}
# name -> the estimator, and what is wrong with it
ESTIMATORS: dict[str, tuple[Callable[[Case, np.ndarray], Given], str]] = {
    "a chain, paired, nbeta of the data": (_paired, "nothing"),
    "independent perturbations": (_perturbed, "a multiple of the Hessian's trace, by a radius that is chosen freely"),
    "perturbed compared with perturbed": (_both_perturbed, "both have the same mean"),
    "no nbeta": (_no_nbeta, "it is the loss that the noise adds, which falls as 1 / nbeta"),
    "1 / mean(diff^2)": (_inverse_square, "it is large where noise changes the loss little: the order is reversed"),
    "new batches each time, unpaired": (_unpaired, "right on average, with an interval twice as wide"),
    "L(w*) of one batch": (_first_batch, "all chains are off by the same, so the interval is narrow and wrong"),
    "n of the batch, not of the data": (_batch_as_factor, "the factor is not the nbeta that the chain was drawn at"),
    "RMSprop, slower than its own average": (_preconditioned, "the step sizes follow the gradient: it is not p(w)"),
    "a saturated setting": (_saturated, "it is nbeta (L_null - L(w*)), whatever the coefficient"),
}


# --- parts ---


def _of_chains(case: Case, expected: float, factor: float, source_of: SourceOf | None = None) -> Given:
    row, traces = estimate(case, CHAIN, source_of)
    return Given(expected, factor * traces["excess"][:, CHAIN.burn_in :].mean(axis=1), row["reasons"])


def _exact(h: np.ndarray) -> float:
    return known.quadratic(h, CHAIN.nbeta, CHAIN.gamma, CHAIN.step_size)


def _perturbed_losses(case: Case, seed: int) -> np.ndarray:
    """L(w* + sigma xi) [C, T] of independent xi."""
    shape = (CHAIN.chains, CHAIN.draws, len(case.centre))
    noise = np.random.default_rng(seed).standard_normal(shape, np.float32)
    mean = jax.vmap(jax.vmap(lambda w: jnp.mean(case.losses(w, case.tasks))))
    return np.asarray(jax.jit(mean)(case.centre + np.float32(RADIUS) * noise), np.float64)


def _new_baselines(losses: sgld.Losses, centre: Array, tasks: Any, _: Any) -> sgld.Source:
    """Minibatches whose baseline is the loss at w* of other tasks."""
    minibatches, baseline = sgld.minibatches(losses, centre, tasks, BATCH), losses(centre, tasks)
    return sgld.Source(
        lambda key: (minibatches.draw(key)[0], baseline[_chosen(purpose_key(key, Purpose.QUERY), TASKS)])
    )


def _one_baseline(losses: sgld.Losses, centre: Array, tasks: Any, _: Any) -> sgld.Source:
    """Minibatches whose baseline is the loss at w* of the same few tasks each time."""
    minibatches, baseline = sgld.minibatches(losses, centre, tasks, BATCH), losses(centre, tasks)
    same = baseline[_chosen(key(FIRST_BATCH), TASKS)]
    return sgld.Source(lambda step_key: (minibatches.draw(step_key)[0], same))


def _chosen(key: Array, count: int) -> Array:
    return jax.random.randint(key, (BATCH,), 0, count)
