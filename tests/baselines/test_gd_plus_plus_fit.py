"""Learned rates of GD++, and the spectrum that explains them."""

import jax
import numpy as np
import pytest

from baselines.gd_plus_plus_fit import fit_gd_plus_plus, gd_plus_plus_losses
from baselines.spectrum import after_a_step, condition_number, eigenvalues
from src.config import DataConfig
from src.data import sample_batch

SMALL = DataConfig(dim=3, num_pairs=6)


def test_rates_of_one_step_are_the_searched_ones() -> None:
    rates = fit_gd_plus_plus(SMALL, 1, False, 0)
    assert rates.step_sizes.shape == rates.gammas.shape == (1,)
    np.testing.assert_array_equal(rates.step_sizes, fit_gd_plus_plus(SMALL, 1, True, 0).step_sizes)


def test_rates_for_each_step_are_no_worse_than_shared_ones() -> None:
    """On the same 20 000 tasks; by more than twice the standard error of the paired difference."""
    own, shared = (fit_gd_plus_plus(SMALL, 2, sharing, 0, 500) for sharing in (False, True))
    gain = gd_plus_plus_losses(shared, SMALL, 1, 20_000) - gd_plus_plus_losses(own, SMALL, 1, 20_000)
    assert gain.mean() > 2 * gain.std() / np.sqrt(gain.size)
    assert np.ptp(np.asarray(own.gammas)) > 0.01
    assert np.ptp(np.asarray(shared.gammas)) == 0


def test_a_fit_is_repeatable() -> None:
    first = fit_gd_plus_plus(SMALL, 2, False, 3, 50)
    fit_gd_plus_plus.cache_clear()
    np.testing.assert_array_equal(first, fit_gd_plus_plus(SMALL, 2, False, 3, 50))


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
