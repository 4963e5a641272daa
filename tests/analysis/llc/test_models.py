"""Losses whose learning coefficient is known: w* solves them, and the Hessian has the rank that lambda says."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from icl_lab.analysis.llc.validation import cases, known, models
from icl_lab.analysis.llc.validation.models import KnownLoss, gradient, hessian, made, mean_loss
from icl_lab.analysis.llc.validation.targets import ASKED
from icl_lab.src.checks import ConfigError

FORMULAS = sorted({formula for formula, *_ in ASKED})
MORSE_BOTT = [
    *("sphere(2)", "sphere(10)", "relu_unit(4.0)", "regression(50, 4)", "quadratic((1.0, 10.0, 0.0))"),
    *("crossing(2, 1, (1.0, 0.0))", "line_and_dot(1, 2, True)", "quartic(0.001)"),
    *("generic((5, 3, 5), 0)", "generic((7, 3, 5), 2)", "generic((4, 4, 4, 4), 1)", "generic((4, 4, 4, 4), 1, 2)"),
    *("generic((6, 3, 4), 1, 2)", "generic((6, 5, 4, 6), 2, 2)"),
]


def rank(model: KnownLoss) -> int:
    """Of the Hessian: what is below 1e-6 of its largest entry is rounding, 1e-16 / step^2 of the loss."""
    h = hessian(model)
    return int(np.linalg.matrix_rank(h, tol=1e-6 * np.abs(h).max()))


@pytest.mark.parametrize("formula", FORMULAS)
def test_each_point_solves_its_loss(formula: str) -> None:
    """L is 0 at w* and its slope too: but for least squares, whose noise remains, the saddle, and w* off a minimum."""
    model = made(formula)
    loss, slope = mean_loss(model, model.point), gradient(model, model.point)
    if formula.startswith("quadratic") and model.point.any():
        assert loss > 0
        assert np.isnan(model.local.value)
        return
    assert slope == pytest.approx(np.zeros_like(slope), abs=1e-7)
    if formula == "saddle()":
        assert loss == 0.25
        assert np.linalg.eigvalsh(hessian(model)) == pytest.approx([-1, 1], abs=1e-5)
    elif formula.startswith("regression"):
        x, y = model.data
        assert loss == pytest.approx(np.linalg.lstsq(x, y, rcond=None)[1].item() / len(y))
    else:
        assert loss == 0


@pytest.mark.parametrize("formula", MORSE_BOTT)
def test_at_a_morse_bott_minimum_lambda_is_half_the_rank_of_the_hessian(formula: str) -> None:
    model = made(formula)
    assert model.local == known.regular(rank(model))


@pytest.mark.parametrize("formula", [formula for formula in MORSE_BOTT if formula.startswith("generic")])
def test_the_solutions_around_a_generic_point_have_the_dimension_that_its_hessian_leaves(formula: str) -> None:
    """The Hessian has the same rank at solutions nearby, so they are a manifold of that codimension (constant rank)."""
    model, rng = made(formula), np.random.default_rng(0)
    for _ in range(3):
        nearby = _solution_near(model, model.point + 0.05 * rng.standard_normal(len(model.point)))
        assert np.linalg.norm(nearby - model.point) > 0.05  # another one
        assert rank(model._replace(point=nearby)) == rank(model)


def test_the_origin_is_no_such_point() -> None:
    """Nearby solutions of (5, 3, 5), rank 0, have a Hessian of rank 15, the origin one of rank 0: lambda is 6.5."""
    model = made("deep_linear((5, 3, 5), 0)")
    nearby = np.concatenate([np.zeros(15), 0.1 * np.random.default_rng(0).standard_normal(15)])  # A = 0
    assert mean_loss(model, nearby) == 0
    assert (rank(model), rank(model._replace(point=nearby))) == (0, 15)


def _solution_near(model: KnownLoss, w: np.ndarray) -> np.ndarray:
    """By Newton's method in the directions that are curved, so that it stays near: L below 1e-24."""
    for _ in range(60):
        w = w - np.linalg.lstsq(hessian(model._replace(point=w), 1e-5), gradient(model, w), rcond=0.1)[0]
        if mean_loss(model, w) < 1e-24:
            return w
    raise AssertionError("no solution is near")


def test_coefficients_of_generic_points() -> None:
    """By hand: with A = 0 and B = I of (5, 3, 5) the 15 entries of A are fixed, and B is free."""
    model = made("generic((5, 3, 5), 0)")
    a, b = model.point[:15].reshape(3, 5), model.point[15:].reshape(5, 3)
    assert not a.any()
    assert (b == np.eye(5, 3)).all()
    assert (model.local, model.whole) == ((7.5, 1), (6.5, 2))
    assert made("generic((7, 3, 5), 2)").local.value == (7 * 3 + 2 * (5 - 3)) / 2
    assert made("deep_linear((7, 3, 5), 2)").local == (11.5, 1)
    assert made("generic((4, 4, 4, 4), 1)").local.value == 8
    with pytest.raises(ConfigError, match="rise before matrix 2 or fall behind it"):
        models.generic((3, 4, 5), 1, 2)
    with pytest.raises(ConfigError, match="cut is 3; it must be from 1 to 2"):
        models.generic((3, 4, 5), 1, 3)


@pytest.mark.parametrize("formula", ["deep_linear((4, 3, 5), 2)", "generic((3, 3, 4, 5), 1)", "deep_linear((2, 3), 1)"])
def test_gradients_of_matrices_are_differences(formula: str) -> None:
    model = made(formula)
    w = np.random.default_rng(1).standard_normal((2, len(model.point)))
    assert gradient(model, w) == pytest.approx(gradient(model._replace(gradient=None), w), abs=1e-7)


@pytest.mark.parametrize("formula", FORMULAS)
def test_jax_has_the_same_losses(formula: str) -> None:
    """The functions are the cases' that the estimator runs on, to the rounding of 32 bits."""
    model = made(formula)
    case = cases.of(model)
    w = model.point + 0.3 * np.random.default_rng(2).standard_normal(len(model.point))
    tasks = jax.tree.map(jnp.asarray, case.tasks)
    assert np.asarray(jax.jit(case.losses)(jnp.float32(w), tasks)) == pytest.approx(
        model.losses(w, model.data), rel=1e-4, abs=1e-4
    )


def test_a_formula_that_is_none() -> None:
    for formula in ("cubic(1)", "crossing(1, x)", "__import__('os')", "", "quadratic"):
        with pytest.raises(ConfigError) if formula != "quadratic" else pytest.raises(TypeError):
            made(formula)
    with pytest.raises(ConfigError, match="solutions have a coordinate of 0"):
        made("crossing(1, 1, (1.0, 1.0))")


def test_models_and_targets_need_no_jax() -> None:
    code = "import sys, icl_lab.analysis.llc.validation.targets; sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
