"""The population loss of one linear attention layer, in closed form, and its stationary points.

Contexts have N pairs (x, y = w.x) without noise; coordinates of x are independent with mean 0, variance v and fourth
moment m; w ~ N(0, s^2 I). With c = (p, p_y) the column of W_V P that is read, and M = (B; b^T) what scores are made of,

    prediction = c^T C M x_q,    C = sum_i (x_i, y_i)(x_i, y_i)^T

has a part odd in w, w^T S G x_q with G = p_y B + p b^T and S = sum_i x_i x_i^T, and a part even in w, e.x_q with
e = B^T S p + p_y (w^T S w) b. So the mean over tasks, contexts and queries of half the squared error is

    v/2 [s^2 (D - 2 N v tr G + alpha |G|^2) + E|e|^2].

Stationary points: zero; one step of gradient descent, p = b = 0 and G = (N v / alpha) I, the global minimum; a point of
rank one, where inputs and labels have changed roles, which at D = 1 is the second global minimum; and between both a
mixed one, along a diagonal of the cube. The first three are in Zhang et al. 2025 (arXiv 2501.16265); of the mixed one
we know of no report. Scaling c up and M down changes nothing, and no Hessian here counts that direction.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from icl_lab.src.data_config import LinearData

STARTS = 24  # of the search for the mixed point, of which the best is taken
DESCENT_STEPS, NEWTON_STEPS = 200, 20  # to the neighbourhood of a minimum, and to its last digits
SHORTER = np.append(0.5 ** np.arange(12), 0.0)  # of Newton's step, from which the best is taken
LEAST_CURVATURE = 1e-3  # of the largest; scaling c up and M down has none
LEAST_OF_SQUARE = 1.5  # of N*(D) in units of D^2: 1.6 at D = 3, 2.3 at 4, 2.7 at 5, 3.0 at 6
LEAST_PART, MOST_PART = 0.1, 0.9  # of `input_share`, between which both arrangements are in use
ZERO = 1e-7  # of the largest eigenvalue of a Hessian in float64, below which one is 0


class Setting(NamedTuple):
    """D, N (a real number in closed forms), v, m and s^2; by default x ~ U(-1/2, 1/2) and s = 1."""

    dim: int
    pairs: float
    variance: float = 1 / 12
    fourth: float = 1 / 80
    task_variance: float = 1.0

    @property
    def square(self) -> float:
        """alpha, of E S^2 = alpha I."""
        v, m, n, d = self.variance, self.fourth, self.pairs, self.dim
        return n * (m + (d - 1) * v**2) + n * (n - 1) * v**2

    @property
    def with_trace(self) -> float:
        """kappa, of E[tr S S] = kappa I."""
        v, m, n, d = self.variance, self.fourth, self.pairs, self.dim
        return n * (m + (d - 1) * v**2) + n * (n - 1) * d * v**2

    @property
    def step_size(self) -> float:
        """N v / alpha, the best of one step of gradient descent."""
        return self.pairs * self.variance / self.square


def setting_of(data: LinearData) -> Setting:
    """That of clean contexts of a config."""
    return Setting(data.dim, data.num_pairs, data.input_variance, data.input_fourth_moment, data.task_variance)


class Point(NamedTuple):
    """Merged parameters: p [D], p_y [], B [D, D] and b [D]."""

    p: Any
    p_y: Any
    scores: Any
    label_scores: Any

    @property
    def effective(self) -> Any:
        """G = p_y B + p b^T [D, D], of the prediction's odd part."""
        return self.p_y * self.scores + self.p[:, None] * self.label_scores[None]


def flat(point: Point) -> np.ndarray:
    """A point as one vector, float64."""
    return np.concatenate([np.ravel(np.asarray(part, np.float64)) for part in point])


def point_of(vector: Any, dim: int) -> Point:
    """The point of a vector of `flat`."""
    ends = np.cumsum([dim, 1, dim**2])
    p, p_y, scores, label_scores = vector[: ends[0]], vector[ends[0]], vector[ends[1] : ends[2]], vector[ends[2] :]
    return Point(p, p_y, scores.reshape(dim, dim), label_scores)


