"""Trees that scikit-learn fits at each position: by hand in closed forms, and on signs against raw inputs."""

import sys

import numpy as np
import pytest

from icl_lab.baselines.functions.trees import boosted_trees, greedy_tree
from icl_lab.lab.environment import UnusableEnvironment


def prompts(seed=0, size=3, pairs=30, dim=3):
    """Labels are the function 2 [x_1 > 0] + [x_2 > 0] of signs."""
    x = np.random.default_rng(seed).normal(size=(size, pairs, dim))
    return x, 2.0 * (x[..., 0] > 0) + (x[..., 1] > 0)


def test_a_greedy_tree_has_a_label_of_the_context_and_all_of_a_seen_input():
    x, y = prompts()
    y = y + np.random.default_rng(1).normal(size=y.shape)
    x[:, 29] = x[:, 4]
    found = greedy_tree(x, y, (0, 1, 10, 29))
    np.testing.assert_array_equal(found[:, 0], 0)
    np.testing.assert_allclose(found[:, 1], y[:, 0])
    np.testing.assert_allclose(found[:, 3], y[:, 4])
    assert all(np.isclose(found[b, 2], y[b, :10]).any() for b in range(3))


def test_on_signs_a_function_of_signs_is_found():
    x, y = prompts(2)
    np.testing.assert_allclose(greedy_tree(x, y, (29,), on_signs=True)[:, 0], y[:, 29])
    np.testing.assert_allclose(greedy_tree(x * [[[1.0, 5, 2]]], y, (29,), on_signs=True)[:, 0], y[:, 29])


def test_boosting_of_one_split_moves_the_mean_by_its_rate():
    """One feature, two values: after n rounds a prediction is mean + (1 - (1 - rate)^n) (its group's mean - mean)."""
    x = np.array([[[-1.0], [1.0], [-1.0], [1.0], [1.0]]])
    y = np.array([[0.0, 3.0, 1.0, 5.0, 0.0]])
    mean, group = 9 / 4, 4.0
    for rounds in (1, 50):
        expected = mean + (1 - 0.9**rounds) * (group - mean)
        np.testing.assert_allclose(boosted_trees(x, y, (4,), rounds=rounds)[0, 0], expected)


def test_a_missing_package_is_named_with_its_command(monkeypatch):
    """An import of scikit-learn fails as where it is not installed."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "sklearn"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.setattr(sys, "path_importer_cache", {})
    with pytest.raises(UnusableEnvironment, match="pip install scikit-learn"):
        greedy_tree(*prompts())
