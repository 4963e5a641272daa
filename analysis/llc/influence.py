"""Bayesian influence of samples, and susceptibilities, from the per-sample losses of draws.

With draws w of the local posterior and l_i(w) the loss of sample i:

    influence of i on phi        -Cov(l_i, phi)           the derivative of E[phi] in sample i's weight, over nbeta / n
    susceptibility of C to i     -Cov(phi_C, l_i - L)     phi_C a quantity of draws in which component C alone moves

Neither formula contains nbeta. Sources: Giordano, Broderick and Jordan 2018, Eq. 8 (covariances as sensitivities of a
posterior); susceptibilities: Baker et al. 2025.
On a quadratic loss Cov(l_i, l_j) = g_i.S g_j + tr(H_i S H_j S) / 2, with S = (nbeta H + gamma)^-1, g_i and H_i the
slope and the Hessian of l_i at w*.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from icl_lab.src.checks import require


class Covariances(NamedTuple):
    """values [n] or [n, ...], each with a standard error by leaving out one chain at a time."""

    values: np.ndarray
    errors: np.ndarray


def influence(losses: np.ndarray, observable: np.ndarray) -> Covariances:
    """-Cov(l_i, phi) of losses [C, T, n] with an observable [C, T] or [C, T, m], of the same draws: [n] or [n, m].

    losses: `traces["losses"]` of `icl_lab.llc(..., per_sample=True)`; observable: `traces["observed"]`, or the losses
    themselves, each without its burn-in. `ConfigError` for arrays whose chains and draws differ.
    """
    of_samples = np.asarray(losses, np.float64)
    observed = np.asarray(observable, np.float64)
    require(of_samples.ndim == 3, f"losses has shape {of_samples.shape}; it must be [chains, draws, samples]")
    require(
        observed.shape[:2] == of_samples.shape[:2] and observed.ndim in (2, 3),
        f"the observable has shape {observed.shape}; it must be [chains, draws] or [chains, draws, m], with "
        f"the chains and draws of losses, {of_samples.shape[:2]}",
    )
    require(len(of_samples) >= 2, "losses has only one chain; a standard error needs two or more")
    columns = observed[..., None] if observed.ndim == 2 else observed
    found = _minus_covariance(of_samples, columns)
    flat = observed.ndim == 2
    return Covariances(found.values[:, 0], found.errors[:, 0]) if flat else found


def susceptibility(component: np.ndarray, losses: np.ndarray) -> Covariances:
    """-Cov(phi_C, l_i - L) [n] of draws in which a component alone moves (`mask`), L the mean of the losses [C, T, n].

    component: phi_C [C, T] of the same draws, such as their excess loss.
    """
    of_samples = np.asarray(losses, np.float64)
    require(of_samples.ndim == 3, f"losses has shape {of_samples.shape}; it must be [chains, draws, samples]")
    return influence(of_samples - of_samples.mean(axis=2, keepdims=True), component)


def _minus_covariance(losses: np.ndarray, columns: np.ndarray) -> Covariances:
    """Of all draws about the mean of all chains; its error by the jackknife over chains, from each chain's sums."""
    chains, draws = losses.shape[:2]
    products = np.einsum("ctn,ctm->cnm", losses, columns, optimize=True)
    firsts, seconds = losses.sum(axis=1), columns.sum(axis=1)

    def of(product: np.ndarray, first: np.ndarray, second: np.ndarray, count: int) -> np.ndarray:
        covariance: np.ndarray = (product - np.einsum("n,m->nm", first, second) / count) / (count - 1)
        return -covariance

    whole = products.sum(axis=0), firsts.sum(axis=0), seconds.sum(axis=0)
    value = of(*whole, chains * draws)
    left_out = np.stack(
        [
            of(whole[0] - products[c], whole[1] - firsts[c], whole[2] - seconds[c], (chains - 1) * draws)
            for c in range(chains)
        ]
    )
    spread = (left_out - left_out.mean(axis=0)) ** 2
    return Covariances(value, np.sqrt((chains - 1) / chains * spread.sum(axis=0)) if chains > 1 else value * math.nan)
