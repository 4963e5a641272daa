"""A sweep over classes of functions and their fields: rows, packs of pools, and what is refused."""

import math
from typing import Any

import pytest

from icl_lab.sweeps.grid import Grid
from icl_lab.sweeps.plan import packs, plan, runs_of
from tests.doors import Ran, Refused, ran, refused
from tests.runners.tiny import Workshop
from tests.sweeps.tiny_sweep import Paths, sweep_paths

__all__ = ["ran", "refused"]

DRIVER = "eval_functions"
SETTINGS = {
    **{"num_layers": 1, "d_model": 8, "mlp_width": 16, "eval_tasks": 16, "test_tasks": 64, "eval_every": 15},
    **{"batch_size": 8, "fitted_prompts": 2, "dim": 3},
}
GRID = [
    *"--function noisy_linear --noise_std 0.5,1 --num_functions 4,inf --seeds 0 --steps 20 --num_heads 2".split(),
    *(f"--config.{name}={value}" for name, value in SETTINGS.items()),
]
QUICK = {"XLA_FLAGS": "--xla_backend_optimization_level=0"}


@pytest.fixture(scope="module")
def swept(workshop: Workshop, tmp_path_factory: pytest.TempPathFactory) -> Paths:
    """The finished sweep of two noises, and a pool of four functions or none. Not to be changed."""
    at = sweep_paths(tmp_path_factory.mktemp("functions"))
    done = workshop.run(DRIVER, *GRID, *at.flags(), "--executor", "serial", **QUICK)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("results.csv: 4 of 4 planned rows are done\n")
    return at


def test_every_point_has_its_row_with_the_fields_of_its_class(swept: Paths) -> None:
    rows = swept.rows()
    points = [(row["function"], row["noise_std"], float(row["num_functions"])) for row in rows]
    assert points == [("noisy_linear", noise, size) for size in (4, math.inf) for noise in ("0.5", "1.0")]
    assert {row["depth"] for row in rows} == {""}  # of another class
    for row in rows:
        is_pool = row["num_functions"] != "inf"
        assert bool(row["test_id_pool_loss"]) == bool(row["test_ood_tf_loss"]) == is_pool
        assert float(row["test_id_bayes_loss"]) > 0
        assert row["test_id_scale"]


def planned(**axes: Any) -> list[Any]:
    return runs_of(plan([Grid(["functions_tiny"], axes, (0, 1), SETTINGS)]))


def test_pools_of_a_class_train_in_one_pack_and_classes_apart() -> None:
    assert len(packs(planned(num_functions=[1, 4, math.inf]), 8)) == 1
    assert len(packs(planned(function=["linear", "quadratic"], num_pairs=[9]), 8)) == 2
    assert len({run.name for run in planned(function=["decision_tree"], depth=[1, 2])}) == 4


def test_a_field_that_one_of_the_classes_lacks_is_refused_with_the_point(refused: Refused) -> None:
    said = refused(DRIVER, "--function", "linear,decision_tree", "--depth", "2", "--seeds", "0", "--dry_run")
    assert said.startswith(
        "error: functions_tiny with function linear, depth 2: depth is a field of decision_tree, but"
    )


def test_points_that_follow_the_class_are_said(ran: Ran) -> None:
    done = ran(DRIVER, "--function", "linear,decision_tree", "--seeds", "0", "--dry_run")
    assert done.status == 0
    assert "2 rows of 2 runs" in done.out
