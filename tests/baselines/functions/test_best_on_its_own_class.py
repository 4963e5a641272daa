"""No method has a smaller mean squared error on a class than its posterior mean, which is calibrated."""

from functools import partial

import numpy as np
import pytest

from icl_lab.baselines.functions.decision_trees import tree_posterior
from icl_lab.baselines.functions.fourier import fourier_posterior
from icl_lab.baselines.functions.gaussian import arc_cosine_regression, linear_posterior
from icl_lab.baselines.functions.linear import averaging, least_squares, least_squares_on_squares
from icl_lab.baselines.functions.nearest import nearest_neighbours
from icl_lab.baselines.functions.sparse_linear import sparse_posterior

SIZE, PAIRS, DIM = 1500, 5, 4
POSTERIORS = {
    "linear": partial(linear_posterior),
    "noisy linear": partial(linear_posterior, noise_variance=0.5),
    "quadratic": lambda x, y: linear_posterior(x**2, y),
    "sparse": partial(sparse_posterior, sparsity=1),
    "fourier": lambda x, y: fourier_posterior(x, y, order=1),
    "tree": partial(tree_posterior, depth=2),
}
OTHERS = (
    averaging,
    least_squares,
    least_squares_on_squares,
    nearest_neighbours,
    partial(nearest_neighbours, neighbours=1),
    lambda x, y: linear_posterior(x, y, 1.0).mean,
    arc_cosine_regression,
)


def prompts(name, rng):
    """Inputs [B, N, D] and labels [B, N] of a class, each drawn as its posterior says."""
    x, w = rng.normal(size=(SIZE, PAIRS, DIM)), rng.normal(size=(SIZE, 1, DIM))
    half, noise = rng.integers(DIM, size=(SIZE, 1)), np.sqrt(0.5) * rng.normal(size=(SIZE, PAIRS))
    draws = {
        "linear": (w * x).sum(axis=2),
        "noisy linear": (w * x).sum(axis=2) + noise,
        "quadratic": (w * x**2).sum(axis=2),
        "sparse": (w * x * (np.arange(DIM) == half[:, :, None])).sum(axis=2),
    }
    if name in draws:
        return x, draws[name]
    if name == "fourier":
        x = rng.uniform(-5, 5, size=(SIZE, PAIRS, 1))
        a, b, c = rng.normal(size=(3, SIZE, 1))
        return x, a + b * np.cos(np.pi * x[..., 0] / 5) + c * np.sin(np.pi * x[..., 0] / 5)
    nodes, leaves = rng.integers(DIM, size=(SIZE, 3)), rng.normal(size=(SIZE, 4))
    row = np.arange(SIZE)[:, None]
    first = np.take_along_axis(x, nodes[:, :1, None], axis=2)[..., 0] > 0
    second = x[row, np.arange(PAIRS)[None], nodes[row, 1 + first]] > 0
    return x, leaves[row, 2 * first + second]


@pytest.mark.parametrize("name", POSTERIORS)
def test_nothing_loses_less_and_it_is_calibrated(name):
    """The mean loss over all positions; E[mean (y - mean)] = 0 at each, within 4 standard errors."""
    x, y = prompts(name, np.random.default_rng(7))
    mean = POSTERIORS[name](x, y).mean
    least = np.mean((mean - y) ** 2)
    for other in OTHERS:
        assert np.mean((other(x, y) - y) ** 2) > least - 1e-9
    product = mean * (y - mean)
    assert np.all(np.abs(product.mean(axis=0)) <= 4 * product.std(axis=0) / np.sqrt(SIZE) + 1e-6)
    assert np.all(np.mean((mean - y) ** 2, axis=0)[-1] < np.mean(y**2))
