"""The posterior of linear classification, y = sign(w.x) with w ~ N(0, I), by sequential Monte Carlo.

Given k labels w is Gaussian in a cone. Particles in the cone lose those that the next label contradicts; the others
take their places and move by elliptical slice sampling (Murray et al. 2010). It needs no rejection here: with another
draw v, w cos t + v sin t stays on the right side of a plane through 0 for a half of all t, so within the cone for one
interval about 0, from which t is drawn (Gessner et al. 2020). Along it the share of t at which the query is on its
positive side is known exactly, and estimates P(y = 1).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from icl_lab.baselines.functions.posterior import Sampled
from icl_lab.baselines.functions.prefixes import pairs
from icl_lab.src.checks import require, size

GROUPS = 4  # of particles that know nothing of each other, from whose differences the error is
PROMPTS = 16  # at once
RIGHT = np.pi / 2


def sign_posterior(x: ArrayLike, y: ArrayLike, particles: int = 256, moves: int = 5, seed: int = 0) -> Sampled:
    """The mean label 2 P(y_k = 1) - 1, the evidence P(y before k), and errors of the mean; x [B, N, D], y -1 or 1.

    A label that all particles of a group contradict is left out, as one that no w explains. Cost: 25 s at D = 5, with
    errors of .035 and less; 32 s at D = 20, where they grow to .15 at 40 pairs, or to .08 with 512 particles and 10
    moves, 130 s.
    """
    size("moves", moves)
    size("particles", particles, least=2 * GROUPS)
    require(particles % GROUPS == 0, f"particles is {particles}; it must be a multiple of {GROUPS}")
    inputs, labels = pairs(x, y)
    random = np.random.default_rng(seed)
    parts = [
        _block(inputs[start : start + PROMPTS], labels[start : start + PROMPTS], particles // GROUPS, moves, random)
        for start in range(0, len(inputs), PROMPTS)
    ]
    return Sampled(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def _block(x: np.ndarray, y: np.ndarray, particles: int, moves: int, random: np.random.Generator) -> Sampled:
    """Of b prompts, each in G groups: [b G, ...] below, and their mean and spread in the end."""
    x, y = np.repeat(x, GROUPS, axis=0), np.repeat(y, GROUPS, axis=0)
    signed = x * y[:, :, None]
    positive, log_evidence = np.empty(y.shape), np.zeros(y.shape)
    w = random.standard_normal((len(x), particles, x.shape[2]))
    for k in range(y.shape[1]):
        w, positive[:, k] = _moved(w, signed[:, :k], x[:, k], moves, random)
        if k + 1 < y.shape[1]:
            chance = np.where(y[:, k] > 0, positive[:, k], 1 - positive[:, k])
            log_evidence[:, k + 1] = log_evidence[:, k] + np.log(np.maximum(chance, 1e-6))
            w, explained = _selected(w, (w @ signed[:, k, :, None])[:, :, 0] > 0)
            signed[~explained, k] = 0
    grouped = (2 * positive - 1).reshape(-1, GROUPS, y.shape[1])
    evidence = log_evidence.reshape(-1, GROUPS, y.shape[1])
    error = grouped.std(axis=1, ddof=1) / np.sqrt(GROUPS)
    draws = GROUPS * particles * moves
    mean = grouped.mean(axis=1) * draws / (draws + 1)  # half a draw on each side: no label is impossible
    return Sampled(mean, np.logaddexp.reduce(evidence, axis=1) - np.log(GROUPS), error)


def _selected(w: np.ndarray, alive: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Particles [R, P, D] of which those alive [R, P] replace the others, and where [R] there are any."""
    explained = np.asarray(alive.any(axis=1))
    alive = alive | ~explained[:, None]
    order = np.argsort(~alive, axis=1, kind="stable")
    survivors = np.take_along_axis(order, np.arange(w.shape[1])[None] % alive.sum(axis=1)[:, None], axis=1)
    return np.take_along_axis(w, survivors[:, :, None], axis=1), explained


def _moved(
    w: np.ndarray, signed: np.ndarray, query: np.ndarray, moves: int, random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Particles [R, P, D] after moves in the cone of w.s > 0, s [R, k, D], and P(w.query > 0) [R] on the way."""
    planes, total = np.swapaxes(signed, 1, 2), np.zeros(len(w))
    for _ in range(moves):
        other = random.standard_normal(w.shape)
        here, there = w @ planes, other @ planes  # [R, P, k]
        ratio = np.divide(there, here, out=np.zeros_like(there), where=here > 0)
        low = np.arctan(ratio.max(axis=2, initial=-np.inf)) - RIGHT
        high = np.arctan(ratio.min(axis=2, initial=np.inf)) + RIGHT
        centre = np.arctan2((other @ query[:, :, None])[:, :, 0], (w @ query[:, :, None])[:, :, 0])
        total += _share(low, high, centre).mean(axis=1)
        angle = (low + (high - low) * random.random(low.shape))[:, :, None]
        w = w * np.cos(angle) + other * np.sin(angle)
    return w, total / moves


def _share(low: np.ndarray, high: np.ndarray, centre: np.ndarray) -> np.ndarray:
    """The share of the interval from low to high that is within a right angle of the centre, modulo 2 pi."""
    inside = np.zeros_like(low)
    for turn in (-2 * np.pi, 0, 2 * np.pi):
        inside += np.maximum(np.minimum(high, centre + RIGHT + turn) - np.maximum(low, centre - RIGHT + turn), 0)
    share: np.ndarray = inside / (high - low)
    return share
