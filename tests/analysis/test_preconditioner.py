"""The learnt preconditioner of constructed layers, and distances after the best scalar."""

import numpy as np
import pytest

from icl_lab.analysis.weights import learnt_preconditioners, relative_distance
from icl_lab.baselines.construction import gd_params
from icl_lab.families.regression.config import RegressionConfig


def test_the_construction_of_gradient_descent_has_a_multiple_of_the_identity():
    config = RegressionConfig()
    params = {
        name: {k: np.asarray(v) for k, v in part.items()} for name, part in gd_params(config.architecture, 0.3).items()
    }
    found = learnt_preconditioners(config, params)
    assert found.shape == (1, 1, 10, 10)
    assert relative_distance(found[0, 0], np.eye(10)) == pytest.approx(0, abs=1e-6)


def test_a_distance_does_not_depend_on_the_scale_or_the_sign():
    target = np.diag([1.0, 2.0, 3.0])
    assert relative_distance(-0.01 * target, target) == pytest.approx(0, abs=1e-7)
    assert relative_distance(np.eye(3), target) == pytest.approx((14 - 36 / 3) ** 0.5 / 14**0.5)
    assert relative_distance(7 * np.eye(3), target) == pytest.approx(relative_distance(np.eye(3), target))


def test_nothing_in_common_is_a_distance_of_1():
    assert relative_distance(np.zeros((2, 2)), np.eye(2)) == 1
    assert relative_distance(np.array([[0.0, 1.0], [-1.0, 0.0]]), np.eye(2)) == pytest.approx(1)
