"""Stages are found by one half of the chains; of simulated nulls few are claimed, and beyond them most are."""

import numpy as np
import pytest

from icl_lab.analysis.development.found_stages import false_stages, found_stages, largest_change
from icl_lab.analysis.development.nulls import Estimates
from icl_lab.analysis.development.of_loss import fit

STEPS = np.unique(np.geomspace(1, 5000, 28).round())
RISE = 3 / (1 + np.exp(-(np.log1p(STEPS) - np.log1p(200)) / 0.25))
LOSSES = np.linspace(1.0, 0.2, len(STEPS))
CHAINS = 16


def of(truth: np.ndarray, predicted: np.ndarray, sampled: np.ndarray | None = None, spread: float = 0.1) -> Estimates:
    llc = truth[:, None] + spread * np.random.default_rng(1).normal(size=(len(STEPS), CHAINS))
    well = np.ones(len(STEPS), bool) if sampled is None else sampled
    return Estimates(STEPS, LOSSES, llc, predicted, np.full(len(STEPS), 0.02), well)


def test_ends_are_places_of_sampled_checkpoints() -> None:
    sampled = np.arange(len(STEPS)) % 5 != 2
    found = found_stages(of(RISE, RISE, sampled))
    assert found is not None
    (rise,) = [(start, end) for stage, start, end in found.stages if stage.type == "A"]
    assert STEPS[rise[0]] < 200 < STEPS[rise[1]]
    assert sampled[list(rise)].all()


def test_the_tested_chains_do_not_choose_the_ends() -> None:
    own = of(RISE, RISE)
    other = own._replace(llc=np.concatenate([own.finding, np.zeros_like(own.testing)], axis=1))
    first, second = found_stages(own), found_stages(other)
    assert first is not None
    assert second is not None
    assert [places[1:] for places in first.stages] == [places[1:] for places in second.stages]


def test_few_checkpoints_have_no_stages() -> None:
    assert found_stages(of(RISE, RISE, np.arange(len(STEPS)) < 5)) is None


def test_the_largest_change_is_of_sampled_checkpoints_and_needs_no_plateau() -> None:
    line, sampled = np.log1p(STEPS), np.arange(len(STEPS)) % 9 != 0
    assert largest_change(of(line, line, sampled)) == (1, 26)  # the first and the last are not sampled
    assert largest_change(of(-line, line)) == (0, len(STEPS) - 1)
    assert largest_change(of(line, line, np.arange(len(STEPS)) == 3)) is None


@pytest.mark.slow
def test_where_a_null_is_true_a_stage_is_rarely_claimed_and_where_none_is_often() -> None:
    """At the level of .0027 three tests a curve claim falsely in a percent at most; of 40 curves 2 by chance."""
    rng = np.random.default_rng(2)
    follows = fit(np.tile(LOSSES, 3), np.tile(RISE, 3) + 0.02 * rng.normal(size=3 * len(STEPS)))
    elsewhere = of(RISE, RISE / 2)
    assert false_stages(of(RISE, RISE), RISE, 0.0, None, 40, np.random.default_rng(0)) <= 2 / 40
    assert false_stages(elsewhere, RISE, 0.02, follows, 40, np.random.default_rng(0)) <= 2 / 40
    assert false_stages(elsewhere, RISE, 0.0, None, 40, np.random.default_rng(0)) > 0.9
