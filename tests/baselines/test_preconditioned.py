"""One preconditioned step: published and derived numbers, simulation at settings in no paper, and its optimality."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from icl_lab.baselines import preconditioned
from icl_lab.src.checks import ConfigError
from icl_lab.src.data import sample_batch
from icl_lab.src.data_config import DataConfig
from icl_lab.src.prng import key

RECIPROCAL = DataConfig(10, 20, "gaussian", spectrum="power_law")
NOISY = replace(RECIPROCAL, noise_std=0.5)
SQUARE = replace(RECIPROCAL, spectrum_exponent=2.0)
LOG = replace(RECIPROCAL, spectrum="log_spaced", condition_number=100.0, num_pairs=40)
UNIFORM = replace(RECIPROCAL, input_distribution="uniform", input_range=12**0.5)
INVERSE = replace(RECIPROCAL, task_covariance="inverse")
ROTATED = replace(RECIPROCAL, axes="rotated")
REVERSED = tuple(1 / i for i in range(10, 0, -1))
INFINITE = 10**9  # pairs


def best(data):
    return preconditioned.loss(preconditioned.preconditioner(data), data)


def of_direction(direction, data):
    return preconditioned.loss(preconditioned.scaled(np.asarray(direction, float), data), data)


@pytest.mark.parametrize(
    ("data", "optimum", "gd", "inverse"),
    [
        (RECIPROCAL, 0.4669, 0.6555, 0.5197),
        (SQUARE, 0.1789, 0.2667, 0.2750),
        (LOG, 0.2026, 0.3728, 0.2676),
        (UNIFORM, 0.4223, 0.6143, 0.4816),
        (INVERSE, 1.774, None, 1.774),
    ],
)
def test_the_optimum_gradient_descent_and_the_inverse_have_the_derived_losses(data, optimum, gd, inverse):
    eigenvalues = preconditioned.fixed_eigenvalues(data)
    assert best(data) == pytest.approx(optimum, abs=5e-4 if optimum > 1 else 5e-5)
    if gd:
        assert of_direction(np.ones(10), data) == pytest.approx(gd, abs=5e-5)
    assert of_direction(1 / eigenvalues, data) == pytest.approx(inverse, abs=5e-4 if inverse > 1 else 5e-5)


@pytest.mark.parametrize(
    ("data", "changes", "expected", "digits"),
    [
        (NOISY, {}, 0.4877, 4),
        (NOISY, {"num_pairs": 5}, 1.365, 3),
        (NOISY, {"num_pairs": 200}, 0.2246, 4),
        (NOISY, {"num_pairs": INFINITE}, 0.1954, 4),
        (NOISY, {"spectrum": "given", "eigenvalues": REVERSED}, 6.29, 2),
        (NOISY, {"spectrum": "given", "eigenvalues": REVERSED, "num_pairs": INFINITE}, 4.25, 2),
        (SQUARE, {"num_pairs": 5}, 0.4996, 4),
        (SQUARE, {"num_pairs": INFINITE}, 0.0721, 4),
        (LOG, {"num_pairs": 200}, 0.0858, 4),
        (LOG, {"num_pairs": INFINITE}, 0.0566, 4),
    ],
)
def test_the_trained_step_has_the_derived_losses_elsewhere(data, changes, expected, digits):
    found = preconditioned.loss(preconditioned.preconditioner(data), replace(data, **changes))
    assert found == pytest.approx(expected, abs=0.6 * 10**-digits)


def test_where_axes_are_drawn_it_is_gradient_descent():
    a = preconditioned.preconditioner(ROTATED)
    eigenvalues = 1 / np.arange(1, 11)
    squares, cubes, trace = (np.sum(eigenvalues**k) for k in (2, 3, 1))
    np.testing.assert_allclose(a, squares / ((1 + 1 / 20) * cubes + trace / 20 * squares))
    assert best(ROTATED) == pytest.approx(0.6555, abs=5e-5)


def test_isotropic_inputs_give_the_closed_form_step_of_gradient_descent():
    from icl_lab.src.one_step import one_step_loss, one_step_size

    for data in (DataConfig(), DataConfig(7, 5, "gaussian", noise_std=0.3, weight_scale=2.0)):
        a = preconditioned.preconditioner(data)
        np.testing.assert_allclose(a, one_step_size(data) * data.num_pairs)
        assert best(data) + data.noise_std**2 / 2 == pytest.approx(one_step_loss(data, one_step_size(data)))


IN_NO_PAPER = {
    "log-uniform in rotated axes, noise": replace(
        ROTATED, spectrum="log_uniform", condition_number=50.0, noise_std=0.3, dim=6
    ),
    "log-uniform, tasks of its covariance": replace(
        RECIPROCAL, spectrum="log_uniform", task_covariance="inputs", dim=5, num_pairs=9
    ),
    "uniform inputs, inverse tasks, few pairs": replace(UNIFORM, task_covariance="inverse", num_pairs=7),
    "tasks on a sphere around a mean": replace(RECIPROCAL, task_mean=0.7, task_distribution="sphere"),
    "exact and rotated, isotropic queries": replace(
        LOG, exact_covariance=True, axes="rotated", query_covariance="isotropic"
    ),
    "given, isotropic queries, noise": replace(
        NOISY, spectrum="given", eigenvalues=(4.0, 2.0, 0.1), dim=3, query_covariance="isotropic"
    ),
}
draw = jax.jit(sample_batch, static_argnums=(1, 2))


@pytest.mark.parametrize("name", IN_NO_PAPER)
def test_the_closed_form_is_the_simulated_loss(name):
    """Half the squared error with a noiseless query, within three standard errors of 30 000 tasks."""
    data = IN_NO_PAPER[name]
    a, batch = preconditioned.preconditioner(data), draw(key(11), data, 30_000)
    errors = (
        0.5 * (np.asarray(preconditioned.predict(batch, a), float) - np.einsum("bd,bd->b", batch.w, batch.x_query)) ** 2
    )
    assert abs(errors.mean() - preconditioned.loss(a, data)) < 3 * errors.std() / len(errors) ** 0.5


@pytest.mark.parametrize("shift", [{"num_pairs": 5}, {"task_mean": 1.0}, {"spectrum": "isotropic"}, {"noise_std": 1.0}])
def test_the_closed_form_of_a_shift_is_the_simulated_loss(shift):
    data = replace(UNIFORM, **shift)
    a, batch = preconditioned.preconditioner(UNIFORM), draw(key(12), data, 30_000)
    errors = (
        0.5 * (np.asarray(preconditioned.predict(batch, a), float) - np.einsum("bd,bd->b", batch.w, batch.x_query)) ** 2
    )
    assert abs(errors.mean() - preconditioned.loss(a, data)) < 3 * errors.std() / len(errors) ** 0.5


@pytest.mark.parametrize("name", IN_NO_PAPER)
def test_no_step_near_it_is_better(name):
    data = IN_NO_PAPER[name]
    a, loss = preconditioned.preconditioner(data), best(data)
    alike = np.allclose(a, a[0])
    for seed in range(5):
        change = np.random.default_rng(seed).normal(size=1 if alike else data.dim)
        assert preconditioned.loss(a * (1 + 0.05 * change), data) > loss


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"teacher": "relu"}, "the teacher is relu"),
        ({"num_distractors": 2}, "distractor"),
    ],
)
def test_where_nobody_has_derived_it_there_is_none(changes, words):
    with pytest.raises(ConfigError, match=words):
        preconditioned.preconditioner(replace(RECIPROCAL, **changes))


def test_a_step_of_some_axes_has_no_closed_form_in_others():
    with pytest.raises(ConfigError, match="share their axes"):
        preconditioned.loss(preconditioned.preconditioner(RECIPROCAL), ROTATED)
