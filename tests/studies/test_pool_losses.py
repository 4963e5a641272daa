"""The exact predictors' losses by themselves, against what must hold of them whatever the pool."""

import numpy as np
import pytest

from icl_lab.src.data_config import PoolData
from icl_lab.studies.task_diversity.pool_losses import exact_losses, smoothed

DATA = PoolData(dim=4, num_pairs=8, input_distribution="gaussian", noise_std=0.125**0.5)
COUNT = 2048


@pytest.fixture(scope="module")
def sixteen() -> dict[str, float]:
    return exact_losses(DATA, 16, 0, COUNT)


def test_ridge_has_the_loss_of_its_closed_form(sixteen: dict[str, float]) -> None:
    """The posterior variance tr((I + X'X / sigma^2)^-1) / D averaged over k: .3835; 2048 sequences give it to 3 %."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((20_000, 8, 4))
    outer = np.cumsum(np.einsum("bkd,bke->bkde", x, x), axis=1)
    before = np.concatenate([np.zeros_like(outer[:, :1]), outer[:, :-1]], axis=1)
    exact = np.trace(np.linalg.inv(np.eye(4) + before / 0.125), axis1=2, axis2=3).mean() / 4
    assert exact == pytest.approx(0.3835, rel=0.005)
    assert sixteen["ood_ridge"] == pytest.approx(exact, rel=0.05)


def test_each_is_best_on_its_own_tasks_by_their_distance(sixteen: dict[str, float]) -> None:
    """L(f) - L(Bayes) = mean (f - Bayes)^2 in expectation, id for dMMSE, ood for ridge; 2048 sequences, 10 %."""
    gained = sixteen["id_ridge"] - sixteen["id_dmmse"]
    lost = sixteen["ood_dmmse"] - sixteen["ood_ridge"]
    assert gained == pytest.approx(sixteen["id_apart"], rel=0.1)
    assert lost == pytest.approx(sixteen["ood_apart"], rel=0.1)


def test_one_task_is_known_without_a_pair() -> None:
    found = exact_losses(DATA, 1, 1, 256)
    assert found["id_dmmse"] == pytest.approx(0, abs=1e-10)


def test_pools_are_those_of_the_runs_of_that_seed(sixteen: dict[str, float]) -> None:
    assert exact_losses(DATA, 16, 0, COUNT) == sixteen
    assert exact_losses(DATA, 16, 1, COUNT) != sixteen


@pytest.mark.slow
def test_the_best_smoothing_is_better_than_none(sixteen: dict[str, float]) -> None:
    found = smoothed(DATA, 16, 0, 512)
    assert 0.05 < found["best"] < 3
    assert found["loss"] < 0.8 * sixteen["ood_dmmse"]
