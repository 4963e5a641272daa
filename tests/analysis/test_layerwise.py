"""Losses after every layer: a constructed layer is gradient descent on every task; words for what a curve shows."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from icl_lab.analysis.layerwise import layerwise, paired_ratio, steps_to_reach, verdict
from icl_lab.analysis.loaded_run import LoadedRun
from icl_lab.baselines.construction import gd_params
from icl_lab.baselines.gd_curve import gd_curve
from icl_lab.families.layerwise.config import LayerwiseConfig
from icl_lab.families.layerwise.task import make_model
from icl_lab.src.checks import ConfigError
from icl_lab.src.config import EmbeddedModel
from icl_lab.src.data_config import QueriesData
from icl_lab.src.one_step import one_step_size

DATA = QueriesData(dim=3, num_pairs=12, num_queries=4, input_distribution="gaussian", noise_std=0.05)


def of_constructed(depth: int, factor: float, **wanted: Any) -> dict[str, Any]:
    """The losses of a stack that takes steps of factor * c*."""
    config = LayerwiseConfig(data=DATA, model=EmbeddedModel(num_layers=depth), data_seed=4)
    params = gd_params(config.architecture, factor * one_step_size(DATA))
    return layerwise(LoadedRun(Path(), config, make_model(config), params, None), num_tasks=600, **wanted)


def test_a_layer_that_is_one_step_overlaps_gradient_descent_when_rolled_out() -> None:
    found = of_constructed(1, 1.0, layers=8)
    assert found["ratio_to_gd"] == pytest.approx([1.0] * 8, abs=1e-4)
    assert (found["verdict"], found["layers"], found["rolled_out"]) == ("overlaps gradient descent", 8, True)
    assert found["mse"] == pytest.approx(found["gd"]["mse"], rel=1e-4)


def test_the_tasks_are_those_of_the_command_of_the_same_seed() -> None:
    found = of_constructed(1, 1.0, layers=4)
    descent = gd_curve(DATA, seed=4, num_tasks=600, steps=4)
    assert found["mse"] == pytest.approx(descent["mse"], rel=1e-4)
    assert found["references"]["ridge"]["mse"] == pytest.approx(descent["references"]["ridge"]["mse"], rel=1e-5)


def test_a_layer_with_a_step_half_as_long_does_not() -> None:
    found = of_constructed(1, 0.5, layers=4)
    assert found["verdict"] == "leaves gradient descent"
    assert found["ratio_to_gd"][0] > 1.05


def test_damping_is_the_roll_outs_step() -> None:
    """Half the step with twice the damping is the same roll-out."""
    a, b = of_constructed(1, 1.0, layers=3, damping=0.4), of_constructed(1, 0.5, layers=3, damping=0.8)
    assert a["mse"] == pytest.approx(b["mse"], rel=1e-5)


def test_a_stack_is_read_layer_by_layer() -> None:
    """Three layers of .75 c* are three steps of it."""
    found = of_constructed(3, 0.75)
    assert found["ratio_to_gd"] == pytest.approx([1.0] * 3, abs=1e-4)
    assert found["verdict"] == "trained, decreasing with depth"
    with pytest.raises(ConfigError, match="this stack has 3"):
        of_constructed(3, 0.75, layers=4)


def test_the_ratio_leaves_out_the_task_that_diverges() -> None:
    rng = np.random.default_rng(0)
    gd = rng.exponential(size=2000)
    tf = 1.1 * gd
    tf[3] = gd[3] = 1e20
    tf[4] = np.nan
    ratio, error = paired_ratio(tf, gd)
    assert (ratio, error) == (pytest.approx(1.1), pytest.approx(0, abs=1e-12))


def test_steps_that_reach_a_loss() -> None:
    descending = np.array([5.0, 3.0, 2.0])
    assert steps_to_reach(np.array([6.0, 3.0, 2.5, 1.0, np.nan]), descending) == [1, 2, 3, None, None]


def test_the_words() -> None:
    near, far = np.array([1.0, 1.04]), np.array([1.0, 1.06])
    assert verdict(True, near, np.array([2.0, 1.0]), 3.0) == "overlaps gradient descent"
    assert verdict(True, far, np.array([2.0, 1.0]), 3.0) == "leaves gradient descent"
    assert verdict(False, near, np.array([2.9, 2.9]), 3.0) == "did not train"
    assert verdict(False, near, np.array([np.nan, np.nan]), 3.0) == "did not train"
    assert verdict(False, near, np.array([9.0, 2.0]), 3.0) == "trained, decreasing with depth"
    assert verdict(False, near, np.array([1.0, 2.0]), 3.0) == "trained, not decreasing with depth"
