"""Classifiers against scikit-learn; the Gaussian prior of trained weights and the posterior over languages by hand."""

from functools import partial
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
from icl_lab.baselines.classifiers import (
    TASKS_AT_ONCE,
    Prior,
    any_language,
    discriminant,
    logistic_regression,
    majority,
    nearest_neighbour,
    posterior_mean,
    prior_of,
    version_space,
)
from icl_lab.baselines.linear_mmse import ridge
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


close = partial(np.testing.assert_allclose, rtol=1e-9, atol=1e-9)  # conditioning takes a digit of float64
predicted = jax.jit(posterior_mean)  # one program for all noises


def prior(seed: int, dim: int = 4) -> Prior:
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(dim, dim))
    return Prior(rng.normal(size=dim), root @ root.T + 0.1 * np.eye(dim))


@pytest.mark.parametrize("noise", [0.05, 1.0, 20.0])
@pytest.mark.parametrize("pairs", [2, 4, 9])
def test_it_is_the_gaussian_posterior_of_the_weights(noise: float, pairs: int, x64: None) -> None:
    """(C^-1 + X'X / noise)^-1 (C^-1 m + X'y / noise), Bishop 2006, Eq. 3.50 and 3.51."""
    batch, own = reference.random_batch(pairs, pairs=pairs), prior(1)
    precision = np.linalg.inv(own.covariance)
    expected = [
        query @ np.linalg.solve(precision + x.T @ x / noise, precision @ own.mean + x.T @ y / noise)
        for x, y, query in zip(batch.x, batch.y, batch.x_query, strict=True)
    ]
    close(predicted(batch, own, noise), expected)


@pytest.mark.parametrize("penalty", [0.01, 1.0, 30.0])
def test_of_mean_0_and_covariance_1_it_is_ridge(penalty: float, x64: None) -> None:
    batch = reference.random_batch(2)
    close(predicted(batch, Prior(np.zeros(4), np.eye(4)), penalty), ridge(batch, penalty))


def test_one_task_alone_is_known_without_context() -> None:
    """The covariance of one is 0, and labels then say nothing."""
    batch, weights = reference.random_batch(3), np.array([[1.0, -2.0, 0.5, 3.0]])
    found = prior_of(weights)
    np.testing.assert_array_equal(found.covariance, np.zeros((4, 4)))
    # float32
    np.testing.assert_allclose(predicted(batch, found, 1.0), batch.x_query @ weights[0], rtol=1e-5, atol=1e-5)


def test_between_two_tasks_labels_choose_a_place_on_their_line(x64: None) -> None:
    """Of weights m - d and m + d the prior has covariance d d^T: w = m + t d, with t by ridge on the residual."""
    batch, m, d = reference.random_batch(4), np.array([1.0, 0, 2, -1]), np.array([0.5, 1, -1, 0])
    found = prior_of(np.stack([m - d, m + d]))
    np.testing.assert_allclose(found.covariance, np.outer(d, d), atol=1e-6)
    expected = []
    for x, y, query in zip(batch.x, batch.y, batch.x_query, strict=True):
        along = x @ d
        expected.append(query @ (m + d * (along @ (y - x @ m)) / (along @ along + 0.3)))
    np.testing.assert_allclose(predicted(batch, found, 0.3), expected, rtol=1e-6)  # the prior is float32


def test_the_prior_has_the_moments_of_the_weights() -> None:
    weights = np.random.default_rng(5).normal(size=(7, 3)) * [1, 5, 0.1] + [2, 0, 1]
    found = prior_of(weights)
    np.testing.assert_allclose(found.mean, weights.mean(axis=0), rtol=1e-5)  # float32
    np.testing.assert_allclose(found.covariance, np.cov(weights.T, bias=True), rtol=1e-4, atol=1e-5)


