from functools import partial

import numpy as np
import pytest

from icl_lab.baselines.gradient_descent import fit_step_size
from icl_lab.baselines.least_squares import (
    Moments,
    biased_layer_features,
    krylov,
    krylov_features,
    layer_and_query_features,
    moments,
    one_layer_features,
    predictor,
    query_features,
    solve,
)
from icl_lab.src.batch import Batch
from tests import reference

close = partial(np.testing.assert_allclose, rtol=1e-9, atol=1e-9)  # sums in another order, of float64
near = partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-6)  # `solve` adds 1e-9 of a feature's mean square


def layer_of(batch: Batch) -> np.ndarray:
    """vec(s x_q^T), task by task."""
    found = []
    for x, y, query in zip(batch.x, batch.y, batch.x_query, strict=True):
        gradient = sum(y_i * x_i for x_i, y_i in zip(x, y, strict=True))
        found.append([gradient[i] * query[j] for i in range(len(query)) for j in range(len(query))])
    return np.array(found)


def gaussian(seed: int, size: int, pairs: int, dim: int) -> Batch:
    """Regression: inputs, weights and queries are standard normal, labels w.x."""
    rng = np.random.default_rng(seed)
    x, query, w = (rng.normal(size=shape) for shape in ((size, pairs, dim), (size, dim), (size, dim)))
    return Batch(x, np.einsum("bnd,bd->bn", x, w), query, np.einsum("bd,bd->b", query, w), w)


# Features


def test_features_are_what_their_names_say(x64: None) -> None:
    batch = reference.random_batch(0, dim=3)
    layer, ones = layer_of(batch), np.ones((5, 1))
    close(one_layer_features(batch), layer)
    close(query_features(batch), np.hstack([batch.x_query, ones]))
    close(biased_layer_features(batch), np.hstack([layer, batch.x_query]))
    close(layer_and_query_features(batch), np.hstack([layer, batch.x_query, ones]))


def test_a_layer_is_s_a_x(x64: None) -> None:
    """theta . vec(s x_q^T) is s^T A x_q for theta = vec A, of an A that is not symmetric."""
    batch, a = reference.random_batch(1, dim=3), np.arange(9.0).reshape(3, 3)
    s = np.einsum("bn,bnd->bd", batch.y, batch.x)
    close(one_layer_features(batch) @ a.ravel(), [one @ a @ query for one, query in zip(s, batch.x_query, strict=True)])


def steps_of(batch: Batch, sizes: tuple[float, ...]) -> np.ndarray:
    """Predictions of gradient descent with a step size for each step, pair by pair."""
    found = []
    for x, y, query in zip(batch.x, batch.y, batch.x_query, strict=True):
        w = np.zeros(x.shape[1])
        for size in sizes:
            w = reference.gd_weights(x, y, size, 1, w)
        found.append(query @ w)
    return np.array(found)


@pytest.mark.parametrize(
    ("sizes", "theta"),
    [
        ((0.3,), [0.3]),
        # w_2 = c_1 s + c_2 (s - S c_1 s)
        ((0.3, 0.05), [0.35, -0.015]),
        # 1 - (1 - c_1 t)(1 - c_2 t)(1 - c_3 t) over t
        ((0.3, 0.05, 0.1), [0.45, -(0.015 + 0.03 + 0.005), 0.0015]),
    ],
)
def test_krylov_features_have_steps_with_sizes_of_their_own(
    sizes: tuple[float, ...], theta: list[float], x64: None
) -> None:
    batch = reference.random_batch(2)
    close(krylov_features(batch, len(sizes)) @ np.array(theta), steps_of(batch, sizes))
    assert krylov(len(sizes)) is krylov(len(sizes))
    close(krylov(len(sizes))(batch), krylov_features(batch, len(sizes)))


# Moments and solutions


def test_moments_are_means_over_all_batches(x64: None) -> None:
    """Tasks count alike, however many a batch has."""
    batches = [reference.random_batch(seed, size=size, dim=2) for seed, size in ((3, 4), (4, 9), (5, 2))]
    z = np.concatenate([layer_of(batch) for batch in batches])
    y = np.concatenate([batch.y_query for batch in batches])
    found = moments(one_layer_features, batches)
    close(found.gram, np.mean([np.outer(row, row) for row in z], axis=0))
    close(found.moment, np.mean([row * label for row, label in zip(z, y, strict=True)], axis=0))


