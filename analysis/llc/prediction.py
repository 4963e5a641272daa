"""What an LLC would be if the loss were quadratic, in four parts, from the Hessian's spectrum alone.

A quadratic loss has, with a_i = nbeta h_i + gamma (`Prediction`), by SGLD of step eps on batches of B samples,

    curvature    sum_i (1/2) nbeta h_i / a_i
    step size    each term times 1 / (1 - eps a_i / 4) - 1
    minibatches  that times eps nbeta^2 C_i / (4 B)
    slope        - sum_i nbeta^2 g_i^2 (nbeta h_i / 2 + gamma) / a_i^2

With friction f, 4 is 4 (2 - f) in the second line and the third is divided by f. HMC has the first and the last alone.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from icl_lab.analysis.llc.spectrum import Nodes, Spectrum

LEAST = 1e-30  # pull of a direction
UNSTABLE = 1e-9  # what is left of the stability bound where a chain diverges: its part of step size is then enormous


class How(NamedTuple):
    """How a chain's steps are made: their size, samples in a step (infinite: all), and the friction."""

    eps: float = 0.0
    batch_size: float = math.inf
    friction: float = 1.0


EXACT = How()


class Prediction(NamedTuple):
    """nbeta E[L(w) - L(w*)] of a quadratic loss, in its four parts; nan at a saddle, where nbeta h_min + gamma <= 0.

    step and noise are nan where the sampler has no closed form (rmsprop), and then left out of the total. error: the
    standard error of the total by random probes. d_nbeta, d_gamma: logarithmic derivatives of the curvature part.
    """

    curvature: float = math.nan
    step: float = math.nan
    noise: float = math.nan
    slope: float = math.nan
    error: float = math.nan
    h_min: float = math.nan
    d_nbeta: float = math.nan
    d_gamma: float = math.nan

    @property
    def total(self) -> float:
        """The sum of the parts that are known."""
        known = [part for part in (self.step, self.noise) if not math.isnan(part)]
        return self.curvature + self.slope + sum(known)


def predict(spectrum: Spectrum, nbeta: float, gamma: float, how: How | None = EXACT) -> Prediction:
    """The prediction at these settings; how: None for a sampler without a closed form of its steps."""
    if nbeta * spectrum.h_min + gamma <= 0:
        return Prediction(h_min=spectrum.h_min)

    def parts(nodes: Nodes) -> np.ndarray:
        return np.array([np.sum(part) for part in _terms(nodes, nbeta, gamma, how or EXACT)])

    curvature, step, noise, slope, derivative = (spectrum.total(lambda n, i=i: parts(n)[i])[0] for i in range(5))
    _, error = spectrum.total(lambda nodes: parts(nodes)[:4].sum())
    if how is None:
        step = noise = math.nan
        _, error = spectrum.total(lambda nodes: parts(nodes)[[0, 3]].sum())
    share = derivative / curvature if curvature else 0.0
    return Prediction(curvature, step, noise, slope, error, spectrum.h_min, share, -share)


def _terms(nodes: Nodes, nbeta: float, gamma: float, how: How) -> tuple[np.ndarray, ...]:
    a = _held(nodes.h, nbeta, gamma)
    quadratic = 0.5 * nbeta * nodes.h / a
    room = 1 - how.eps * a / (4 * (2 - how.friction))
    room = np.maximum(room, UNSTABLE)
    noise = how.eps * nbeta**2 / (4 * how.batch_size * how.friction)
    return (
        nodes.weight * quadratic,
        nodes.weight * quadratic * (1 / room - 1),
        nodes.variance * quadratic / room * noise,
        -nodes.slope * nbeta**2 * (0.5 * nbeta * nodes.h + gamma) / a**2,
        nodes.weight * quadratic * gamma / a,
    )


def _held(h: np.ndarray, nbeta: float, gamma: float) -> np.ndarray:
    """nbeta h + gamma; a node that a probe places below the smallest eigenvalue by rounding is held at the pull."""
    a = nbeta * h + gamma
    held: np.ndarray = np.where(a > 0, a, max(gamma, LEAST))
    return held


def relaxed(spectrum: Spectrum, nbeta: float, gamma: float, how: How, burn_in: int, steps: int) -> float:
    """The share of the curvature part that a quadratic loss shows in the steps after a burn-in from w*.

    With rate r a step, E u^2 = V (1 - r^(2 t)); r = 1 - eps a / 2 without friction, else the larger root of the
    momentum's recursion.
    """

    def both(nodes: Nodes) -> np.ndarray:
        a = _held(nodes.h, nbeta, gamma)
        rate = np.minimum(_rate(how.eps * a, how.friction), 1.0)
        left = np.where(
            rate < 1,
            rate ** (2.0 * burn_in) * (1 - rate ** (2.0 * steps)) / np.maximum(steps * (1 - rate**2), 1e-30),
            1.0,
        )
        quadratic = nodes.weight * 0.5 * nbeta * nodes.h / a
        return np.array([np.sum(quadratic * (1 - left)), np.sum(quadratic)])

    shown, whole = (spectrum.total(lambda nodes, i=i: both(nodes)[i])[0] for i in (0, 1))
    return shown / whole if whole else 1.0


def _rate(pull: np.ndarray, friction: float) -> np.ndarray:
    """The largest size of a root of z^2 - (2 - f - eps a / 2) z + (1 - f)."""
    middle = 2 - friction - pull / 2
    inside = middle**2 - 4 * (1 - friction)
    real = (np.abs(middle) + np.sqrt(np.maximum(inside, 0))) / 2
    return np.where(inside >= 0, real, math.sqrt(1 - friction))
