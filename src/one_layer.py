"""The population loss of one linear attention layer, in closed form, and its stationary points.

Contexts have N pairs (x, y = w.x) without noise; coordinates of x are independent with mean 0, variance v and fourth
moment m; w ~ N(0, s^2 I). With c = (p, p_y) the column of W_V P that is read, and M = (B; b^T) what scores are made of,

    prediction = c^T C M x_q,    C = sum_i (x_i, y_i)(x_i, y_i)^T

has a part odd in w, w^T S G x_q with G = p_y B + p b^T and S = sum_i x_i x_i^T, and a part even in w, e.x_q with
e = B^T S p + p_y (w^T S w) b. So the mean over tasks, contexts and queries of half the squared error is

    v/2 [s^2 (D - 2 N v tr G + alpha |G|^2) + E|e|^2].

Scaling c up and M down changes nothing, and no Hessian here counts that direction. Stationary points: `src.solutions`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from icl_lab.src.data_config import LinearData

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
    return np.asarray(at(_gradient, setting, flat(point)))


def hessian(setting: Setting, point: Point) -> np.ndarray:
    """The Hessian in merged coordinates, in float64."""
    return np.asarray(at(_hessian, setting, flat(point)))


def at(function: Callable[..., Any], setting: Setting, vector: np.ndarray) -> Any:
    """A function of D, of a setting's other numbers and of a vector; compiled once for each D."""
    with jax.enable_x64(True):
        return function(setting.dim, jnp.asarray(setting[1:], jnp.float64), jnp.asarray(vector))


def _merged(dim: int, numbers: Array, vector: Array) -> Any:
    return loss(Setting(dim, *numbers), point_of(vector, dim))


_gradient = jax.jit(jax.grad(_merged, argnums=2), static_argnums=0)
_hessian = jax.jit(jax.hessian(_merged, argnums=2), static_argnums=0)


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