def test_a_discriminant_is_least_squares() -> None:
    rng = np.random.default_rng(6)
    x, y = rng.normal(size=(200, 5)) @ rng.normal(size=(5, 5)), np.sign(rng.normal(size=200))
    # it adds 1e-6 of the mean variance to each direction's, which here are down to 1e-2 of the mean
    np.testing.assert_allclose(discriminant(x, y), np.linalg.lstsq(x, y)[0], rtol=1e-3, atol=1e-5)


def test_a_discriminant_of_inputs_without_full_rank_is_the_smallest() -> None:
    rng = np.random.default_rng(7)
    x, y = np.repeat(rng.normal(size=(50, 2)), 2, axis=1), np.sign(rng.normal(size=50))
    np.testing.assert_allclose(discriminant(x, y), np.linalg.lstsq(x, y)[0], rtol=1e-4, atol=1e-6)


def by_hand(members: list[list[bool]], strings: list[int], labels: list[float]) -> float:
    """The mean of the query's labels over the languages with the fewest errors."""
    *context, query = strings
    errors = [
        sum((1 if language[string] else -1) != label for string, label in zip(context, labels, strict=True))
        for language in members
    ]
    best = [language for language, wrong in zip(members, errors, strict=True) if wrong == min(errors)]
    return sum(1 if language[query] else -1 for language in best) / len(best)


@pytest.mark.parametrize(("languages", "pairs"), [(1, 3), (3, 1), (5, 4), (40, 6)])
def test_it_is_the_mean_over_the_languages_that_fit_best(languages: int, pairs: int) -> None:
    rng = np.random.default_rng(languages)
    members = rng.random((languages, 30)) < 0.4
    strings = rng.integers(30, size=(300, pairs + 1))
    true = members[rng.integers(languages, size=300)[:, None], strings[:, :-1]]
    flipped = rng.random(true.shape) < np.linspace(0, 1, 300)[:, None]  # from none to all: of no language
    y = np.where(true ^ flipped, 1.0, -1.0)
    expected = [by_hand(members.tolist(), row, own) for row, own in zip(strings.tolist(), y.tolist(), strict=True)]
    np.testing.assert_allclose(version_space(members, strings, y), expected, rtol=1e-12)  # a mean of whole numbers


def test_three_languages() -> None:
    """Strings 0 to 3; the first two languages differ in string 2 alone, the third has none of theirs."""
    members = np.array([[1, 1, 1, 0], [1, 1, 0, 0], [0, 0, 0, 1]], bool)
    strings = np.array([[0, 1, 2], [0, 2, 2], [3, 3, 2], [3, 3, 3], [0, 3, 0]])
    y = np.array([[1, 1], [1, -1], [1, 1], [-1, 1], [1, 1]])
    # undecided; the second; the third; one error each, of which the third has the query; the same, two have it
    np.testing.assert_allclose(version_space(members, strings, y), [0, -1, -1, -1 / 3, 1 / 3])


def test_tasks_beyond_a_chunk_are_as_those_in_it() -> None:
    rng = np.random.default_rng(0)
    members, strings = rng.random((6, 20)) < 0.5, rng.integers(20, size=(TASKS_AT_ONCE + 100, 5))
    y = np.where(rng.random((TASKS_AT_ONCE + 100, 4)) < 0.5, 1.0, -1.0)
    found = version_space(members, strings, y)
    np.testing.assert_array_equal(
        found[TASKS_AT_ONCE - 50 :], version_space(members, strings[TASKS_AT_ONCE - 50 :], y[TASKS_AT_ONCE - 50 :])
    )
    for task in (0, TASKS_AT_ONCE - 1, TASKS_AT_ONCE, TASKS_AT_ONCE + 99):
        expected = by_hand(members.tolist(), strings[task].tolist(), y[task].tolist())
        assert found[task] == pytest.approx(expected, rel=1e-12)


def test_any_language_asks_whether_one_has_the_query() -> None:
    members = np.array([[1, 0, 0, 0], [1, 1, 0, 0]], bool)
    strings = np.array([[3, 0], [0, 1], [0, 2], [1, 3]])
    np.testing.assert_array_equal(any_language(members, strings), [1, 1, -1, -1])
