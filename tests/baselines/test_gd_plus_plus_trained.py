"""The paper's GD++: two rates after a short training."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from icl_lab.baselines.gd_plus_plus_fit import Rates, fit_gd_plus_plus, gd_plus_plus_losses, sampled_spectra
from icl_lab.baselines.gd_plus_plus_trained import shared_optimum, train_gd_plus_plus, trained_gd_plus_plus
from icl_lab.baselines.gradient_descent import gd_plus_plus
from icl_lab.src.data import sample_batch
from icl_lab.src.data_config import DataConfig

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
