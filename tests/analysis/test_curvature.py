"""Ends of a Hessian's spectrum by Lanczos, compared with NumPy's eigenvalues of the dense matrix."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from icl_lab.analysis.hessian import eigenvalue_ends, largest_eigenvalue
from icl_lab.src.model import Model

RNG = np.random.default_rng(0)


def quadratic(size: int) -> tuple[Model, np.ndarray, Any]:
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
def test_ends_are_those_of_the_dense_hessian(size: int) -> None:
    model, matrix, params = quadratic(size)
    spectrum = np.linalg.eigvalsh(matrix)
    tasks = np.array([0.5, 1.5])  # losses are averaged over tasks
    tolerance = 1e-2 * np.abs(spectrum).max()
    assert eigenvalue_ends(model, params, tasks) == pytest.approx((spectrum[0], spectrum[-1]), abs=tolerance)
    assert largest_eigenvalue(model, params, tasks) == pytest.approx(spectrum[-1], abs=tolerance)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("kept", [2, 12])
def test_a_mask_takes_the_block_of_what_moves(kept: int) -> None:
    model, matrix, params = quadratic(30)
    mask = {"a": {"w": np.zeros(1)}, "b": {"w": (np.arange(29) < kept)[None].astype(float)}}
    block = np.linalg.eigvalsh(matrix[1 : kept + 1, 1 : kept + 1])
    found = eigenvalue_ends(model, params, np.ones(1), mask)
    assert found == pytest.approx((block[0], block[-1]), abs=1e-2 * np.abs(block).max())
