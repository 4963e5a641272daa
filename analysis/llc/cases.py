"""Losses whose learning coefficient is known, as functions of a vector, and their LLC by the estimator of runs.

Each has the loss of a batch of tasks; where a loss is one function of the weights, without data, it is that of one
task. Losses are made once for each shape, so that cases which differ in numbers alone share a compiled program. They
are estimated as runs are: same chains, same diagnostics, same row.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from icl_lab.analysis.llc import any_model, sgld
from icl_lab.analysis.llc.hamiltonian import HmcDraws, hamiltonian
from icl_lab.analysis.llc.loss import Losses, split
from icl_lab.analysis.llc.sampling import Asked, SourceOf
from icl_lab.analysis.llc.settings import Settings
from icl_lab.src.prng import key


class Case(NamedTuple):
    """A loss around w* [d]: its tasks, a pytree with a leading axis, and the null predictor's loss if it has one."""

    name: str
    losses: Losses
    tasks: Any
    centre: np.ndarray
    null_loss: float = math.inf


def quadratic(eigenvalues: Sequence[float] | np.ndarray, off: float = 0.0) -> Case:
    """L = sum_i h_i w_i^2 / 2, at the minimum or with every coordinate `off` it."""
    h = np.asarray(eigenvalues, np.float32)
    listed = ", ".join(f"{value:g}" for value in h) if len(set(h)) > 1 else f"{h[0]:g} ({len(h)} times)"
    name = f"quadratic, h = {listed}{f'; w* at {off:g}' if off else ''}"
    return Case(name, _quadratic, h[None], np.full_like(h, off))


def _quadratic(w: Array, eigenvalues: Array) -> Array:
    return 0.5 * jnp.sum(eigenvalues * w[None] ** 2, axis=1)


def powers(k: int, parameters: int) -> Case:
    """L = sum_i w_i^(2 k): d / (2 k)."""
    return Case(f"sum of w^{2 * k}, d = {parameters}", _powers(k), _ONE, np.zeros(parameters, np.float32))


@lru_cache
def _powers(k: int) -> Losses:
    return lambda w, tasks: tasks[:, 0] * jnp.sum(w ** (2 * k))


def crossing(first: int, second: int) -> Case:
    """L = w1^(2 k1) w2^(2 k2) at the origin."""
    name = f"crossing w1^{2 * first} w2^{2 * second}"
    return Case(name, _crossing(first, second), _ONE, np.zeros(2, np.float32))


@lru_cache
def _crossing(first: int, second: int) -> Losses:
    return lambda w, tasks: tasks[:, 0] * w[0] ** (2 * first) * w[1] ** (2 * second)


def relu_unit(scale: float) -> Case:
    """L = mean_x (b relu(a x) - relu(x))^2 at (a, b) = (c, 1 / c): rescaling a unit leaves its function as it is.

    One direction changes the function and one does not: 1/2 for every c.
    """
    inputs = np.linspace(-2, 2, 9, dtype=np.float32)
    centre = np.array([scale, 1 / scale], np.float32)
    null_loss = float(np.mean(np.maximum(inputs, 0) ** 2))
    return Case(f"ReLU unit rescaled by {scale:g}", _relu_unit, inputs, centre, null_loss)


def _relu_unit(w: Array, inputs: Array) -> Array:
    return (w[1] * jnp.maximum(w[0] * inputs, 0.0) - jnp.maximum(inputs, 0.0)) ** 2


def deep_linear(widths: Sequence[int], rank: int) -> Case:
    """L = |W_L ... W_1 - T|^2, T of ones on a diagonal of this rank, at the most degenerate of its solutions.

    There each matrix has the same ones and zeros elsewhere; one hidden width is reduced-rank regression.
    """
    shapes = [*zip(widths[1:], widths[:-1], strict=True)]
    matrices = [np.eye(*shape, dtype=np.float32) * (np.arange(shape[1]) < rank) for shape in shapes]
    target = np.linalg.multi_dot([*matrices[::-1], np.eye(widths[0], dtype=np.float32)])
    name = f"({', '.join(map(str, widths))}), rank {rank}"
    centre = np.concatenate([matrix.ravel() for matrix in matrices])
    return Case(name, _deep_linear(tuple(widths)), target[None], centre, float(np.sum(target**2)) or math.inf)


