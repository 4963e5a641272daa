"""The step size of K steps of gradient descent with the least loss on some tasks, found on a grid that zooms in.

The prediction of K steps from zero of size c is x_query^T q(S) b, with S = sum_i x_i x_i^T, b = sum_i y_i x_i and

    q(l) = (1 - (1 - c l)^K) / l,   a polynomial of degree K - 1.

So the loss is a quadratic form in the coefficients of q, whose matrix is computed once, in float64 (`LossCurve`). Where
the grid is so fine that rounding decides, and at the end, descent itself is run in float32 on the points whose loss is
within `MARGIN` of the least. The point found is the one of least float32 loss among all, as if descent were run on all.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.polynomial.chebyshev import chebinterpolate

from icl_lab.baselines.gradient_descent import fit_step_size, gd
from icl_lab.src.batch import Batch
from icl_lab.src.checks import require

POINTS, TOGETHER = 33, 8  # of a grid, and step sizes that a program descends with at once
MARGIN = 2e-6  # relative: means of float32 over 65 536 tasks are within 1e-7 of the exact ones
CHUNK = 4096  # tasks whose moments are computed together
LARGEST = 256  # tasks, of the largest inputs, among whose eigenvalues the largest is looked for


def search_step_size(batch: Batch, steps: int, zooms: int = 4) -> float:
    """The step size of `steps` steps with the least loss on these tasks.

    One step has a closed form and needs no search; the grid for more starts from 0 to 6.6 times that step, so that it
    follows the scale of the inputs.
    """
    one_step = fit_step_size(batch)
    if steps == 1:
        return one_step
    low, high = 1e-3 * one_step, 6.6 * one_step
    curve = loss_curve(batch, steps)
    for zoom in range(zooms):
        grid = np.linspace(low, high, POINTS)
        best = grid[_least(batch, steps, grid, curve, last=zoom + 1 == zooms)]
        reach = 2 * (high - low) / (POINTS - 1)
        low, high = max(low, best - reach), min(high, best + reach)
    return float(best)


def _least(batch: Batch, steps: int, grid: np.ndarray, curve: LossCurve, last: bool) -> int:
    """The point of a grid with the least loss in float32."""
    expected = np.array([curve.at(c) for c in grid])
    near = np.flatnonzero(expected <= np.nanmin(np.append(expected, np.inf)) * (1 + MARGIN))
    if len(near) == 1 and not last:
        return int(near[0])
    if len(near) and near[-1] - near[0] < TOGETHER and near[-1] < POINTS // TOGETHER * TOGETHER:
        losses = _losses_near(batch, steps, grid, near)
        if np.all(np.abs(losses - expected[near]) <= MARGIN / 2 * expected[near]):
            return int(near[np.argmin(losses)])
    losses = _losses_of_all(batch, steps, grid)
    finite = np.isfinite(losses)
    require(bool(finite.any()), "no step size of gradient descent has a finite loss on the tasks of its search")
    return int(np.argmin(np.where(finite, losses, np.inf)))


# --- descent itself ---


def _losses_of_all(batch: Batch, steps: int, grid: np.ndarray) -> np.ndarray:
    parts = [grid[start : start + TOGETHER] for start in range(0, len(grid), TOGETHER)]
    return np.concatenate([_losses(batch, steps, part) for part in parts])


def _losses_near(batch: Batch, steps: int, grid: np.ndarray, near: np.ndarray) -> np.ndarray:
    """The losses of a few points, which are neighbours, each at the place it has among all: bits depend on that."""
    places = near % TOGETHER
    together = np.full(TOGETHER, grid[near[0]])
    together[places] = grid[near]
    return np.asarray(_losses(batch, steps, together)[places])


def _losses(batch: Batch, steps: int, rates: np.ndarray) -> np.ndarray:
    """The loss of each step size. Two programs, since bits of the means depend on what is fused with them."""
    return np.asarray(_means(_predictions(batch, np.int32(steps), jnp.asarray(rates)), batch))


@jax.jit
def _predictions(batch: Batch, steps: Array, rates: Array) -> Array:
    """Predictions [R, B] of each step size: one program for all numbers of steps."""
    return jax.vmap(lambda rate: gd(batch, rate, steps))(rates)


@jax.jit
def _means(predictions: Array, batch: Batch) -> Array:
    return 0.5 * jnp.mean((predictions - jnp.broadcast_to(batch.y_query, predictions.shape)) ** 2, axis=1)


# --- the loss as a function of the step size ---


class LossCurve(NamedTuple):
    """The loss of K steps as a function of their size c, 1/2 a^T G a: a are q's coefficients and -1.

    q = sum_j a_j T_j(2 l / largest - 1) in Chebyshev polynomials, whose terms do not cancel. G [K + 1, K + 1]
    is the mean over tasks of the products of the moments m_j = x_query^T T_j b and the label.
    """

    gram: np.ndarray
    largest: float

    def at(self, c: float) -> float:
        """The loss at a step size; nan where float64 does not hold it."""
        steps = len(self.gram) - 1

        def polynomial(t: Any) -> Any:
            values = self.largest * (1 + t) / 2
            return (1 - (1 - c * values) ** steps) / values

        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            coefficients = np.append(chebinterpolate(polynomial, steps - 1), -1.0)
            loss = 0.5 * float(coefficients @ self.gram @ coefficients)
        return loss if np.isfinite(loss) else np.nan


def loss_curve(batch: Batch, steps: int) -> LossCurve:
    """The loss of `steps` steps on these tasks for all step sizes."""
    x, y, x_query, y_query = (np.asarray(part) for part in (batch.x, batch.y, batch.x_query, batch.y_query))
    largest = _largest_eigenvalue(x)
    gram = np.zeros((steps + 1, steps + 1))
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for start in range(0, len(x), CHUNK):
            part = slice(start, start + CHUNK)
            moments = _moments(x[part].astype(np.float64), y[part], x_query[part], 2 / largest, steps)
            rows = np.vstack([moments, y_query[part]])
            gram += rows @ rows.T
    return LossCurve(gram / len(x), largest)


def _moments(x: np.ndarray, y: np.ndarray, x_query: np.ndarray, scale: float, steps: int) -> np.ndarray:
    """m_j [K, B] = x_query^T T_j(scale S - 1) b by T_j+1(t) = 2 t T_j(t) - T_j-1(t)."""
    now = np.einsum("bn,bnd->bd", y, x)
    before, moments = now, []
    for step in range(steps):
        moments.append(np.einsum("bd,bd->b", x_query, now))
        image = scale * np.einsum("bn,bnd->bd", np.einsum("bnd,bd->bn", x, now), x) - now
        before, now = now, image if step == 0 else 2 * image - before
    return np.array(moments)


def _largest_eigenvalue(x: np.ndarray) -> float:
    """The largest eigenvalue of S among the tasks of the largest inputs: only a scale."""
    sizes = np.einsum("bnd,bnd->b", x, x)
    x = x[np.argsort(sizes)[-LARGEST:]].astype(np.float64)
    if not np.isfinite(x).all():
        return np.nan
    return float(np.linalg.norm(x, 2, axis=(1, 2)).max()) ** 2
