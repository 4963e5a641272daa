"""Nulls of a change of the LLC: where one is exact the change does not leave it, and beyond it does."""

from typing import Any

import numpy as np
import pytest
from scipy.stats import t

from analysis.measures.development import nulls

NBETA, GAMMA = 100.0, 50.0
CURVATURES = np.array([0.1, 1.0, 4.0, 30.0])


def row(step: int, llc: float, loss: float = 1.0, norm: float = 1.0, error: float = 0.01, **other: Any) -> nulls.Row:
    half = error * float(t.ppf(0.975, 3))
    ends = {"llc_low": llc - half, "llc_high": llc + half}
    return (
        {"step": step, "llc": llc, "loss": loss, "norm": norm, "nbeta": NBETA, "chains": 4, "health": "healthy"}
        | ends
        | other
    )


def quadratic_llc(curvatures: np.ndarray, gamma: float) -> float:
    """The exact LLC of a quadratic: half of nbeta h / (nbeta h + gamma), summed over directions."""
    return float(0.5 * np.sum(NBETA * curvatures / (NBETA * curvatures + gamma)))


def test_the_standard_error_is_that_of_the_chains() -> None:
    means = np.array([1.0, 1.5, 0.7, 1.2])
    error = means.std(ddof=1) / 2
    low, high = t.interval(0.95, 3, means.mean(), error)
    assert nulls.standard_error(row(0, 0.0, llc_low=low, llc_high=high)) == pytest.approx(error, rel=1e-12)


def test_a_saturated_curve_is_the_loss_and_leaves_nothing() -> None:
    start, end = (row(step, NBETA * (2.0 - loss), loss) for step, loss in ((0, 1.5), (10, 0.3)))
    change = nulls.change("published", start, end, None)
    assert change.delta_llc == pytest.approx(change.loss_null)
    assert change.delta_llc == pytest.approx(120.0)
    assert not change.leaves


def test_larger_weights_of_the_same_function_are_the_norm_null() -> None:
    """w -> s w with the same losses divides curvatures by s^2, which is what gamma s^2 does to the start."""
    grown = 3.0
    start = row(10, quadratic_llc(CURVATURES, GAMMA), norm=2.0)
    end = row(20, quadratic_llc(CURVATURES / grown**2, GAMMA), norm=2.0 * grown)
    raised = nulls.raised_gamma(GAMMA, start, end)
    assert raised == pytest.approx(GAMMA * grown**2)
    tighter = row(10, quadratic_llc(CURVATURES, raised), norm=2.0)
    change = nulls.change("default", start, end, tighter)
    assert change.norm_null == pytest.approx(change.delta_llc, rel=1e-12)
    assert change.delta_llc < -0.3
    assert not change.leaves
    fewer = row(20, quadratic_llc(CURVATURES[:2] / grown**2, GAMMA), norm=2.0 * grown)
    assert nulls.change("default", start, fewer, tighter).leaves


@pytest.mark.parametrize(("rise", "leaves"), [(2.0, True), (0.03, False)])
def test_a_rise_at_one_loss_leaves_where_it_is_three_errors(rise: float, leaves: bool) -> None:
    change = nulls.change("default", row(0, 1.0), row(10, 1.0 + rise), None)
    assert change.delta_llc_se == pytest.approx(0.01 * np.sqrt(2), rel=1e-9)
    assert change.leaves == leaves


def test_unhealthy_ends_claim_nothing() -> None:
    assert not nulls.change(
        "default", row(0, 1.0, health="saturated: draws are .5 of the way"), row(1, 3.0), None
    ).leaves
    assert not nulls.change("default", row(0, 1.0), row(1, 3.0, health="moving: 3"), None).leaves


def test_a_stage_is_claimed_at_two_settings_in_one_direction() -> None:
    up, down, still = (nulls.change("s", row(0, 1.0), row(1, 1.0 + rise), None) for rise in (1.0, -0.5, 0.0))
    assert nulls.claimed([up, up])
    assert nulls.claimed([up, still, up])
    assert not nulls.claimed([up, still])
    assert not nulls.claimed([up, down])
    assert not nulls.claimed([up, up, down])


def test_the_nearest_checkpoint_is_nearest_in_log_step() -> None:
    assert [nulls.nearest((0, 10, 1000), step) for step in (0.5, 90, 110, 5000)] == [0, 10, 1000, 1000]


def test_usable_checkpoints_are_healthy_at_two_settings() -> None:
    def rows(*health: str) -> list[nulls.Row]:
        return [row(step, 0.0, health=own) for step, own in enumerate(health)]

    of_three = {"a": rows("healthy", "healthy", "x"), "b": rows("x", "healthy", "healthy"), "c": rows("x", "x", "x")}
    assert nulls.usable(of_three) == [1]
    assert nulls.usable({"a": rows("healthy", "x"), "b": rows("x", "healthy")}) == [0, 1]  # none: all
