"""The search of step sizes: what it gives is the best point of all that the grids have, descended with in float32."""

import numpy as np
import pytest

from icl_lab.baselines import step_size_search
from icl_lab.baselines.gradient_descent import fit_step_size
from icl_lab.baselines.step_size_search import TOGETHER, loss_curve, search_step_size
from icl_lab.src import prng
from icl_lab.src.data import sample_batch
from icl_lab.src.data_config import DataConfig
from tests import reference

DATA = {
    "paper": DataConfig(),
    "wide": DataConfig(dim=12, num_pairs=5),
    "gaussian, noisy": DataConfig(dim=4, num_pairs=9, input_distribution="gaussian", noise_std=0.3),
}
NARROW, WIDE, ZOOMED = 2, 33, 4  # a grid around the best point, its points, and how often it shrinks


def best_of_all(batch, steps):
    """The step size that a search finds which descends with every point of every grid."""
    low, high = 1e-3 * fit_step_size(batch), 6.6 * fit_step_size(batch)
    for _ in range(ZOOMED):
        grid = np.linspace(low, high, WIDE)
        losses = step_size_search._losses_of_all(batch, steps, grid)
        best = grid[np.argmin(np.where(np.isfinite(losses), losses, np.inf))]
        reach = NARROW * (high - low) / (WIDE - 1)
        low, high = max(low, best - reach), min(high, best + reach)
    return best


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("steps", [2, 3, 8, 24])
def test_a_search_finds_the_best_of_all_points(data, steps):
    """To the bit: of float32 losses the least decides, and rounding where they are about equal."""
    batch = sample_batch(prng.key(steps), DATA[data], 2048)
    assert search_step_size(batch, steps) == best_of_all(batch, steps)


def test_a_search_descends_with_few_of_its_points(monkeypatch):
    """At most two programs' worth of the 132 points; at 33 a grid the whole search would take 20."""
    runs = []
    descend = step_size_search._losses

    def counted(batch, steps, rates):
        runs.append(len(rates))
        return descend(batch, steps, rates)

    monkeypatch.setattr(step_size_search, "_losses", counted)
    search_step_size(sample_batch(prng.key(0), DATA["paper"], 2048), 8)
    assert 1 <= len(runs) <= 2
    assert set(runs) == {TOGETHER}


def test_numbers_of_steps_share_a_program():
    batch = sample_batch(prng.key(0), DATA["paper"], 96)
    search_step_size(batch, 2)
    compiled = step_size_search._predictions._cache_size()
    for steps in (3, 5, 9):
        search_step_size(batch, steps)
    assert step_size_search._predictions._cache_size() <= compiled + 1  # one more where a grid's last point is tried


@pytest.mark.parametrize("steps", [2, 5, 30])
def test_the_loss_curve_is_the_loss(steps, x64):
    """Of a quadratic form in moments and of a loop over pairs: in float64 both hold 1e-9 of the loss at any size."""
    batch = reference.random_batch(3, pairs=6, dim=4)
    curve = loss_curve(batch, steps)
    for c in np.array([0.01, 0.1, 0.5, 1.2]) * fit_step_size(batch):
        errors = np.asarray(reference.gd(batch, c, steps)) - batch.y_query
        assert curve.at(c) == pytest.approx(0.5 * np.mean(errors**2), rel=1e-9)


def test_where_the_curve_is_wrong_every_point_is_tried(monkeypatch):
    """What float64 gives is checked by descent: a curve that is off by more than rounding is not believed."""
    batch = sample_batch(prng.key(1), DATA["paper"], 512)
    expected = best_of_all(batch, 3)
    right = step_size_search.loss_curve

    def wrong(batch, steps):
        return right(batch, steps)._replace(gram=right(batch, steps).gram * (1 + 1e-5))

    monkeypatch.setattr(step_size_search, "loss_curve", wrong)
    assert search_step_size(batch, 3) == expected
