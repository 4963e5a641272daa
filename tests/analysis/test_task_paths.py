"""Tasks between two tasks, and where a loss lies between two others."""

import numpy as np
import pytest

from icl_lab.analysis.paths import path, share_of_dmmse


def test_a_path_joins_two_tasks_and_keeps_the_mean_norm() -> None:
    one, other = np.array([3.0, 0.0]), np.array([0.0, 1.0])
    ways = path(one, other, np.linspace(0, 1, 5))
    np.testing.assert_allclose(np.linalg.norm(ways, axis=1), 2.0)
    np.testing.assert_allclose(ways[[0, -1]], [[0, 2], [2, 0]], atol=1e-12)
    np.testing.assert_allclose(ways[2] / np.linalg.norm(ways[2]), np.array([3, 1]) / np.sqrt(10))


def test_tasks_of_one_norm_are_the_ends_of_their_path() -> None:
    one, other = np.array([1.0, 0.0]), np.array([0.6, 0.8])
    np.testing.assert_allclose(path(one, other, np.array([0.0, 1.0])), [other, one])


@pytest.mark.parametrize(("tf", "share"), [(0.2, 0.0), (1.0, 1.0), (0.4, 0.25)])
def test_the_share_is_read_at_the_middle(tf: float, share: float) -> None:
    losses = {"tf": np.array([9, tf, 9]), "ridge": np.array([0, 0.2, 0]), "dmmse": np.array([0, 1.0, 0])}
    assert share_of_dmmse(losses) == pytest.approx(share)
