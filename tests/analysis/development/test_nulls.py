"""Nulls of a change of the LLC: where one is exact the change does not differ from it, and beyond it does."""

from typing import Any

import numpy as np
import pytest
from scipy.stats import t, ttest_ind_from_stats

from icl_lab.analysis.develop import rescaled_settings
from icl_lab.analysis.development import nulls
from icl_lab.analysis.llc.settings import Settings

NBETA, GAMMA, CHAINS = 100.0, 50.0, 4
CURVATURES = np.array([0.1, 1.0, 4.0, 30.0])


def row(step: int, llc: float, loss: float = 1.0, norm: float = 1.0, error: float = 0.01, **other: Any) -> nulls.Row:
    half = error * float(t.ppf(0.975, CHAINS - 1))
    values = {"step": step, "llc": llc, "llc_low": llc - half, "llc_high": llc + half, "loss": loss, "norm": norm}
    return values | {"nbeta": NBETA, "chains": CHAINS, "verdict": "undecided"} | other


def quadratic_llc(curvatures: np.ndarray, gamma: float) -> float:
    """The exact LLC of a quadratic: half of nbeta h / (nbeta h + gamma), summed over directions."""
    return float(0.5 * np.sum(NBETA * curvatures / (NBETA * curvatures + gamma)))


def test_the_standard_error_is_that_of_the_chains() -> None:
    means = np.array([1.0, 1.5, 0.7, 1.2])
    error = means.std(ddof=1) / 2
    low, high = t.interval(0.95, 3, means.mean(), error)
    assert nulls.standard_error(row(0, 0.0, llc_low=low, llc_high=high)) == pytest.approx(error, rel=1e-12)


@pytest.mark.parametrize(("rise", "errors"), [(0.05, (0.01, 0.01)), (0.3, (0.01, 0.08)), (0.0, (0.02, 0.01))])
def test_differences_are_tested_by_welchs_t(rise: float, errors: tuple[float, float]) -> None:
    rows = [row(step, llc, error=error) for step, llc, error in zip((0, 9), (1.0, 1.0 + rise), errors, strict=True)]
    spreads = [error * np.sqrt(CHAINS) for error in errors]
    expected = ttest_ind_from_stats(1.0, spreads[0], CHAINS, 1.0 + rise, spreads[1], CHAINS, equal_var=False).pvalue
    assert nulls.p_value(rise, rows) == pytest.approx(expected, rel=1e-9)


def test_three_errors_of_four_chains_are_not_enough() -> None:
    """At three standard errors p is .024 with six degrees of freedom."""
    three = nulls.change("default", row(0, 1.0), row(10, 1.0 + 3 * 0.01 * np.sqrt(2)), None)
    assert three.p_zero == pytest.approx(2 * t.sf(3, 6), rel=1e-6)
    assert not three.differs
    assert nulls.change("default", row(0, 1.0), row(10, 1.0 + 7 * 0.01 * np.sqrt(2)), None).differs


def test_a_saturated_curve_is_the_loss() -> None:
    start, end = (row(step, NBETA * (2.0 - loss), loss) for step, loss in ((0, 1.5), (10, 0.3)))
    change = nulls.change("published", start, end, None)
    assert change.delta_llc == pytest.approx(change.loss_null)
    assert change.delta_llc == pytest.approx(120.0)
    assert change.p_loss == pytest.approx(1.0)
    assert not change.differs


def test_larger_weights_of_the_same_function_are_the_norm_null() -> None:
    """w -> s w with the same losses divides curvatures by s^2, which is what gamma s^2 does to the start."""
    grown = 3.0
    start = row(10, quadratic_llc(CURVATURES, GAMMA), norm=2.0)
    end = row(20, quadratic_llc(CURVATURES / grown**2, GAMMA), norm=2.0 * grown)
    assert nulls.norm_null_applies(start, end)
    settings = rescaled_settings(Settings(eps=1e-3, nbeta=NBETA, gamma=GAMMA), grown)
    assert settings.gamma == pytest.approx(GAMMA * grown**2)
    assert settings.eps * settings.gamma == pytest.approx(1e-3 * GAMMA)  # chains relax in as many steps
    rescaled = row(10, quadratic_llc(CURVATURES, settings.gamma), norm=2.0)
    change = nulls.change("default", start, end, rescaled)
    assert change.norm_null == pytest.approx(change.delta_llc, rel=1e-12)
    assert change.p_norm == pytest.approx(1.0)
    assert change.p_zero < nulls.LEVEL
    assert not change.differs
    fewer = row(20, quadratic_llc(CURVATURES[:2] / grown**2, GAMMA), norm=2.0 * grown)
    assert nulls.change("default", start, fewer, rescaled).differs


@pytest.mark.parametrize("other", [{"verdict": "none"}, {"llc": float("nan")}])
def test_a_null_that_is_not_known_is_not_left(other: dict[str, Any]) -> None:
    start, end = row(10, 5.0, norm=1.0), row(20, 1.0, norm=2.0)
    assert nulls.change("default", start, end, row(10, 4.0)).differs
    assert not nulls.change("default", start, end, row(10, 4.0) | other).differs


@pytest.mark.parametrize(
    ("llcs", "norms", "applies"),
    [((2.0, 1.0), (1.0, 3.0), True), ((1.0, 2.0), (1.0, 3.0), False), ((1.0, 2.0), (3.0, 1.0), True)],
)
def test_the_norm_null_is_of_changes_in_its_direction(
    llcs: tuple[float, float], norms: tuple[float, float], applies: bool
) -> None:
    start, end = (row(step, llc, norm=norm) for step, llc, norm in zip((0, 1), llcs, norms, strict=True))
    assert nulls.norm_null_applies(start, end) == applies


def test_unusable_ends_claim_nothing() -> None:
    assert not nulls.change("default", row(0, 1.0, verdict="none"), row(1, 3.0), None).differs
    assert not nulls.change("default", row(0, 1.0), row(1, 3.0, verdict="none"), None).differs


def test_a_stage_is_claimed_at_all_of_two_settings_or_more_in_one_direction() -> None:
    up, down, still = (nulls.change("s", row(0, 1.0), row(1, 1.0 + rise), None) for rise in (1.0, -0.5, 0.0))
    assert nulls.claimed([up, up])
    assert not nulls.claimed([up])
    assert not nulls.claimed([up, still, up])
    assert not nulls.claimed([up, down])


def test_the_nearest_checkpoint_is_nearest_in_log_step() -> None:
    assert [nulls.nearest((0, 10, 1000), step) for step in (0.5, 90, 110, 5000)] == [0, 10, 1000, 1000]


def test_usable_checkpoints_are_those_that_are_so_at_all_settings() -> None:
    def rows(*verdicts: str) -> list[nulls.Row]:
        return [row(step, 0.0, verdict=own) for step, own in enumerate(verdicts)]

    assert nulls.usable_at_all({"a": rows("LLC", "LLC", "none"), "b": rows("none", "curvature", "LLC")}) == [1]
    assert nulls.usable_at_all({"a": rows("LLC"), "b": rows("none")}) == []
    assert nulls.usable_at_all({}) == []  # where all settings are saturated
