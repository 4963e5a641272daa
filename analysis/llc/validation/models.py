"""Losses whose learning coefficient is known, in plain NumPy: what an estimator of the LLC can be validated on.

A model has the losses of n samples at weights w, losses(w [..., d], data) -> [..., n], and a point w* of which the
coefficient is asked; L is their mean. The functions take arrays of any library that names its namespace, JAX among
them. `made` makes a model of its formula, a text such as "crossing(2, 1, (1.0, 0.0))".
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Sequence
from functools import lru_cache, reduce
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from icl_lab.analysis.llc.validation import known
from icl_lab.analysis.llc.validation.known import Coefficient
from icl_lab.src.checks import ConfigError, require

Losses = Callable[[Any, Any], Any]  # of weights [..., d] and data of n samples -> [..., n]
ONE = np.ones((1, 1))  # the data of a loss without data: one sample
NOT_KNOWN = Coefficient(math.nan, 1)


class KnownLoss(NamedTuple):
    """A loss around w* [d]: data, a pytree with a leading axis of n samples; at: where w* lies, in words.

    local, whole: the coefficient at w*, and the smallest of all solutions; null_loss: that of a predictor which takes
    nothing from the data, if there is one; gradient(w [..., d], data) -> [..., d] of the mean loss, if it is at hand;
    given: the data in words.
    """

    name: str
    losses: Losses
    data: Any
    point: np.ndarray
    at: str
    local: Coefficient
    whole: Coefficient
    null_loss: float = math.inf
    gradient: Callable[[Any, Any], Any] | None = None
    given: str = "none: a function of the weights"


def mean_loss(model: KnownLoss, w: np.ndarray) -> np.ndarray:
    """L of weights [..., d]."""
    return np.asarray(model.losses(w, model.data).mean(axis=-1))


def gradient(model: KnownLoss, w: np.ndarray) -> np.ndarray:
    """The gradient [..., d] of L; by central differences where the model has none."""
    if model.gradient is not None:
        return np.asarray(model.gradient(w, model.data))
    steps = 1e-5 * np.eye(w.shape[-1])
    moved = [mean_loss(model, w[..., None, :] + sign * steps) for sign in (1, -1)]
    return np.asarray((moved[0] - moved[1]) / 2e-5)


def hessian(model: KnownLoss, step: float = 1e-3) -> np.ndarray:
    """The Hessian [d, d] of L at w* by central differences: exact but for rounding where L is quadratic."""
    steps = step * np.eye(len(model.point))
    if model.gradient is not None:
        ends = [gradient(model, model.point + sign * steps) for sign in (1, -1)]
        return np.asarray((ends[0] - ends[1]) / (2 * step))
    corners = {
        (a, b): mean_loss(model, model.point + a * steps[:, None] + b * steps[None]) for a in (1, -1) for b in (1, -1)
    }
    return np.asarray((corners[1, 1] - corners[1, -1] - corners[-1, 1] + corners[-1, -1]) / (4 * step**2))


# --- functions of the weights alone ---


def quadratic(eigenvalues: Sequence[float] | np.ndarray, off: float = 0.0) -> KnownLoss:
    """L = sum_i h_i w_i^2 / 2, at the minimum or with every coordinate `off` it."""
    h = np.asarray(eigenvalues, float)
    listed = ", ".join(f"{value:g}" for value in h) if len(set(h)) > 1 else f"{h[0]:g} ({len(h)} times)"
    name = f"quadratic, h = {listed}{f'; w* at {off:g}' if off else ''}"
    at = f"every coordinate {off:g}, which is no minimum" if off else "the minimum"
    whole = known.regular(int(np.count_nonzero(h)))
    return KnownLoss(name, _quadratic, h[None], np.full_like(h, off), at, NOT_KNOWN if off else whole, whole)


def _quadratic(w: Any, eigenvalues: Any) -> Any:
    return 0.5 * (eigenvalues * w[..., None, :] ** 2).sum(axis=-1)


def powers(k: int, parameters: int) -> KnownLoss:
    """L = sum_i w_i^(2 k): d / (2 k)."""
    coefficient = known.sum_of_powers([k] * parameters)
    name = f"sum of w^{2 * k}, d = {parameters}"
    return KnownLoss(name, _powers(k), ONE, np.zeros(parameters), "the origin", coefficient, coefficient)


@lru_cache
def _powers(k: int) -> Losses:
    return lambda w, data: (w ** (2 * k)).sum(axis=-1)[..., None] * data[:, 0]


def quartic(curvature: float) -> KnownLoss:
    """L = c w^2 / 2 + w^4 of one weight: 1/2, and 1/4 to a chain at which the quartic is what is seen."""
    regular = known.regular(1)
    data = np.full((1, 1), curvature)
    return KnownLoss(f"{curvature:g} w^2 / 2 + w^4", _quartic, data, np.zeros(1), "the minimum", regular, regular)


def _quartic(w: Any, curvature: Any) -> Any:
    return curvature[:, 0] * w**2 / 2 + w**4


def crossing(first: int, second: int, point: tuple[float, float] = (0.0, 0.0)) -> KnownLoss:
    """L = w1^(2 k1) w2^(2 k2) at the origin, or at another point of an axis."""
    require(point[0] == 0 or point[1] == 0, f"the point is {point}; the solutions have a coordinate of 0")
    at = f"({point[0]:g}, {point[1]:g})" if any(point) else "the origin"
    name = f"crossing w1^{2 * first} w2^{2 * second}{f' at {at}' if any(point) else ''}"
    whole = known.normal_crossing((first, second))
    local = known.normal_crossing([k for k, value in zip((first, second), point, strict=True) if not value])
    return KnownLoss(name, _crossing(first, second), ONE, np.array(point), at, local, whole)


@lru_cache
def _crossing(first: int, second: int) -> Losses:
    return lambda w, data: (w[..., 0] ** (2 * first) * w[..., 1] ** (2 * second))[..., None] * data[:, 0]


def line_and_dot(line: int, dot: int, on_line: bool = False) -> KnownLoss:
    """L = (w1 - 1)^(2 k1) (w1^2 + w2^2)^(2 k2): 1 / (2 k1) at (1, 0), 1 / (2 k2) at the origin."""
    coefficients = [Coefficient(1 / (2 * k)) for k in (line, dot)]
    local = coefficients[0] if on_line else coefficients[1]
    name = f"(w1 - 1)^{2 * line} (w1^2 + w2^2)^{2 * dot}{' at (1, 0)' if on_line else ''}"
    at = "(1, 0), on the line" if on_line else "the origin, the dot"
    return KnownLoss(name, _line_and_dot(line, dot), ONE, np.array([float(on_line), 0.0]), at, local, min(coefficients))


@lru_cache
def _line_and_dot(line: int, dot: int) -> Losses:
    return lambda w, data: ((w[..., 0] - 1) ** (2 * line) * (w**2).sum(axis=-1) ** (2 * dot))[..., None] * data[:, 0]


def sphere(parameters: int) -> KnownLoss:
    """L = (|w|^2 - 1)^2 at (1, 0, ...): Morse-Bott, 1/2 whatever the dimension."""
    half, point = known.regular(1), np.eye(1, parameters)[0]
    return KnownLoss(f"(sum of w^2 - 1)^2, d = {parameters}", _sphere, ONE, point, "(1, 0, ...)", half, half)


def _sphere(w: Any, data: Any) -> Any:
    return (((w**2).sum(axis=-1) - 1) ** 2)[..., None] * data[:, 0]


def well(parameters: int) -> KnownLoss:
    """L = 1 - exp(-|w|^2 / 2): a quadratic that flattens at the null predictor's loss of 1, as a model's loss does."""
    regular = known.regular(parameters)
    name = f"bounded loss, d = {parameters}"
    return KnownLoss(name, _well, ONE, np.zeros(parameters), "the minimum", regular, regular, 1.0)


def _well(w: Any, data: Any) -> Any:
    return data[:, 0] * -w.__array_namespace__().expm1(-0.5 * (w**2).sum(axis=-1))[..., None]


def saddle() -> KnownLoss:
    """L = w1^2 / 2 + (w2^2 - 1)^2 / 4 at the origin, whose Hessian has the eigenvalues 1 and -1; its minima have 1."""
    name = "w1^2 / 2 + (w2^2 - 1)^2 / 4"
    return KnownLoss(name, _saddle, ONE, np.zeros(2), "the origin, a saddle", NOT_KNOWN, known.regular(2))


def _saddle(w: Any, data: Any) -> Any:
    return (w[..., 0] ** 2 / 2 + (w[..., 1] ** 2 - 1) ** 2 / 4)[..., None] * data[:, 0]


# --- functions of weights and data ---


def relu_unit(scale: float) -> KnownLoss:
    """L = mean_x (b relu(a x) - relu(x))^2 at (a, b) = (c, 1 / c): rescaling a unit leaves its function as it is.

    One direction changes the function and one does not: 1/2 for every c.
    """
    inputs, half = np.linspace(-2, 2, 9), known.regular(1)
    null_loss = float(np.mean(np.maximum(inputs, 0) ** 2))
    point, at = np.array([scale, 1 / scale]), f"({scale:g}, {1 / scale:g})"
    name, given = f"ReLU unit rescaled by {scale:g}", "9 inputs from -2 to 2"
    return KnownLoss(name, _relu_unit, inputs, point, at, half, half, null_loss, given=given)


def _relu_unit(w: Any, inputs: Any) -> Any:
    wanted = inputs.__array_namespace__().maximum(inputs, 0.0)
    inner = w.__array_namespace__().maximum(w[..., :1] * inputs, 0.0)
    return (w[..., 1:] * inner - wanted) ** 2


def regression(samples: int = 1000, parameters: int = 10, noise: float = 0.7, seed: int = 0) -> KnownLoss:
    """Least squares with data: loss_i = (w.x_i - y_i)^2 at the least-squares solution of all samples."""
    x, y = regression_data(samples, parameters, noise, seed)
    solution, regular = np.linalg.lstsq(x, y, rcond=None)[0], known.regular(parameters)
    name, null_loss = f"least squares, {samples} tasks, d = {parameters}", float(np.mean(y**2))
    at, given = "the least-squares solution", f"{samples} normal samples, seed {seed}"
    return KnownLoss(name, _regression, (x, y), solution, at, regular, regular, null_loss, given=given)


def regression_data(samples: int, parameters: int, noise: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """x [n, d] of normal numbers, y [n] their sum and noise."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((samples, parameters))
    return x, x.sum(axis=1) + noise * rng.standard_normal(samples)


