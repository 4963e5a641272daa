"""Trajectories of models: a joint PCA of predictions over checkpoints, and its null model, random walks.

A row is a checkpoint's predictions on one fixed batch, flattened; the rows of all models are stacked (Carroll et al.
2025, Sec. 5). PCA of any smooth random walk gives curves that look like development: its scores are cosines (Antognini
and Sohl-Dickstein 2018), so compare the shares of variance with those of `null_explained`. Sizes: R rows, P
predictions, C components, T checkpoints of a trajectory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

ROUNDING = 1e-12  # times the largest squared singular value: smaller ones count as zero


class Joint(NamedTuple):
    """A PCA: mean [P], axes [C, P] with orthonormal rows, scores [R, C], explained [C], shares of the variance."""

    mean: np.ndarray
    axes: np.ndarray
    scores: np.ndarray
    explained: np.ndarray


def fit(rows: np.ndarray, components: int) -> Joint:
    """The joint PCA of rows [R, P]: X - mean = U S V', axes V', scores U S, explained s_j^2 / sum of all s^2.

    In float64, by the leading eigenvectors U of the Gram matrix (X - mean)(X - mean)' = U S^2 U' [R, R], for which many
    more columns than rows cost little. An axis's sign has no meaning: its largest entry in size is made positive, so
    that equal rows, in whatever order, have equal axes. `ValueError` for more components than the rows span.
    """
    from scipy.linalg import eigh

    _check_rows(rows, components)
    mean = rows.mean(axis=0, dtype=float)
    centred = rows - mean
    gram, count = centred @ centred.T, len(rows)
    squares, u = eigh(gram, subset_by_index=(count - components, count - 1))
    squares, u = squares[::-1], u[:, ::-1]
    if not squares[-1] > ROUNDING * squares[0]:
        raise ValueError(f"rows {rows.shape} span fewer than {components} components")
    axes = u.T @ centred / np.sqrt(squares)[:, None]
    axes *= np.sign(np.take_along_axis(axes, np.abs(axes).argmax(axis=1, keepdims=True), axis=1))
    return Joint(mean, axes, centred @ axes.T, squares / np.trace(gram))


def project(joint: Joint, rows: np.ndarray) -> np.ndarray:
    """Scores [..., C] of rows [..., P] that may not have been in the fit, as dMMSE's and ridge's: (rows - mean) axes'.

    It is the nearest point of the plane; how far a row is from the plane it does not say.
    """
    scores: np.ndarray = (rows - joint.mean) @ joint.axes.T
    return scores


def smooth(scores: np.ndarray, sigma: float) -> np.ndarray:
    """Scores [T, C] of one trajectory, averaged over checkpoints by a Gaussian of width sigma, its ends repeated.

    For figures only: it pulls sharp turns in and moves the ends. 0 changes nothing; a constant stays what it is.
    """
    from scipy.ndimage import gaussian_filter1d

    if not 0 <= sigma < np.inf:
        raise ValueError(f"sigma is {sigma}; it must be at least 0 checkpoints and finite")
    return gaussian_filter1d(scores, sigma, axis=0, mode="nearest", output=float) if sigma else np.array(scores, float)


def random_walk(lengths: Sequence[int], dimension: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Gaussian random walks [T, dimension], one for each length T, independent but for their start.

    x_0 = 0 and x_t = x_(t-1) + xi_t with xi_t ~ N(0, I): models that are initialised alike start as one.
    """
    if dimension < 1 or not lengths or min(lengths) < 2:
        raise ValueError(
            f"lengths is {list(lengths)} and dimension {dimension}; a walk needs at least 2 checkpoints and 1 dimension"
        )
    walks = [rng.standard_normal((length, dimension)) for length in lengths]
    for walk in walks:
        walk[0] = 0.0
    return [np.cumsum(walk, axis=0) for walk in walks]


def null_explained(
    lengths: Sequence[int], dimension: int, components: int, draws: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Shares of variance [C] that the joint PCA of such random walks explains: mean and sd over draws (nan for one).

    In many dimensions one walk of T checkpoints tends to 6 / ((T^2 - 1) 4 sin^2(pi j / 2T)), so to 6 / (pi j)^2 for
    large T: .61, .15, .07. n long walks of one start tend to n - 1 equal shares of (4 / pi^2) / ((n - 1) / 2 + 1/6),
    then to smaller ones: 9 walks to .097 eight times. Antognini and Sohl-Dickstein 2018 (one walk).
    """
    if draws < 1:
        raise ValueError(f"draws is {draws}; it must be at least 1")
    rows = (np.concatenate(random_walk(lengths, dimension, rng)) for _ in range(draws))
    shares = np.array([fit(walks, components).explained for walks in rows])
    return shares.mean(axis=0), shares.std(axis=0, ddof=1) if draws > 1 else np.full(components, np.nan)


def _check_rows(rows: np.ndarray, components: int) -> None:
    if rows.ndim != 2 or not 1 <= components <= min(rows.shape):
        raise ValueError(f"rows {rows.shape} do not have {components} components")
    if not np.isfinite(rows).all():
        raise ValueError("rows are not all finite: leave out what diverged")
    if not np.ptp(rows, axis=0).any():
        raise ValueError("rows are all the same, so that they have no variance to explain")
