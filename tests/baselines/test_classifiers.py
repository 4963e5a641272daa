from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

from icl_lab.baselines import classifiers
from icl_lab.baselines.classifiers import logistic_regression, majority, nearest_neighbour
from icl_lab.src.batch import Batch
from tests import reference

fitted = jax.jit(logistic_regression)  # one program for all penalties


def labelled(seed: int, pairs: int = 8, dim: int = 4, size: int = 6, scale: float = 1.0) -> Batch:
    """Labels 1 and -1, of which each context has both."""
    batch = reference.random_batch(seed, size, pairs, dim)
    y = np.sign(batch.y)
    y[:, :2] = [1.0, -1.0]
    return batch._replace(x=scale * batch.x, x_query=scale * batch.x_query, y=y)


def of_scikit_learn(batch: Batch, penalty: float) -> np.ndarray:
    model = LogisticRegression(C=1 / penalty, fit_intercept=False, solver="newton-cholesky", tol=1e-12, max_iter=1000)
    chances = [
        model.fit(x, y).predict_proba(query[None])[0, 1]
        for x, y, query in zip(batch.x, batch.y, batch.x_query, strict=True)
    ]
    return 2 * np.array(chances) - 1


@pytest.mark.parametrize("penalty", [0.01, 0.1, 1.0, 30.0, 1e4])
@pytest.mark.parametrize(("pairs", "dim"), [(8, 4), (4, 9), (20, 2)])
def test_logistic_regression_is_that_of_scikit_learn(penalty: float, pairs: int, dim: int, x64: None) -> None:
    batch = labelled(pairs, pairs, dim)
    # float64, after 12 of Newton's steps
    np.testing.assert_allclose(fitted(batch, penalty), of_scikit_learn(batch, penalty), atol=1e-6)


@pytest.mark.parametrize("scale", [0.1, 1.0, 5.0])
def test_so_it_is_in_float32(scale: float) -> None:
    batch = labelled(1, 10, 16, scale=scale)
    for penalty in (0.1, 1.0, 100.0):
        # a condition number of 1e4 and float32 leave 3 digits
        np.testing.assert_allclose(fitted(batch, penalty), of_scikit_learn(batch, penalty), atol=1e-3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("scale", "penalty"), [(5.0, 0.01), (30.0, 0.01), (300.0, 1.0)])
def test_where_full_steps_do_not_converge_damped_ones_do(scale: float, penalty: float, dtype: Any) -> None:
    """Twelve full steps were up to 1.9 of 2 away."""
    batch = labelled(7, 10, 16, size=40, scale=scale)
    with jax.enable_x64(dtype == np.float64):
        rounded = batch._replace(**{name: getattr(batch, name).astype(dtype) for name in ("x", "y", "x_query")})
        found = np.asarray(fitted(rounded, penalty), float)
    wide = rounded._replace(**{name: getattr(rounded, name).astype(float) for name in ("x", "y", "x_query")})
    np.testing.assert_allclose(found, of_scikit_learn(wide, penalty), atol=1e-3)


def test_what_is_not_solved_is_nan_and_the_rest_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classifiers, "MOST", 1)
    easy, hard = labelled(1, 10, 16, size=3), labelled(7, 10, 16, size=3, scale=300.0)
    batch = Batch(*(np.concatenate(parts) for parts in zip(easy, hard, strict=True)))
    found = np.asarray(logistic_regression(batch, 1.0))
    assert np.isfinite(found[:3]).all()
    assert np.isnan(found[3:]).all()


def test_labels_may_be_all_the_same(x64: None) -> None:
    """Which scikit-learn refuses: here the loss itself, minimised."""
    batch = labelled(2, pairs=5, dim=3)._replace(y=np.ones((6, 5)))
    expected = []
    for x, query in zip(batch.x, batch.x_query, strict=True):

        def loss(w: np.ndarray, x: np.ndarray = x) -> float:
            return float(np.log1p(np.exp(-x @ w)).sum() + 0.25 * w @ w)

        w = minimize(loss, np.zeros(3), method="BFGS", options={"gtol": 1e-7}).x
        expected.append(2 * expit(query @ w) - 1)
    np.testing.assert_allclose(fitted(batch, 0.5), expected, atol=1e-5)  # of BFGS


def test_a_large_penalty_leaves_a_small_step_of_descent(x64: None) -> None:
    """w -> sum_i y_i x_i / (2 penalty), and 2 p - 1 -> w.x_q / 2."""
    batch = labelled(3)
    s = np.einsum("bn,bnd,bd->b", batch.y, batch.x, batch.x_query)
    np.testing.assert_allclose(1e7 * fitted(batch, 1e7), s / 4, rtol=1e-5, atol=1e-5)


def test_the_nearest_neighbour_is_that_of_scikit_learn() -> None:
    batch = labelled(4, pairs=12, dim=3, size=50)
    expected = [
        KNeighborsClassifier(1, algorithm="brute").fit(x, y).predict(query[None])[0]
        for x, y, query in zip(batch.x, batch.y, batch.x_query, strict=True)
    ]
    assert {*expected} == {1.0, -1.0}
    np.testing.assert_array_equal(nearest_neighbour(batch), expected)


def test_of_neighbours_as_near_it_is_the_first() -> None:
    x = jnp.array([[[3.0, 0.0], [1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]]] * 2)
    y = jnp.array([[1.0, -1.0, 1.0, 1.0], [-1.0, 1.0, -1.0, -1.0]])
    batch = Batch(x, y, jnp.zeros((2, 2)), jnp.zeros(2), jnp.zeros((2, 1)))
    np.testing.assert_array_equal(nearest_neighbour(batch), [-1, 1])
    np.testing.assert_array_equal(nearest_neighbour(batch._replace(x_query=x[:, 3] * 0.9)), [1, -1])


def test_the_majority_is_the_mean_label() -> None:
    y = jnp.array([[1.0, 1.0, 1.0, -1.0], [-1.0, -1.0, -1.0, -1.0], [1.0, -1.0, -1.0, 1.0]])
    batch = Batch(jnp.ones((3, 4, 2)), y, jnp.ones((3, 2)), jnp.zeros(3), jnp.zeros((3, 1)))
    np.testing.assert_array_equal(majority(batch), [0.5, -1, 0])
