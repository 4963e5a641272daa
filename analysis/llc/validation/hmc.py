"""Hamiltonian Monte Carlo in NumPy: nbeta E[L(w) - L(w*)] where no quadrature reaches, with its standard error.

All chains move at once, with one step size, tuned over the burn-in to the share of proposals that are accepted. Each
proposal is corrected with the whole loss, so that there is no bias in the step size (Neal 2011). It shares no code with
the estimator, nor with the reference sampler in JAX.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from icl_lab.analysis.llc.validation.models import KnownLoss, gradient, mean_loss
from icl_lab.analysis.llc.validation.quadrature import Answer

ACCEPTED = 0.8  # share of proposals that the step size is tuned to
CHAINS, BURN_IN, DRAWS = 64, 100, 200


class Draws(NamedTuple):
    """Draws after burn-in of C chains: excess [C, T] = L(w) - L(w*); acceptance [C, T]; distance |w - w*| [C, T]."""

    excess: np.ndarray
    acceptance: np.ndarray
    distance: np.ndarray


def answer(model: KnownLoss, nbeta: float, gamma: float, chains: int = CHAINS, draws: int = DRAWS) -> Answer:
    """The answer by HMC; the error is that of the mean of independent chains."""
    means = nbeta * sampled(model, nbeta, gamma, chains, draws=draws).excess.mean(axis=1)
    return Answer(float(means.mean()), float(means.std(ddof=1) / math.sqrt(chains)), "HMC")


def sampled(
    model: KnownLoss,
    nbeta: float,
    gamma: float,
    chains: int = CHAINS,
    burn_in: int = BURN_IN,
    draws: int = DRAWS,
    seed: int = 0,
) -> Draws:
    """Chains from w*, whose trajectories have a mean length of a flat direction's width, 1 / sqrt(gamma).

    Their number of steps is uniform up to twice the mean, so that no direction's period is met each time. Each tenth
    has an eighth of the step size and a quarter of the length: a chain may stand where the loss is so steep that
    every other is rejected.
    """
    rng, base = np.random.default_rng(seed), float(mean_loss(model, model.point))
    w = np.tile(model.point, (chains, 1))
    excess, log_size, kept, log_sum = np.zeros(chains), math.log(0.1 / math.sqrt(nbeta + gamma)), [], 0.0
    for number in range(burn_in + draws):
        is_fine = number % 10 == 9
        size, length = math.exp(log_size) / (8 if is_fine else 1), 1 / math.sqrt(gamma) / (4 if is_fine else 1)
        steps = math.ceil(rng.uniform(0, 2) * length / size)
        w, excess, probability = _proposed(model, nbeta, gamma, base, w, excess, size, steps, rng)
        if number < burn_in:
            log_size += (not is_fine) * (float(probability.mean()) - ACCEPTED) / math.sqrt(1 + number)
            log_sum += log_size * (number >= burn_in // 2)
            if number == burn_in - 1:
                log_size = log_sum / (burn_in - burn_in // 2)  # the mean of the second half
        else:
            kept.append((excess, probability, np.linalg.norm(w - model.point, axis=1)))
    return Draws(*(np.stack(values, axis=1) for values in zip(*kept, strict=True)))


def _proposed(
    model: KnownLoss,
    nbeta: float,
    gamma: float,
    base: float,
    w: np.ndarray,
    excess: np.ndarray,
    size: float,
    steps: int,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The chains [C, d] after a leapfrog trajectory and its Metropolis step, their excess losses, the probabilities."""
    momentum = rng.standard_normal(w.shape)
    with np.errstate(over="ignore", invalid="ignore"):  # a trajectory that diverges is rejected
        moved, pushed = w, momentum - 0.5 * size * _force(model, nbeta, gamma, w)
        for step in range(steps):
            moved = moved + size * pushed
            pushed = pushed - size * (1.0 if step < steps - 1 else 0.5) * _force(model, nbeta, gamma, moved)
        loss = mean_loss(model, moved) - base
        before = nbeta * excess + _energy(model, gamma, w, momentum)
        after = nbeta * loss + _energy(model, gamma, moved, pushed)
        probability = np.nan_to_num(np.exp(np.minimum(before - after, 0.0)))
    accepted = rng.uniform(size=len(w)) < probability
    return np.where(accepted[:, None], moved, w), np.where(accepted, loss, excess), probability


def _force(model: KnownLoss, nbeta: float, gamma: float, w: np.ndarray) -> np.ndarray:
    return np.asarray(nbeta * gradient(model, w) + gamma * (w - model.point))


def _energy(model: KnownLoss, gamma: float, w: np.ndarray, momentum: np.ndarray) -> np.ndarray:
    return np.asarray(0.5 * gamma * ((w - model.point) ** 2).sum(axis=1) + 0.5 * (momentum**2).sum(axis=1))