def _regression(w: Any, data: tuple[Any, Any]) -> Any:
    x, y = data
    return (w @ x.T - y) ** 2


# --- matrices ---


def deep_linear(widths: Sequence[int], rank: int) -> KnownLoss:
    """L = |W_L ... W_1 - T|^2, T of ones on a diagonal of this rank, at the most degenerate of its solutions.

    There each matrix has the same ones and zeros elsewhere; one hidden width is reduced-rank regression.
    """
    coefficient = known.deep_linear(widths, rank)
    at = "ones on a diagonal of this rank, in every matrix" if rank else "the origin"
    return _of_matrices(widths, rank, [rank] * (len(widths) - 1), "", at, coefficient, coefficient)


def generic(widths: Sequence[int], rank: int, cut: int = 1) -> KnownLoss:
    """The same loss where every matrix but W_cut has full rank: W_cut has `rank` ones on its diagonal, the others all.

    Widths must not rise up to W_cut nor fall behind it. Its solutions then are a manifold of codimension
    c = h h' + r (M - h) + r (N - h'), h and h' the widths of W_cut, M and N the ends: the matrices before and behind
    it must span T's rows and columns, and W_cut follows from them. The minimum is Morse-Bott, of c / 2.
    """
    before, behind = list(widths[:cut]), list(widths[cut:])
    require(0 < cut < len(widths), f"cut is {cut}; it must be from 1 to {len(widths) - 1}")
    require(
        before == sorted(before, reverse=True) and behind == sorted(behind),
        f"widths {tuple(widths)} rise before matrix {cut} or fall behind it: its solutions are not known to be generic",
    )
    h, h_next = before[-1], behind[0]
    local = known.regular(h * h_next + rank * (widths[0] - h) + rank * (widths[-1] - h_next))
    at = f"a generic solution: {rank} ones on the diagonal of W{cut}, all ones on that of the others"
    ranks = [rank if layer == cut else max(widths) for layer in range(1, len(widths))]
    return _of_matrices(widths, rank, ranks, f", generic (W{cut})", at, local, known.deep_linear(widths, rank))