def loss(setting: Setting, point: Point) -> Any:
    """The population loss [] of one head."""
    return loss_of_heads(setting, Point(*(_numbers_of(part).asarray(part)[None] for part in point)))


def loss_of_heads(setting: Setting, heads: Point) -> Any:
    """The population loss [] of heads whose predictions are added; every part has a leading axis of heads.

    Of NumPy's arrays it is computed by NumPy, in which nothing is compiled.
    """
    v, m, n, d, s2 = setting.variance, setting.fourth, setting.pairs, setting.dim, setting.task_variance
    p, p_y, scores, label_scores = heads
    numbers = _numbers_of(p)
    effective = numbers.einsum("h,hij->ij", p_y, scores) + numbers.einsum("hi,hj->ij", p, label_scores)
    odd = s2 * (d - 2 * n * v * numbers.trace(effective) + setting.square * numbers.sum(effective**2))
    outer = numbers.einsum("hia,gja->hgij", scores, scores)
    identity = numbers.eye(d)[None, None]
    traces = numbers.einsum("hgii->hg", outer)[..., None, None] * identity
    seen = n * (n - 1) * v**2 * outer  # E[S B B^T S]
    seen = seen + n * (v**2 * (outer + outer.swapaxes(2, 3) + traces) + (m - 3 * v**2) * outer * identity)
    of_labels = numbers.einsum("h,hi->i", p_y, label_scores)
    even = numbers.einsum("hi,hgij,gj->", p, seen, p)
    even = even + 2 * s2 * setting.with_trace * numbers.einsum("hi,hij,j->", p, scores, of_labels)
    even = even + s2**2 * d * (setting.with_trace + 2 * setting.square) * numbers.sum(of_labels**2)
    return 0.5 * v * (odd + even)


def _numbers_of(array: Any) -> Any:
    """The library that computes with an array."""
    return jnp if isinstance(array, Array) else np


def loss_of(setting: Setting, point: Point) -> float:
    """The same in float64."""
    return float(loss(setting, Point(*(np.asarray(part, np.float64) for part in point))))


def gradient(setting: Setting, point: Point) -> np.ndarray:
    """The gradient in merged coordinates, as `flat`, in float64."""
    return np.asarray(_at(_gradient, setting, flat(point)))


def hessian(setting: Setting, point: Point) -> np.ndarray:
    """The Hessian in merged coordinates, in float64."""
    return np.asarray(_at(_hessian, setting, flat(point)))


def _at(function: Callable[..., Any], setting: Setting, vector: np.ndarray) -> Any:
    """A function of D, of a setting's other numbers and of a vector; compiled once for each D."""
    with jax.enable_x64(True):
        return function(setting.dim, jnp.asarray(setting[1:], jnp.float64), jnp.asarray(vector))


def _merged(dim: int, numbers: Array, vector: Array) -> Any:
    return loss(Setting(dim, *numbers), point_of(vector, dim))


def _of_diagonal(dim: int, numbers: Array, five: Array) -> Any:
    return loss(Setting(dim, *numbers), on_diagonal(dim, five))


_gradient = jax.jit(jax.grad(_merged, argnums=2), static_argnums=0)
_hessian = jax.jit(jax.hessian(_merged, argnums=2), static_argnums=0)


@partial(jax.jit, static_argnums=0)
def _descended(dim: int, numbers: Array, starts: Array) -> Array:
    """Minima of the loss on `on_diagonal` [S, 5] from these starts: Newton's steps with all curvatures positive."""

    def loss(five: Array) -> Any:
        return _of_diagonal(dim, numbers, five)

    def step(_: int, five: Array) -> Array:
        curvatures, along = jnp.linalg.eigh(jax.hessian(loss)(five))
        sizes = jnp.maximum(jnp.abs(curvatures), LEAST_CURVATURE * jnp.abs(curvatures).max())
        direction = along @ ((along.T @ jax.grad(loss)(five)) / sizes)
        tried = five[None] - SHORTER[:, None] * direction[None]
        best: Array = tried[jnp.argmin(jax.vmap(loss)(tried))]
        return best

    found: Array = jax.vmap(lambda five: jax.lax.fori_loop(0, DESCENT_STEPS, step, five))(starts)
    return found


