"""The loss between two models' parameters, on predictors whose losses are known."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from icl_lab.analysis.loaded_run import LoadedRun
from icl_lab.analysis.paths import barrier, losses_between, weight_distance
from icl_lab.families.diversity.config import DiversityConfig
from icl_lab.families.diversity.task import EvalSet
from icl_lab.src.batch import Batch
from icl_lab.src.checks import ConfigError
from icl_lab.src.data_config import PoolData
from icl_lab.src.model import Model

CONFIG = DiversityConfig(data=PoolData(dim=2, num_pairs=3))
MODEL = Model(None, lambda params, batch: params["m"]["w"] * batch.y, None)


def decoder(w: float) -> LoadedRun:
    return LoadedRun(Path(f"run_{w}"), CONFIG, MODEL, {"m": {"w": np.float32(w)}}, None)


def eval_set() -> EvalSet:
    y = np.ones((4, 3), np.float32)
    x = np.zeros((4, 3, 2), np.float32)
    return EvalSet(Batch(x, y, x, y, x[:, 0]), np.zeros((4, 3)), {})


def test_losses_along_the_line_are_those_of_the_mixed_parameters() -> None:
    """The model predicts w for targets of 0 in two dimensions: its loss is w^2 / 2, a parabola between -1 and 3."""
    losses = losses_between(decoder(-1.0), decoder(3.0), eval_set(), points=5)
    np.testing.assert_allclose(losses, np.array([-1.0, 0.0, 1.0, 2.0, 3.0]) ** 2 / 2, rtol=1e-6)


def test_a_convex_valley_has_no_barrier_and_a_ridge_between_has_its_height_above_the_chord() -> None:
    assert barrier(np.array([0.5, 0.0, 0.5, 2.0, 4.5])) == 0
    assert barrier(np.array([1.0, 4.0, 2.0])) == pytest.approx(2.5)


def test_distances_are_relative_to_the_norm() -> None:
    assert weight_distance(decoder(1.0), decoder(1.0)) == 0
    assert weight_distance(decoder(1.0), decoder(3.0)) == pytest.approx(1.0)


def test_models_of_different_shapes_are_not_joined() -> None:
    wide = replace(CONFIG), {"m": {"w": np.zeros(2, np.float32)}}
    with pytest.raises(ConfigError, match="different shapes"):
        losses_between(decoder(1.0), LoadedRun(Path("wide"), wide[0], MODEL, wide[1], None), eval_set())
