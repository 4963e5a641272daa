"""Least squares, averaging and neighbours, prefix by prefix, against NumPy and scikit-learn."""

from functools import partial

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsRegressor

from icl_lab.baselines.functions.linear import averaging, least_squares, least_squares_on_squares
from icl_lab.baselines.functions.nearest import nearest_neighbours
from icl_lab.src.checks import ConfigError

close = partial(np.testing.assert_allclose, rtol=1e-9, atol=1e-9)
METHODS = (averaging, least_squares, least_squares_on_squares, nearest_neighbours)


def prompts(seed=0, size=5, pairs=9, dim=4):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(size, pairs, dim)), rng.normal(size=(size, pairs))


def by_prefix(predict, x, y):
    """Predictions [B, N] of predict(x [k, D], y [k], x_k [D]), one at a time; the first is 0."""
    return np.array(
        [[predict(xs[:k], ys[:k], xs[k]) if k else 0 for k in range(len(ys))] for xs, ys in zip(x, y, strict=True)]
    )


def test_least_squares_is_of_least_norm():
    x, y = prompts()
    close(least_squares(x, y), by_prefix(lambda x, y, q: np.linalg.lstsq(x, y)[0] @ q, x, y))


def test_least_squares_finds_noise_free_functions():
    x, _ = prompts()
    linear, squares = x @ [1.0, -2, 0.5, 0], x**2 @ [1.0, -2, 0.5, 0]
    close(least_squares(x, linear)[:, 4:], linear[:, 4:])
    close(least_squares_on_squares(x, squares)[:, 4:], squares[:, 4:], atol=1e-7)


def test_float32_inputs_in_a_subspace_count_as_such():
    """Inputs of rank 2 in 4 dimensions: labels linear in them are known after two pairs, rounding or not."""
    rng = np.random.default_rng(1)
    x = (rng.normal(size=(20, 9, 2)) @ rng.normal(size=(20, 2, 4))).astype(np.float32)
    y = (x @ np.ones(4)).astype(np.float32)
    close(least_squares(x, y)[:, 3:], y[:, 3:], atol=1e-3)


def test_averaging_is_the_mean_of_y_x():
    x, y = prompts()
    close(averaging(x, y), by_prefix(lambda x, y, q: (y @ x / len(y)) @ q, x, y))


@pytest.mark.parametrize("neighbours", [1, 3])
def test_neighbours_are_those_of_scikit_learn(neighbours):
    def reference(x, y, query):
        return KNeighborsRegressor(min(neighbours, len(y))).fit(x, y).predict(query[None])[0]

    x, y = prompts()
    close(nearest_neighbours(x, y, neighbours=neighbours), by_prefix(reference, x, y))


@pytest.mark.parametrize("method", METHODS)
def test_a_prediction_knows_the_pairs_before_it_alone(method):
    x, y = prompts()
    found = method(x, y)
    close(found[:, 0], 0)
    later = y.copy()
    later[:, 5:] = 7
    x[:, 6:] = 3
    close(method(x, later)[:, :6], found[:, :6])


@pytest.mark.parametrize("method", METHODS)
def test_given_positions_are_columns(method):
    x, y = prompts()
    close(method(x, y, (0, 7, 3)), method(x, y)[:, [0, 7, 3]])
    with pytest.raises(ConfigError, match="from 0 to 8"):
        method(x, y, (9,))


def test_other_shapes_are_refused():
    x, y = prompts()
    with pytest.raises(ConfigError, match=r"\[B, N, D\]"):
        least_squares(x, y[:, :3])
