"""The lasso at each position against scikit-learn's, and penalties chosen for each position."""

from functools import partial

import numpy as np
import pytest
from sklearn.linear_model import Lasso

from icl_lab.baselines.functions.lasso import PUBLISHED, chosen_penalties, lasso
from icl_lab.baselines.functions.linear import least_squares
from icl_lab.src.checks import ConfigError

close = partial(np.testing.assert_allclose, rtol=1e-6, atol=1e-6)


def prompts(seed, size, pairs=9, dim=6):
    rng = np.random.default_rng(seed)
    x, w = rng.normal(size=(size, pairs, dim)), rng.normal(size=(size, dim)) * (np.arange(dim) < 2)
    return x, np.einsum("bnd,bd->bn", x, w)


def test_it_is_scikit_learns_at_published_penalties():
    x, y = prompts(0, 3)
    for penalty in PUBLISHED[:3]:
        found = lasso(x, y, penalty, (0, 2, 5, 8))
        close(found[:, 0], 0)
        for column, k in ((1, 2), (2, 5), (3, 8)):
            for b in range(3):
                other = Lasso(penalty, fit_intercept=False, tol=1e-10, max_iter=10**5).fit(x[b, :k], y[b, :k])
                close(found[b, column], other.predict(x[b, k : k + 1])[0])


def test_small_penalties_converge_in_all_contexts_and_tend_to_the_function():
    x, y = prompts(1, 200)
    found = lasso(x, y, 1e-4, (4, 8))
    assert np.isfinite(found).all()
    close(np.median(np.abs(found[:, 1] - y[:, 8])), 0, atol=1e-3)


def test_penalties_chosen_for_each_position_are_the_best_there_and_beat_least_squares_on_other_prompts():
    at, grid = (0, 2, 5), (1.0, 0.1, 0.01)
    x, y = prompts(2, 300)
    losses = [np.mean((lasso(x, y, each, at) - y[:, at]) ** 2, axis=0) for each in grid]
    chosen = chosen_penalties(x, y, at, grid=grid)
    close(chosen[1:], np.array(grid)[np.argmin(losses, axis=0)][1:])
    x, y = prompts(3, 300)
    mine, plain = (
        np.mean((found - y[:, at]) ** 2, axis=0) for found in (lasso(x, y, chosen, at), least_squares(x, y, at))
    )
    assert mine[2] < 0.5 * plain[2]


def test_penalties_are_above_0_and_one_a_position():
    x, y = prompts(4, 2)
    with pytest.raises(ConfigError, match="penalty"):
        lasso(x, y, 0.0)
    with pytest.raises(ConfigError, match="one each"):
        lasso(x, y, [1.0, 1.0], (1, 2, 3))