@pytest.mark.parametrize(
    ("features", "columns"),
    [(one_layer_features, slice(9)), (biased_layer_features, slice(12)), (query_features, slice(9, None))],
)
def test_solutions_are_those_of_least_squares(features: object, columns: slice, x64: None) -> None:
    """Of all features in one pass, those asked for."""
    batches = [reference.random_batch(seed, size=200, dim=3) for seed in (6, 7)]
    all_features = np.concatenate([np.hstack([layer_of(b), b.x_query, np.ones((200, 1))]) for b in batches])
    y = np.concatenate([batch.y_query for batch in batches])
    expected = np.linalg.lstsq(all_features[:, columns], y)[0]
    near(solve(moments(layer_and_query_features, batches), columns), expected)
    near(solve(moments(features, batches)), expected)
    chosen = np.arange(13)[columns][::-2]
    near(solve(moments(layer_and_query_features, batches), chosen), np.linalg.lstsq(all_features[:, chosen], y)[0])


def test_scales_of_features_do_not_matter() -> None:
    """One is a million of another: both are solved for, with the same relative error."""
    rng = np.random.default_rng(8)
    z, y = rng.normal(size=(100, 2)) * [1e-3, 1e3], rng.normal(size=100)
    near(solve(Moments(z.T @ z, z.T @ y)), np.linalg.lstsq(z, y)[0], atol=0)


def test_a_feature_that_is_always_0_or_anothers_double_does_no_harm() -> None:
    rng = np.random.default_rng(9)
    one, y = rng.normal(size=100), rng.normal(size=100)
    z = np.stack([one, np.zeros(100), one], axis=1)
    theta = solve(Moments(z.T @ z, z.T @ y))
    assert theta[1] == 0
    near(z @ theta, one * (one @ y) / (one @ one))


def test_the_optimum_of_gaussian_regression_is_a_step_of_one_size() -> None:
    """A = c I with c = 1 / (N + D + 1): E[s w^T] = N I and E[S w w^T S] = E[S^2] = N (N + D + 1) I."""
    pairs, dim = 6, 2
    batches = [gaussian(seed, 20_000, pairs, dim) for seed in range(5)]
    theta = solve(moments(one_layer_features, batches))
    c = 1 / (pairs + dim + 1)
    # a standard error is .007 c, as fits of other tasks show: 4 of them
    np.testing.assert_allclose(theta.reshape(dim, dim), c * np.eye(dim), atol=0.03 * c)
    z = np.concatenate([layer_of(batch) for batch in batches[:1]])
    alone = solve(moments(one_layer_features, batches[:1]))
    np.testing.assert_allclose(alone, np.linalg.lstsq(z, batches[0].y_query)[0], rtol=1e-4, atol=1e-6)  # z in float32


def test_of_one_feature_it_is_the_fitted_step_size() -> None:
    batch = gaussian(10, 500, 6, 3)
    theta = solve(moments(krylov(1), [batch]))
    np.testing.assert_allclose(theta, [fit_step_size(batch)], rtol=1e-5)  # float32
    restricted = layer_of(batch).reshape(500, 3, 3).trace(axis1=1, axis2=2)[:, None]
    np.testing.assert_allclose(theta, np.linalg.lstsq(restricted, batch.y_query)[0], rtol=1e-5)


def test_the_optimum_is_no_worse_than_any_other_layer(x64: None) -> None:
    batch = gaussian(11, 300, 4, 3)
    z, theta = layer_of(batch), solve(moments(one_layer_features, [batch]))

    def loss(of: np.ndarray) -> float:
        return float(np.mean((z @ of - batch.y_query) ** 2))

    rng = np.random.default_rng(0)
    for _ in range(20):
        assert loss(theta) < loss(theta + 1e-3 * rng.normal(size=9))


def test_a_predictor_is_theta_on_its_features() -> None:
    batch, theta = reference.random_batch(12, dim=3), np.linspace(-1, 1, 9)
    found = predictor(one_layer_features, theta)
    np.testing.assert_allclose(found(batch), layer_of(batch) @ theta, rtol=1e-5, atol=1e-5)  # float32
    other = predictor(one_layer_features, 2 * theta)
    assert found.func == other.func  # one program for both
    np.testing.assert_allclose(other(batch), 2 * layer_of(batch) @ theta, rtol=1e-5, atol=1e-5)