def _of_matrices(
    widths: Sequence[int], rank: int, ranks: Sequence[int], suffix: str, at: str, local: Coefficient, whole: Coefficient
) -> KnownLoss:
    shapes = _shapes(widths)
    matrices = [np.eye(*shape) * (np.arange(shape[1]) < ones) for shape, ones in zip(shapes, ranks, strict=True)]
    target = reduce(lambda product, matrix: matrix @ product, matrices)
    require(int(target.sum()) == rank, f"widths {tuple(widths)} have no solution of rank {rank}")
    name = f"({', '.join(map(str, widths))}), rank {rank}{suffix}"
    point, null_loss = np.concatenate([matrix.ravel() for matrix in matrices]), float(rank) or math.inf
    losses, gradient = _matrix_functions(tuple(widths))
    given = f"one target of rank {rank}"
    return KnownLoss(name, losses, target[None], point, at, local, whole, null_loss, gradient, given)


def _shapes(widths: Sequence[int]) -> list[tuple[int, int]]:
    return [(after, before) for before, after in pairwise(widths)]


@lru_cache
def _matrix_functions(widths: tuple[int, ...]) -> tuple[Losses, Callable[[Any, Any], Any]]:
    """The losses, and the gradient of their mean: 2 (W_L ... W_k+1)^T (W_L ... W_1 - T) (W_k-1 ... W_1)^T of W_k."""
    shapes = _shapes(widths)
    ends = [0, *np.cumsum([math.prod(shape) for shape in shapes])]

    def matrices(w: Any) -> list[Any]:
        parts = [w[..., begin:end] for begin, end in pairwise(ends)]
        return [part.reshape(*w.shape[:-1], *shape) for part, shape in zip(parts, shapes, strict=True)]

    def losses(w: Any, targets: Any) -> Any:
        product = reduce(lambda product, matrix: matrix @ product, matrices(w))
        return ((product[..., None, :, :] - targets) ** 2).sum(axis=(-2, -1))

    def gradient(w: np.ndarray, targets: np.ndarray) -> np.ndarray:
        layers = matrices(w)
        products = [layers[0]]
        for layer in layers[1:]:
            products.append(layer @ products[-1])
        left, parts = 2 * (products[-1] - targets.mean(axis=0)), []
        for k in reversed(range(1, len(layers))):
            parts.append(left @ products[k - 1].swapaxes(-1, -2))
            left = layers[k].swapaxes(-1, -2) @ left
        flat = [part.reshape(*w.shape[:-1], -1) for part in (left, *reversed(parts))]
        return np.concatenate(flat, axis=-1)

    return losses, gradient


# --- by formula ---

FORMULAS: dict[str, Callable[..., KnownLoss]] = {
    function.__name__: function
    for function in (
        *(quadratic, powers, quartic, crossing, line_and_dot, sphere, well, saddle),
        *(relu_unit, regression, deep_linear, generic),
    )
}


def made(formula: str) -> KnownLoss:
    """The model of a formula: the name of a function above and its arguments, which are literals."""
    name, arguments = parsed(formula)
    return FORMULAS[name](*arguments)


def parsed(formula: str) -> tuple[str, tuple[Any, ...]]:
    """The name of a formula's function, and its arguments."""
    name, _, arguments = formula.removesuffix(")").partition("(")
    try:
        require(name in FORMULAS, "")
        return name, ast.literal_eval(f"({arguments},)") if arguments else ()
    except (SyntaxError, ValueError):
        raise ConfigError(f"{formula!r} is not a formula of a model; known are {', '.join(FORMULAS)}") from None