@lru_cache
def _deep_linear(widths: tuple[int, ...]) -> Losses:
    shapes = [*zip(widths[1:], widths[:-1], strict=True)]
    ends = np.cumsum([math.prod(shape) for shape in shapes])[:-1]

    def losses(w: Array, targets: Array) -> Array:
        matrices = [part.reshape(shape) for part, shape in zip(jnp.split(w, ends), shapes, strict=True)]
        product = matrices[0]
        for matrix in matrices[1:]:
            product = matrix @ product
        return jnp.sum((product[None] - targets) ** 2, axis=(1, 2))

    return losses


def regression(tasks: int = 1000, parameters: int = 10, noise: float = 0.7, seed: int = 0) -> Case:
    """Least squares with data: loss_i = (w.x_i - y_i)^2 at the least-squares solution of all tasks."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((tasks, parameters))
    y = x.sum(axis=1) + noise * rng.standard_normal(tasks)
    solution = np.linalg.lstsq(x, y, rcond=None)[0]
    data = (x.astype(np.float32), y.astype(np.float32))
    name = f"least squares, {tasks} tasks, d = {parameters}"
    return Case(name, _regression, data, solution.astype(np.float32), float(np.mean(y**2)))


def _regression(w: Array, data: tuple[Array, Array]) -> Array:
    x, y = data
    return (x @ w - y) ** 2


def well(parameters: int) -> Case:
    """L = 1 - exp(-|w|^2 / 2): a quadratic that flattens at the null predictor's loss of 1, as a model's loss does."""
    return Case(f"bounded loss, d = {parameters}", _well, _ONE, np.zeros(parameters, np.float32), 1.0)


def _well(w: Array, tasks: Array) -> Array:
    return tasks[:, 0] * -jnp.expm1(-0.5 * jnp.sum(w**2))


_ONE = np.ones((1, 1), np.float32)


def estimate(
    case: Case, settings: Settings, source_of: SourceOf | None = None
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The row and the traces of a case, as `llc.Estimator` gives them for a run.

    source_of makes the steps' tasks; None, as the settings say.
    """
    found = any_model.estimate(problem(case, source_of), settings)
    return {"step": 0} | found.row(), dict(found.traces)


def problem(case: Case, source_of: SourceOf | None = None) -> any_model.Problem:
    """A case as what an LLC is of."""
    null_loss = case.null_loss if math.isfinite(case.null_loss) else None
    taken = split(case.losses, np.asarray(case.centre))
    return any_model.Problem(
        taken, case.tasks, len(jax.tree.leaves(case.tasks)[0]), None, null_loss, asked=Asked(source_of=source_of)
    )


def losses_at_centre(case: Case) -> np.ndarray:
    """The loss of each task at w* [n]."""
    return np.asarray(case.losses(jnp.asarray(case.centre), case.tasks), np.float64)


def hessian_eigenvalues(case: Case) -> np.ndarray:
    """All eigenvalues of the mean loss's Hessian at w*, in ascending order: of a few hundred parameters."""
    return np.linalg.eigvalsh(np.asarray(_hessian(case.losses, case.centre, case.tasks), np.float64))


@partial(jax.jit, static_argnums=0)
def _hessian(losses: sgld.Losses, centre: Array, tasks: Any) -> Array:
    matrix: Array = jax.hessian(lambda w: losses(w, tasks).mean())(centre)
    return matrix


def reference(case: Case, nbeta: float, gamma: float, chains: int, burn_in: int, draws: int) -> HmcDraws:
    """HMC on the same posterior, with trajectories as long as the localisation is wide."""
    numbers = map(np.float32, (nbeta, gamma, 1 / np.sqrt(gamma), 0.1 / np.sqrt(nbeta + gamma)))
    drawn: HmcDraws = _reference(case.losses, chains, burn_in, draws, case.centre, case.tasks, *numbers)
    return drawn


def chain_means(traces: dict[str, np.ndarray], settings: Settings) -> np.ndarray:
    """The estimate of each chain [C]."""
    return np.asarray(settings.nbeta * traces["excess"][:, settings.burn_in :].mean(axis=1))


@partial(jax.jit, static_argnames=("losses", "chains", "burn_in", "draws"))
def _reference(
    losses: sgld.Losses,
    chains: int,
    burn_in: int,
    draws: int,
    centre: Array,
    tasks: Any,
    nbeta: Array,
    gamma: Array,
    length: Array,
    step_size: Array,
) -> HmcDraws:
    target = sgld.Target(losses, centre, nbeta, gamma)
    return hamiltonian(key(0), target, tasks, chains, burn_in, draws, length, step_size)
