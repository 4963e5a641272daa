"""Shifts of inputs do what they say, and keep what they do not change."""

import numpy as np
import pytest

from icl_lab.families.functions import shifts
from icl_lab.families.functions.classes.boolean import Parities
from icl_lab.families.functions.classes.labelled import LogisticRegression
from icl_lab.families.functions.classes.linear import Linear
from icl_lab.families.functions.shifts import SHIFTS

PROMPTS, PAIRS, DIM = 4000, 6, 4
X = np.random.default_rng(0).standard_normal((PROMPTS, PAIRS, DIM))


def shifted(name: str, k: int) -> np.ndarray:
    return SHIFTS[name].inputs(X.copy(), k, np.random.default_rng(1))


@pytest.mark.parametrize("k", [1, 3, 5])
def test_quadrants_hold_the_context_and_leave_the_query(k: int) -> None:
    found = shifted("random_quadrants", k)
    assert (np.sign(found[:, :k]) == np.sign(found[:, :1])).all()
    np.testing.assert_array_equal(found[:, k], X[:, k])
    np.testing.assert_array_equal(np.abs(found), np.abs(X))
    opposite = shifted("opposite_quadrants", k)
    assert (np.sign(opposite[:, :k]) == -np.sign(opposite[:, k : k + 1])).all()
    np.testing.assert_array_equal(np.abs(opposite), np.abs(X))


@pytest.mark.parametrize("k", [0, 1, 3])
def test_an_orthogonal_query_has_its_norm_and_no_part_in_the_context(k: int) -> None:
    found = shifted("orthogonal_query", k)
    np.testing.assert_allclose(np.linalg.norm(found[:, k], axis=1), np.linalg.norm(X[:, k], axis=1), rtol=1e-9)
    np.testing.assert_allclose(np.einsum("bnd,bd->bn", found[:, :k], found[:, k]), 0, atol=1e-9)
    np.testing.assert_array_equal(found[:, :k], X[:, :k])
    assert [SHIFTS["orthogonal_query"].has(k, DIM) for k in (0, 3, 4)] == [True, True, False]


def test_a_repeated_query_is_an_input_of_the_context() -> None:
    found = shifted("repeated_query", 3)
    same = (found[:, :3] == found[:, 3:4]).all(axis=2)
    assert (same.sum(axis=1) == 1).all()
    assert (same.mean(axis=0) > 0.3).all()
    assert not SHIFTS["repeated_query"].has(0, DIM)


def test_covariances_have_the_eigenvalues_that_are_said_and_the_former_trace() -> None:
    """Within 5 standard errors of sample eigenvalues, lambda sqrt(2 / n) each."""
    count = PROMPTS * PAIRS
    expected = {"half_subspace": np.array([2.0, 2.0, 0.0, 0.0]), "skewed_covariance": 1 / np.arange(1, DIM + 1) ** 2}
    for name, values in expected.items():
        values = values * DIM / values.sum()
        rows = shifted(name, 0).reshape(count, DIM)
        found = np.sort(np.linalg.eigvalsh(rows.T @ rows / count))[::-1]
        np.testing.assert_allclose(found, values, atol=5 * values.max() * np.sqrt(2 / count))


def test_scales_and_classes_that_have_no_such_shift() -> None:
    np.testing.assert_allclose(shifted("x_a_third", 0), X / 3)
    assert SHIFTS["y_twice"].scale == 2
    assert {name for name, shift in SHIFTS.items() if shift.why_not(Linear())} == set()
    assert SHIFTS["half_subspace"].why_not(Parities()) == "inputs of this class are not N(0, I)"
    assert SHIFTS["y_twice"].why_not(LogisticRegression()) == "labels of this class are not numbers"
    assert not SHIFTS["repeated_query"].why_not(Parities())
    assert shifts.NONE in SHIFTS
