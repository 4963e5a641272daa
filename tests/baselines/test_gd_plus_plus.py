"""GD++ with fitted rates, the best and the paper's: known levels, identities, and what is refused."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array
from scipy.optimize import OptimizeResult, minimize_scalar

from icl_lab.baselines import gd_plus_plus as fits
from icl_lab.baselines.gd_plus_plus import (
    Rates,
    expected_losses,
    fit_gd_plus_plus,
    gd_plus_plus_losses,
    is_minimum,
    sampled_spectra,
    shared_optimum,
    train_gd_plus_plus,
    trained_gd_plus_plus,
)
from icl_lab.baselines.gradient_descent import gd_plus_plus
from icl_lab.baselines.step_sizes import after_a_step, condition_number, eigenvalues
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
    ("steps", "shared", "level", "statistic", "is_best"),
    [
        (2, True, 0.1104, np.mean, True),
        (3, True, 0.078, np.mean, True),
        (5, True, 0.052, np.mean, True),
        (10, True, 0.039, np.mean, False),  # the prototype's, of a short training as the paper's: the best have .031
        (2, False, 0.1037, np.mean, False),
        (5, False, 0.0175, np.mean, False),
        (5, False, 0.013, np.median, False),  # of the prototype's short search: ours finds .003
    ],
)
def test_the_papers_setting_reaches_the_known_levels(
    steps: int, shared: bool, level: float, statistic: Callable[[np.ndarray], float], is_best: bool
) -> None:
    """Levels of independent searches: to 3 % where they are of the best rates; else that or less.

    Rates of each step's own have many optima. 32 768 contexts give means to 1 %.
    """
    rates = fit_gd_plus_plus(DataConfig(), steps, shared, 0)
    found = float(statistic(gd_plus_plus_losses(rates, DataConfig(), 77, 32_768)))
    assert found <= level * 1.03
    assert not is_best or found >= level * 0.97


@pytest.mark.slow
def test_the_best_gamma_of_two_steps_is_the_derived_one() -> None:
    """.176 at N = 10, from an independent search; fitted on sampled contexts, which give it to 1 %."""
    assert float(fit_gd_plus_plus(DataConfig(), 2, True, 0).gammas[0]) == pytest.approx(0.176, rel=0.05)


TUNED = 50_000  # contexts that choose a step size, and as many others that it is tried on


@pytest.mark.parametrize(
    ("steps", "level", "error"),
    [
        (2, 0.1566, 2e-5),
        (5, 0.1086, 6e-5),
        (10, 0.0848, 3.1e-4),
        pytest.param(12, 0.0795, 3.8e-4, marks=pytest.mark.slow),
    ],
)
def test_gradient_descent_tuned_on_other_contexts_has_the_derived_loss(steps: int, level: float, error: float) -> None:
    """At gamma = 0. Levels and their standard errors are of a million contexts in NumPy, at the best step size.

    Within three standard errors of both means, and the last digit. At ten and twelve steps few contexts of large
    eigenvalues make the mean, one of them .3 %: the prototype's .0840 and .0785, of fewer contexts, hold fewer.
    """
    chosen, tried = tuned_spectra()

    @jax.jit
    def losses(c: float, spectra: Array) -> Array:
        return expected_losses(Rates(jnp.full(steps, c), jnp.zeros(steps)), spectra, DataConfig())

    with jax.enable_x64(True):
        best = minimize_scalar(lambda c: float(losses(c, chosen).mean()), bounds=(0.3, 0.8), method="bounded").x
        found = np.asarray(losses(best, tried))
    assert abs(found.mean() - level) < 3 * np.hypot(found.std() / np.sqrt(TUNED), error) + 5e-5


@cache
def tuned_spectra() -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues of the paper's contexts: of those that choose, and of others."""
    first, second = (sampled_spectra(key, DataConfig(), TUNED) for key in jax.random.split(jax.random.key(0)))
    return first, second


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
        (True, 0.0, fits.LARGEST, False),  # flat, as it is not finite
    ],
)
def test_a_fit_is_at_a_minimum_or_it_is_not(success: bool, slope: float, value: float, expected: bool) -> None:
    end = OptimizeResult(x=np.array([2.0]), success=success, jac=np.array([slope]), fun=value)
    assert is_minimum(end) == expected


def test_rates_that_have_not_converged_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fits, "is_minimum", lambda fit: False)
    monkeypatch.setattr(fits, "HELD_OUT", 64)
    monkeypatch.setattr(fits, "LEARNED", 64)
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


PAPER = DataConfig()


def loss(rates: Rates, tasks: int = 65_536) -> float:
    return float(gd_plus_plus_losses(rates, PAPER, 77, tasks).mean())


@pytest.mark.parametrize(
    ("steps", "level"),
    [
        (2, 0.1107),
        pytest.param(5, 0.0526, marks=pytest.mark.slow),
        pytest.param(10, 0.0386, marks=pytest.mark.slow),
    ],
)
def test_it_reaches_the_known_levels(steps: int, level: float) -> None:
    """Of an independent simulation of the procedure: .1107, .0526, .0386, to 1 %."""
    rates = train_gd_plus_plus(PAPER, steps, 0)
    assert loss(rates) == pytest.approx(level, rel=0.01)
    assert len(set(rates.step_sizes.tolist())) == len(set(rates.gammas.tolist())) == 1


@pytest.mark.slow
def test_at_ten_steps_the_best_rates_are_others() -> None:
    """.039 and .031 to .032: the best step size is about twice as large."""
    trained, best = train_gd_plus_plus(PAPER, 10, 0), fit_gd_plus_plus(PAPER, 10, True, 0)
    assert loss(best) < 0.033 < 0.038 < loss(trained)
    assert best.step_sizes[0] > 1.7 * trained.step_sizes[0]
    two = train_gd_plus_plus(PAPER, 2, 0), fit_gd_plus_plus(PAPER, 2, True, 0)
    np.testing.assert_allclose(two[0], two[1], rtol=0.01)


def test_training_starts_from_one_learning_rate_for_labels_and_inputs() -> None:
    """gamma = c / N: no other such c is better on the same contexts, to the grid's spacing."""
    with jax.enable_x64(True):
        spectra = jnp.asarray(sampled_spectra(jax.random.key(3), PAPER, 2048))
        found = shared_optimum(spectra, PAPER, 3)

    def loss_of(c: float) -> float:
        left, shrunk = np.ones(spectra.shape), np.ones(spectra.shape)
        for _ in range(3):
            now = np.asarray(spectra) * shrunk**2
            left, shrunk = left * (1 - c * now), shrunk * (1 - c / 10 * now)
        return float(np.mean(np.sum(left**2, axis=1)) / 24)

    around = np.arange(0.1, 4, 0.01)
    assert found == pytest.approx(around[np.argmin([loss_of(c) for c in around])], abs=0.02)


def test_it_is_a_predictor_and_repeatable() -> None:
    data = DataConfig(dim=3, num_pairs=6)
    rates = train_gd_plus_plus(data, 2, 1)
    batch = sample_batch(jax.random.key(0), data, 20)
    expected = gd_plus_plus(batch, rates.step_sizes[0], rates.gammas[0], 2)
    train_gd_plus_plus.cache_clear()
    np.testing.assert_allclose(trained_gd_plus_plus(data, 2, 1)(batch), expected, rtol=1e-6)
