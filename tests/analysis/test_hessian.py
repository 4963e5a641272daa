"""Hutchinson's trace and Lanczos's eigenvalue, compared with NumPy's of the dense matrix."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from icl_lab.analysis.hessian import check_probes, hessian, largest_eigenvalue, probes_of, quadratic_forms
from icl_lab.src.checks import ConfigError
from icl_lab.src.model import Model

SIZE = 12
RNG = np.random.default_rng(0)
ROOT = RNG.standard_normal((SIZE, SIZE))
MATRIX = ROOT @ ROOT.T
TASKS = np.array([0.5, 1.5])  # losses are averaged over tasks


def quadratic(matrix: np.ndarray) -> tuple[Model, Any]:
    """L = w.A w / 2, its parameters in two modules."""

    def losses(params: Any, tasks: Any) -> Any:
        w = jnp.concatenate([params["a"]["w"], params["b"]["w"].ravel()])
        return tasks * (w @ jnp.asarray(matrix, w.dtype) @ w) / 2

    params = {"a": {"w": np.ones(1)}, "b": {"w": np.ones((1, SIZE - 1))}}
    return Model(init=lambda key: params, predict=losses, losses=losses), params


@pytest.mark.usefixtures("x64")
def test_forms_are_those_of_the_dense_matrix() -> None:
    model, params = quadratic(MATRIX)
    probes = np.asarray(probes_of(3, 5, SIZE), float)
    assert set(np.abs(probes).ravel()) == {1.0}
    expected = np.einsum("pi,ij,pj->p", probes, MATRIX, probes)
    np.testing.assert_allclose(quadratic_forms(model, params, TASKS, jnp.asarray(probes)), expected, rtol=1e-10)


@pytest.mark.usefixtures("x64")
def test_trace_and_top_eigenvalue() -> None:
    model, params = quadratic(MATRIX)
    values = hessian(model, params, TASKS, probes_of(0, 2000, SIZE))
    assert abs(values["hessian_trace"] - np.trace(MATRIX)) < 4 * values["hessian_trace_se"]
    variance = 2 * np.sum((MATRIX - np.diag(np.diag(MATRIX))) ** 2)  # of v.A v, Hutchinson 1990
    assert values["hessian_trace_se"] == pytest.approx(np.sqrt(variance / 2000), rel=0.1)
    assert values["hessian_top"] == pytest.approx(np.linalg.eigvalsh(MATRIX)[-1], rel=2e-2)


@pytest.mark.usefixtures("x64")
def test_a_diagonal_hessian_needs_no_luck() -> None:
    diagonal = np.arange(1.0, SIZE + 1)
    model, params = quadratic(np.diag(diagonal))
    values = hessian(model, params, TASKS, probes_of(7, 2, SIZE))
    assert values["hessian_trace"] == pytest.approx(diagonal.sum(), rel=1e-10)
    assert values["hessian_trace_se"] == pytest.approx(0, abs=1e-10)


@pytest.mark.parametrize("probes", [-1, 0, 1])
def test_fewer_than_two_probes_are_refused(probes: int) -> None:
    with pytest.raises(ConfigError, match=f"probes is {probes}; it must be 2 or more"):
        check_probes(probes)


RNG = np.random.default_rng(0)


def in_two_modules(size: int) -> tuple[Model, np.ndarray, Any]:
    """L = w.A w / 2 with an indefinite A, its parameters in two modules."""
    root = RNG.standard_normal((size, size))
    matrix = (root + root.T) / 2

    def losses(params: Any, tasks: Any) -> Any:
        w = jnp.concatenate([params["a"]["w"], params["b"]["w"].ravel()])
        return tasks * (w @ jnp.asarray(matrix, w.dtype) @ w) / 2

    params = {"a": {"w": np.zeros(1)}, "b": {"w": np.zeros((1, size - 1))}}
    return Model(init=lambda key: params, predict=losses, losses=losses), matrix, params


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("size", [2, 3, 4, 30])
def test_the_largest_eigenvalue_is_that_of_the_dense_hessian(size: int) -> None:
    model, matrix, params = in_two_modules(size)
    spectrum = np.linalg.eigvalsh(matrix)
    tasks = np.array([0.5, 1.5])  # losses are averaged over tasks
    tolerance = 1e-2 * np.abs(spectrum).max()  # Lanczos stops there
    assert largest_eigenvalue(model, params, tasks) == pytest.approx(spectrum[-1], abs=tolerance)
