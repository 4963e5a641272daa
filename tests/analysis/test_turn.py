"""The turn from one algorithm to another: of curves whose turn is known, and of constructed stacks."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from icl_lab.analysis import algorithm_distance
from icl_lab.analysis.algorithm_distance import Turn, cosines_of, turn, turn_of
from icl_lab.analysis.loaded_run import ComparedRun
from icl_lab.baselines import gd_plus_plus
from icl_lab.baselines.construction import gd_params
from icl_lab.baselines.gd_plus_plus import Rates
from icl_lab.families.regression.config import RegressionConfig
from icl_lab.families.regression.task import find_gd, make_model
from icl_lab.src.config import ModelConfig
from icl_lab.src.data_config import DataConfig

STEPS = np.array([0, 100, 200, 300, 500])
RATES = 0.9, 0.1  # of GD++


@pytest.mark.parametrize(
    ("above", "expected"),
    [
        ((0, 0, 1, 1, 1), Turn(150.0, 50.0)),
        ((1, 1, 0, 1, 1), Turn(250.0, 50.0)),  # what it was before it turned back does not count
        ((0, 0, 0, 0, 1), Turn(400.0, 100.0)),
        ((1, 1, 1, 1, 1), Turn(0.0, 0.0)),
        ((0, 1, 1, 1, 0), None),
    ],
)
def test_the_turn_is_the_last_time_that_it_becomes_nearer(above: tuple[int, ...], expected: Turn | None) -> None:
    before = np.full(5, 0.9)
    assert turn(STEPS, before, before + 0.05 * np.array(above)) == expected


def test_a_cosine_that_is_none_is_not_above() -> None:
    assert turn(STEPS, np.full(5, 0.9), np.array([0.99, np.nan, 0.99, 0.99, 0.99])) == Turn(150.0, 50.0)


@dataclass(frozen=True, eq=False)
class Constructed(ComparedRun):
    """A run whose snapshots are gradient descent up to step 200 and GD++ from 300 on."""

    def checkpoints(self) -> Any:
        for step in STEPS.tolist():
            c, gamma = RATES if step >= 300 else (float(self.gd.step_size), 0.0)
            params = gd_params(self.config.architecture, c, gamma)
            yield step, ComparedRun(self.run, self.config, self.model, params, self.batch, self.gd)


def test_a_stack_that_turns_is_seen_to_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    rates = Rates(*(jnp.full(2, rate, jnp.float32) for rate in RATES))
    monkeypatch.setattr(gd_plus_plus, "fit_gd_plus_plus", lambda *_: rates)
    model = ModelConfig(num_layers=2, recurrent=True)
    config = RegressionConfig(
        data=DataConfig(dim=4, num_pairs=6), model=model, step_size_tasks=256, test_tasks=200, data_seed=0
    )
    run = Constructed(Path("run"), config, make_model(config), {}, None, find_gd(config))
    followed = ("gd", "gd_own_steps", "gd_plus_plus")
    rows = algorithm_distance.over_training(run, followed)
    found = cosines_of([row for row in rows if row["measure"] == "cosine"])
    assert [*found] == ["step", "gd", "gd_own_steps", "gd_plus_plus"]
    np.testing.assert_array_equal(found["step"], STEPS)
    np.testing.assert_allclose(found["gd"][:3], 1, atol=1e-5)
    np.testing.assert_allclose(found["gd_plus_plus"][3:], 1, atol=1e-5)
    assert (found["gd_plus_plus"][:3] < 0.999).all()
    assert turn_of(run) == Turn(250.0, 50.0)
    assert turn_of(run, "gd_plus_plus", "gd") is None
