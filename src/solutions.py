"""Stationary points of the population loss of one linear attention layer, and which of them a layer has found.

Stationary points: zero; one step of gradient descent, p = b = 0 and G = (N v / alpha) I, the global minimum; a point of
rank one, where inputs and labels are swapped, which at D = 1 is the second global minimum; and between both a
mixed one, along a diagonal of the cube. The first three are in Zhang et al. 2025 (arXiv 2501.16265); of the mixed one
we know of no report.
"""

from __future__ import annotations

import math
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from icl_lab.src import one_layer
from icl_lab.src.one_layer import Point, Setting, at, flat, gradient, hessian, index, loss_of, loss_of_heads, point_of

STARTS = 24  # of the search for the mixed point, of which the best is taken
DESCENT_STEPS, NEWTON_STEPS = 200, 20  # to the neighbourhood of a minimum, and to its last digits
SHORTER = np.append(0.5 ** np.arange(12), 0.0)  # of Newton's step, from which the best is taken
LEAST_CURVATURE = 1e-3  # of the largest; scaling c up and M down has none
LEAST_OF_SQUARE = 1.5  # of N*(D) in units of D^2: 1.6 at D = 3, 2.3 at 4, 2.7 at 5, 3.0 at 6
LEAST_PART, MOST_PART = 0.1, 0.9  # of `swapped_share`, between which a part is swapped


def zero(setting: Setting) -> Point:
    """All parameters 0; a saddle."""
    d = setting.dim
    return Point(np.zeros(d), 0.0, np.zeros((d, d)), np.zeros(d))


def gradient_descent(setting: Setting) -> Point:
    """One step of gradient descent at the best step size."""
    return zero(setting)._replace(p_y=1.0, scores=setting.step_size * np.eye(setting.dim))


def rank_one(setting: Setting, direction: np.ndarray | None = None) -> Point:
    """p b^T = (N v / alpha) u u^T, and p_y and B zero; along a diagonal of the cube unless another u is given."""
    u = diagonal(setting.dim) if direction is None else direction
    return zero(setting)._replace(p=u, label_scores=setting.step_size * u)


def diagonal(dim: int) -> np.ndarray:
    """The unit vector (1, ..., 1) / sqrt(D)."""
    return np.full(dim, 1 / math.sqrt(dim))


def on_diagonal(dim: int, numbers: Any) -> Point:
    """p = pi u, b = b u and B = beta (I - u u^T) + beta_u u u^T of (p_y, pi, b, beta, beta_u), u `diagonal`."""
    p_y, pi, b, beta, beta_u = numbers
    u = diagonal(dim)
    along = np.outer(u, u)
    return Point(pi * u, p_y, beta * (np.eye(dim) - along) + beta_u * along, b * u)


def balanced(point: Point) -> Point:
    """The same prediction with |c| = |M|; a point of which one is 0 stays as it is."""
    vector, count = flat(point), len(point.p) + 1
    lengths = np.linalg.norm(vector[:count]), np.linalg.norm(vector[count:])
    if min(lengths) == 0:
        return point
    scale = math.sqrt(lengths[1] / lengths[0])
    return point_of(np.concatenate([scale * vector[:count], vector[count:] / scale]), len(point.p))


@lru_cache(maxsize=4096)
def mixed(setting: Setting) -> Point | None:
    """The mixed point along the diagonal; None where there is none, as at D = 1.

    It is the least loss on `on_diagonal` apart from the other solutions', found from drawn starts.
    """
    starts = math.sqrt(setting.step_size) * np.random.default_rng(0).standard_normal((STARTS, 5))  # c and M of one size
    points = [balanced(on_diagonal(setting.dim, five)) for five in np.asarray(at(_descended, setting, starts))]
    points = [point for point in points if LEAST_PART < swapped_share(point) < MOST_PART]
    if not points:
        return None
    point = _polished(setting, min(points, key=lambda point: loss_of(setting, point)))
    return point if LEAST_PART < swapped_share(point) < MOST_PART else None


@partial(jax.jit, static_argnums=0)
def _descended(dim: int, numbers: Array, starts: Array) -> Array:
    """Minima of the loss on `on_diagonal` [S, 5] from these starts: Newton's steps with all curvatures positive."""

    def loss(five: Array) -> Any:
        return one_layer.loss(Setting(dim, *numbers), on_diagonal(dim, five))

    def step(_: int, five: Array) -> Array:
        curvatures, along = jnp.linalg.eigh(jax.hessian(loss)(five))
        sizes = jnp.maximum(jnp.abs(curvatures), LEAST_CURVATURE * jnp.abs(curvatures).max())
        direction = along @ ((along.T @ jax.grad(loss)(five)) / sizes)
        tried = five[None] - SHORTER[:, None] * direction[None]
        best: Array = tried[jnp.argmin(jax.vmap(loss)(tried))]
        return best

    found: Array = jax.vmap(lambda five: jax.lax.fori_loop(0, DESCENT_STEPS, step, five))(starts)
    return found