def eigenvalues(setting: Setting, point: Point) -> np.ndarray:
    """Those of the Hessian without the direction that scales c up and M down, in ascending order."""
    vector, count = flat(point), setting.dim + 1
    along = np.concatenate([vector[:count], -vector[count:]])
    length = np.linalg.norm(along)
    others = np.eye(len(vector)) if length == 0 else _complement(along / length)
    return np.linalg.eigvalsh(others.T @ hessian(setting, point) @ others)


def _complement(direction: np.ndarray) -> np.ndarray:
    """An orthonormal basis [n, n - 1] of what is orthogonal to a unit vector."""
    return np.linalg.svd(direction[None])[2][1:].T


def index(setting: Setting, point: Point) -> int:
    """How many directions lead down from a stationary point: negative eigenvalues of the merged Hessian."""
    found = eigenvalues(setting, point)
    return int((found < -ZERO * np.abs(found).max()).sum())


def heads_of(layer: Mapping[str, Any], dim: int, channel: int) -> Point:
    """The merged parameters of a linear layer on tokens (x, y), each with a leading axis of heads.

    layer: its four factors, or W_K^T W_Q and P W_V; channel: that which the prediction is read from, with a minus sign.
    """
    if "key_query" in layer:
        key_query, read = layer["key_query"], layer["projection_value"][:, channel]
    else:
        numbers = _numbers_of(layer["key"])
        key_query = numbers.einsum("whk,uhk->hwu", layer["key"], layer["query"])
        read = numbers.einsum("hk,whk->hw", layer["projection"][:, :, channel], layer["value"])
    return Point(-read[:, :dim], -read[:, dim], key_query[:, :dim, :dim], key_query[:, dim, :dim])


# --- stationary points ---


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
    points = [balanced(on_diagonal(setting.dim, five)) for five in np.asarray(_at(_descended, setting, starts))]
    points = [point for point in points if LEAST_PART < input_share(point) < MOST_PART]
    if not points:
        return None
    point = _polished(setting, min(points, key=lambda point: loss_of(setting, point)))
    return point if LEAST_PART < input_share(point) < MOST_PART else None


def _polished(setting: Setting, point: Point) -> Point:
    """The stationary point next to one, by Newton's steps."""
    for _ in range(NEWTON_STEPS):
        vector = flat(point)
        step = np.linalg.lstsq(hessian(setting, point), gradient(setting, point), rcond=1e-10)[0]
        point = balanced(point_of(vector - step, setting.dim))
        if np.linalg.norm(step) < 1e-14 * np.linalg.norm(vector):
            break
    return point


def input_share(point: Point) -> float:
    """a = |p| |b| / (|p| |b| + |p_y| |B|): how much of the layer has inputs and labels in changed roles, 0 to 1."""
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

DESCENT, CHANGED, MIXED, PLATEAU, MOVING = "gradient descent", "changed roles", "mixed", "plateau", "moving"
SOLUTIONS = (DESCENT, CHANGED, MIXED, PLATEAU, MOVING)
NEAR_ONE = 0.1  # of the best step size: eigenvalues of G of a layer that is gradient descent; `lsa1` ends at .05
NEAR_LEVEL = 0.03  # of the mixed point's loss
MISSING = 0.1  # of the best step size: singular values of G below it are directions that the layer does not learn


class Found(NamedTuple):
    """What a layer is: its solution, one of `SOLUTIONS`, and the numbers by which that is told.

    input_share: of one head, else None; rank: of G; shares: the eigenvalues of G over the best step size, in ascending
    order of their real parts; loss and best: the population losses of the layer and of gradient descent's best step;
    mixed: of the mixed point, where it is a minimum.
    """

    solution: str
    input_share: float | None
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
    share = input_share(Point(*(part[0] for part in heads))) if len(heads.p) == 1 else None
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
        solution = CHANGED
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
