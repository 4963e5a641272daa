"""Measures of plateaus on runs made by hand, whose times and levels are known."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from icl_lab.families.regression.config import RegressionConfig
from icl_lab.src.config import ModelConfig, TrainConfig
from icl_lab.src.data_config import DataConfig
from icl_lab.store import rundir
from icl_lab.store.metrics import append_metrics
from icl_lab.studies.claim import Rival, Without
from icl_lab.studies.theory import plateau_measures as measures
from icl_lab.studies.theory.plateaus import CLAIMS, FIGURES, RUNS

DIM = 4
CONFIG = RegressionConfig(
    data=DataConfig(dim=DIM, num_pairs=4), model=ModelConfig(init_scale=0.05), training=TrainConfig(steps=1000)
)
EVERY = 10


def made(path: Path, ways: dict[int, float], scale: float = 0.05) -> Path:
    """A run that has made `ways` of the way to gradient descent's loss from these steps on."""
    config = replace(CONFIG, eval_every=EVERY, model=replace(CONFIG.model, init_scale=scale))
    path.mkdir()
    rundir.begin(path, config)
    zero = measures.zero_loss(path)
    for step in range(0, 1001, EVERY):
        way = next((share for start, share in reversed(ways.items()) if step >= start), 0.0)
        loss = zero * (1 - 0.5 * way)
        record = {"step": step, "train_loss": loss, "eval_loss": loss, "eval_gd_loss": 0.5 * zero, "lr": 1e-3}
        append_metrics(path, record)
    return path


def test_zeros_loss_is_half_the_variance_of_the_targets(tmp_path: Path) -> None:
    """D v / 2 = 4 / 24, to four standard errors of 2048 tasks: y is about normal."""
    run = made(tmp_path / "run", {})
    assert measures.zero_loss(run) == pytest.approx(DIM / 24, rel=4 * math.sqrt(2 * 2 / 2048))


def test_a_run_leaves_the_first_plateau_and_has_learnt_later(tmp_path: Path) -> None:
    """One direction of four is a quarter of the way: the plateau is left, but nothing is learnt until the rest is."""
    run = made(tmp_path / "run", {200: 0.25, 700: 1.0})
    assert (measures.left(run), measures.learnt(run)) == (195.0, 695.0)
    assert measures.stays(run)
    assert measures.second_plateau(run) == pytest.approx(1.0)
    assert [measures.learnt_by(step)(run) for step in (600, math.inf)] == [0.0, 1.0]
    (steps, ways) = measures.way(run, "")["", "Trained Transformer"]
    assert [ways[steps.index(step)] for step in (0, 300, 800)] == pytest.approx([0, 1, 4])


def test_a_run_that_learns_directly_has_no_second_plateau(tmp_path: Path) -> None:
    assert not measures.stays(made(tmp_path / "run", {200: 1.0}))


def test_a_run_that_stays_has_one_to_the_end(tmp_path: Path) -> None:
    run = made(tmp_path / "run", {200: 0.25})
    assert measures.learnt(run) == math.inf
    assert measures.learnt_by()(run) == 0.0
    assert measures.stays(run)
    assert measures.second_plateau(run) == pytest.approx(1.0)


def test_a_run_that_never_leaves_is_never_of_the_figures_means(tmp_path: Path) -> None:
    run = made(tmp_path / "run", {})
    assert measures.left(run) == math.inf
    curve = measures.times({"plateau": ("", "arm")}, {})(run, "plateau_x")["", "arm"]
    assert curve[1:] == ([1000.0], ["above"])


@pytest.mark.parametrize(("times", "expected"), [((100, 400), 2.0), ((300, 300), 0.0)])
def test_the_exponent_is_of_one_over_the_deviation(times: tuple[int, int], expected: float, tmp_path: Path) -> None:
    """A quarter of the variance scale is half the deviation: four times as long is exponent 2."""
    large = made(tmp_path / "large", {times[0]: 1.0})
    small = made(tmp_path / "small", {times[1]: 1.0}, 0.05 / 4)
    assert measures.deviation(large) == pytest.approx(math.sqrt(0.05 / 5))
    assert measures.exponent(small, large) == pytest.approx(expected, abs=0.1)


def test_the_slope_is_of_the_logarithm(tmp_path: Path) -> None:
    """kappa sqrt(D) = 4 / 144 * 2, at the default rate 1e-3."""
    large, small = made(tmp_path / "large", {100: 1.0}), made(tmp_path / "small", {300: 1.0}, 0.05 / 4)
    per_e_fold = 1 / math.log1p(1e-3 * 4 / 144 * 2)
    assert measures.slope_over_derived(small, large) == pytest.approx(200 / np.log(2) / per_e_fold, rel=1e-9)


def test_runs_are_shown_and_claims_lie_in_their_ranges() -> None:
    shown = {name for figure in FIGURES for name in figure.run_names}
    assert shown == {name for name in RUNS if not name.endswith("_decided")}
    assert {name for claim in CLAIMS for name in claim.run_names} <= set(RUNS)
    for claim in CLAIMS:
        assert claim.low <= claim.expected <= claim.high, claim.name
        assert isinstance(claim.control, Without | Rival), claim.name