def _polished(setting: Setting, point: Point) -> Point:
    """The stationary point next to one, by Newton's steps."""
    for _ in range(NEWTON_STEPS):
        vector = flat(point)
        step = np.linalg.lstsq(hessian(setting, point), gradient(setting, point), rcond=1e-10)[0]
        point = balanced(point_of(vector - step, setting.dim))
        if np.linalg.norm(step) < 1e-14 * np.linalg.norm(vector):
            break
    return point


def swapped_share(point: Point) -> float:
    """a = |p| |b| / (|p| |b| + |p_y| |B|): how much of the layer has inputs and labels swapped, 0 to 1."""
    changed = float(np.linalg.norm(point.p) * np.linalg.norm(point.label_scores))
    usual = float(abs(point.p_y) * np.linalg.norm(point.scores))
    return changed / (changed + usual) if changed + usual > 0 else math.nan


def is_minimum(setting: Setting, point: Point) -> bool:
    """Whether a stationary point has no direction that leads down."""
    return index(setting, point) == 0


def least_pairs_of_mixed(dim: int, most: float = 4096.0) -> float:
    """N*(D) of uniform inputs: above so many pairs the mixed point is a minimum; 1 where it always is, as at D = 2."""

    def holds(pairs: float) -> bool:
        return mixed_level(Setting(dim, pairs)) is not None

    low, high = 1.0, most
    if holds(low):
        return low
    if not holds(high):
        return math.inf
    while high - low > 1e-3 * high:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


# --- which one a point is ---

DESCENT, SWAPPED, MIXED, PLATEAU, MOVING = "gradient descent", "swapped", "mixed", "plateau", "moving"
SOLUTIONS = (DESCENT, SWAPPED, MIXED, PLATEAU, MOVING)
NEAR_ONE = 0.1  # of the best step size: eigenvalues of G of a layer that is gradient descent; `lsa1` ends at .05
NEAR_LEVEL = 0.03  # of the mixed point's loss
MISSING = 0.1  # of the best step size: singular values of G below it are directions that the layer does not learn


class Found(NamedTuple):
    """What a layer is: its solution, one of `SOLUTIONS`, and the numbers by which that is told.

    swapped_share: of one head, else None; rank: of G; shares: the eigenvalues of G over the best step size, in order of
    their real parts; loss and best: the population losses of the layer and of gradient descent's best step; mixed: of
    the mixed point, where it is a minimum.
    """

    solution: str
    swapped_share: float | None
    rank: int
    shares: tuple[complex, ...]
    loss: float
    best: float
    mixed: float | None


def classify(setting: Setting, heads: Point) -> Found:
    """Which solution a layer has found; "moving" where it is none of them.

    heads: as of `heads_of`, NumPy's in float64. Of several it is the prediction that is gradient descent: even parts of
    heads may cancel, and the mixed point is that of one head.
    """
    share = swapped_share(Point(*(part[0] for part in heads))) if len(heads.p) == 1 else None
    effective = np.sum([Point(*parts).effective for parts in zip(*heads, strict=True)], axis=0)
    found = np.linalg.eigvals(effective) / setting.step_size
    found = found[np.argsort(found.real)]
    rank = int((np.linalg.svd(effective, compute_uv=False) > MISSING * setting.step_size).sum())
    loss, level = float(loss_of_heads(setting, heads)), mixed_level(setting)
    best = loss_of(setting, gradient_descent(setting))
    is_best = bool((np.abs(found - 1) < NEAR_ONE).all())
    near_best = loss < (1 + NEAR_LEVEL) * best if share is None else share < LEAST_PART
    solution = PLATEAU if rank < setting.dim else MOVING
    if is_best and near_best:
        solution = DESCENT
    elif is_best and setting.dim == 1 and share is not None and share > MOST_PART:
        solution = SWAPPED
    elif level is not None and share is not None and LEAST_PART < share < MOST_PART:
        solution = MIXED if abs(loss / level - 1) < NEAR_LEVEL else solution
    return Found(solution, share, rank, tuple(complex(each) for each in found), loss, best, level)


def mixed_level(setting: Setting) -> float | None:
    """The loss of the mixed point where it is a minimum.

    From D = 3 on N* is no less than `LEAST_OF_SQUARE` D^2 for uniform inputs, and larger for Gaussian ones.
    """
    if setting.dim > 2 and setting.pairs < LEAST_OF_SQUARE * setting.dim**2:
        return None
    point = mixed(setting)
    return None if point is None or not is_minimum(setting, point) else loss_of(setting, point)
