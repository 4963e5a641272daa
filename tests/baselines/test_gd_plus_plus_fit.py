"""Learned rates of GD++, and the spectrum that explains them."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import OptimizeResult

from icl_lab.baselines import gd_plus_plus_fit
from icl_lab.baselines.gd_plus_plus_fit import Rates, fit_gd_plus_plus, gd_plus_plus_losses, is_minimum
from icl_lab.baselines.gradient_descent import gd_plus_plus
from icl_lab.baselines.spectrum import after_a_step, condition_number, eigenvalues
from icl_lab.src.checks import ConfigError
from icl_lab.src.data import sample_batch
from icl_lab.src.data_config import DataConfig
from icl_lab.src.one_step import one_step_size

SMALL = DataConfig(dim=3, num_pairs=6)


def sampled_loss(rates: Rates, data: DataConfig, tasks: int) -> tuple[float, float]:
    """The loss of GD++ as a predictor on sampled tasks, and its standard error."""
    batch = jax.jit(sample_batch, static_argnums=(1, 2))(jax.random.key(9), data, tasks)
    predictions = gd_plus_plus(batch, rates.step_sizes, rates.gammas, len(rates.gammas))
    errors = 0.5 * np.asarray(predictions - batch.y_query, np.float64) ** 2
    return float(errors.mean()), float(errors.std() / np.sqrt(tasks))


@pytest.mark.parametrize(
    "data", [SMALL, DataConfig(dim=3, num_pairs=6, weight_scale=2.0, input_distribution="gaussian", input_range=0.4)]
)
@pytest.mark.parametrize("noise", [pytest.param(0.0, marks=pytest.mark.slow), 0.3])
def test_the_expected_loss_is_the_mean_over_sampled_tasks(data: DataConfig, noise: float) -> None:
    """Less the label noise of the query itself, which nothing predicts; within four standard errors."""
    data = replace(data, noise_std=noise)
    rates = Rates(jnp.array([0.9, 0.5, 1.1]), jnp.array([0.1, 0.2, 0.05]))
    sampled, error = sampled_loss(rates, data, 100_000)
    expected = gd_plus_plus_losses(rates, data, 5, 100_000).mean()
    assert sampled == pytest.approx(expected + 0.5 * noise**2, abs=4 * error)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("steps", "shared", "level"), [(2, True, 0.1104), (5, True, 0.052), (2, False, 0.1037), (5, False, 0.0175)]
)
def test_the_papers_setting_reaches_the_known_levels(steps: int, shared: bool, level: float) -> None:
    """Shared rates to 3 %, for they have one optimum; own rates that or less, for they have many."""
    found = gd_plus_plus_losses(fit_gd_plus_plus(DataConfig(), steps, shared, 0), DataConfig(), 77, 32_768).mean()
    assert found <= level * 1.03
    assert not shared or found >= level * 0.97


def test_rates_of_one_step_are_gradient_descents() -> None:
    rates = fit_gd_plus_plus(SMALL, 1, False, 0)
    assert rates.step_sizes.shape == rates.gammas.shape == (1,)
    assert float(rates.step_sizes[0]) == pytest.approx(one_step_size(SMALL), rel=0.03)  # of 8192 contexts


@pytest.mark.parametrize(
    ("success", "slope", "value", "expected"),
    [
        (True, 9.0, 1.0, True),
        (False, 0.001, 1.0, True),  # rounding ended a line search at a minimum
        (False, 0.1, 1.0, False),
        (True, 0.0, gd_plus_plus_fit.LARGEST, False),  # flat, as it is not finite
    ],
)
def test_a_fit_is_at_a_minimum_or_it_is_not(success: bool, slope: float, value: float, expected: bool) -> None:
    end = OptimizeResult(x=np.array([2.0]), success=success, jac=np.array([slope]), fun=value)
    assert is_minimum(end) == expected


def test_rates_that_have_not_converged_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gd_plus_plus_fit, "is_minimum", lambda fit: False)
    monkeypatch.setattr(gd_plus_plus_fit, "HELD_OUT", 64)
    monkeypatch.setattr(gd_plus_plus_fit, "LEARNED", 64)
    with pytest.raises(ConfigError, match="have not converged"):
        fit_gd_plus_plus(SMALL, 1, False, 11, 1)


def test_learned_rates_are_where_no_change_of_one_helps() -> None:
    """On fresh contexts, for changes of 3 % that cost more than chance gives."""
    rates = fit_gd_plus_plus(SMALL, 2, True, 0)
    best = gd_plus_plus_losses(rates, SMALL, 3, 50_000).mean()
    for c, gamma in ((0.97, 1), (1.03, 1), (1, 0.97), (1, 1.03)):
        nearby = Rates(c * rates.step_sizes, gamma * rates.gammas)
        assert gd_plus_plus_losses(nearby, SMALL, 3, 50_000).mean() > best


@pytest.mark.slow
def test_a_fit_is_repeatable() -> None:
    first = fit_gd_plus_plus(SMALL, 2, False, 3, 2)
    fit_gd_plus_plus.cache_clear()
    np.testing.assert_array_equal(first, fit_gd_plus_plus(SMALL, 2, False, 3, 2))


@pytest.mark.parametrize("gamma", [0.05, 0.3])
def test_a_step_on_the_inputs_maps_the_spectrum(gamma: float) -> None:
    """Against the scatter matrix of inputs that were moved."""
    x = np.asarray(sample_batch(jax.random.key(0), SMALL, 50).x, float)
    scatter = np.einsum("bnd,bne->bde", x, x)
    moved = x - gamma * np.einsum("bnd,bde->bne", x, scatter)
    np.testing.assert_allclose(np.sort(after_a_step(eigenvalues(x), gamma), axis=1), eigenvalues(moved), atol=1e-10)


def test_the_condition_number_is_numpys() -> None:
    x = np.asarray(sample_batch(jax.random.key(1), SMALL, 20).x, float)
    scatter = np.einsum("bnd,bne->bde", x, x)
    np.testing.assert_allclose(condition_number(eigenvalues(x)), np.linalg.cond(scatter), rtol=1e-8)
