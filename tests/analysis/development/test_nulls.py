"""Nulls of a change of the LLC: where one is exact the change does not differ from it, and beyond it does."""

from typing import Any

import numpy as np
import pytest
from scipy.stats import ttest_ind

from icl_lab.analysis.development import nulls
from icl_lab.analysis.development.of_loss import fit

NBETA, GAMMA, CHAINS = 100.0, 50.0, 16
CURVATURES = np.array([0.1, 1.0, 4.0, 30.0])
LOSSES = np.geomspace(0.1, 2.0, 40)


def quadratic_llc(curvatures: np.ndarray, gamma: float = GAMMA) -> float:
    """The exact LLC of a quadratic: half of nbeta h / (nbeta h + gamma), summed over directions."""
    return float(0.5 * np.sum(NBETA * curvatures / (NBETA * curvatures + gamma)))


def chains(mean: float, error: float = 0.01) -> np.ndarray:
    """The LLC of each chain, of which every half has this mean and, up to 8 chains' scatter, this standard error."""
    half = np.linspace(-1, 1, CHAINS // 2)
    return mean + np.tile(half / half.std(ddof=1) * error * np.sqrt(CHAINS / 2), 2)


def estimates(*llcs: float, error: float = 0.01, **other: Any) -> nulls.Estimates:
    count = len(llcs)
    columns = {
        "steps": np.arange(count, dtype=float),
        "losses": np.ones(count),
        "llc": np.stack([chains(llc, error) for llc in llcs]),
        "predicted": np.zeros(count),
        "predicted_error": np.zeros(count),
        "sampled": np.ones(count, bool),
    }
    return nulls.Estimates(**columns | {name: np.asarray(value) for name, value in other.items()})


def test_half_of_the_chains_finds_and_half_is_tested() -> None:
    own = estimates(1.0, 2.0)._replace(llc=np.array([[0.0, 1.0, 5.0, 7.0], [3.0, 4.0, 9.0, 9.0]]))
    np.testing.assert_array_equal(own.finding, [[0, 1], [3, 4]])
    assert nulls.change("s", own, 0, 1).delta_llc == 9.0 - 6.0


@pytest.mark.parametrize("rise", [0.0, 0.02, 0.3])
def test_differences_are_tested_by_welchs_t(rise: float) -> None:
    rng = np.random.default_rng(0)
    one, other = rng.normal(size=8), rise + 3 * rng.normal(size=5)
    expected = ttest_ind(other, one, equal_var=False).pvalue
    assert nulls.p_value(float(other.mean() - one.mean()), (one, other)) == pytest.approx(expected, rel=1e-9)


def test_a_null_of_its_own_variance_is_harder_to_leave() -> None:
    samples = (chains(0.0)[:8], chains(1.0)[:8])
    assert nulls.p_value(0.05, samples, 1e-3) > nulls.p_value(0.05, samples)
    assert nulls.p_value(0.05, samples, np.nan) == 1.0


def test_a_change_of_curvature_is_no_more_than_that() -> None:
    """Three directions go flat: the LLC follows the Hessian exactly, and by a fifth more it does not."""
    start, end = quadratic_llc(CURVATURES), quadratic_llc(CURVATURES[:1])
    same = nulls.change("s", estimates(start, end, predicted=[start, end]), 0, 1)
    assert same.p_zero < nulls.LEVEL
    assert same.p_predicted == pytest.approx(1.0)
    assert not same.differs
    more = nulls.change("s", estimates(start, end - 0.2 * abs(end - start), predicted=[start, end]), 0, 1)
    assert more.differs


def test_a_tenth_of_the_predicted_change_is_within_it() -> None:
    assert not nulls.change("s", estimates(0.0, 10.9, predicted=[0.0, 10.0]), 0, 1).differs
    assert nulls.change("s", estimates(0.0, 11.2, predicted=[0.0, 10.0]), 0, 1).differs
    far = nulls.change("s", estimates(0.0, 11.2, predicted=[0.0, 10.0], predicted_error=[0.5, 0.5]), 0, 1)
    assert not far.differs  # the prediction is not known so well


def test_where_there_is_no_prediction_nothing_is_claimed() -> None:
    saddle = nulls.change("s", estimates(0.0, 5.0, predicted=[0.0, np.nan]), 0, 1)
    assert saddle.p_predicted == 1.0
    assert not saddle.differs


def test_a_function_of_the_loss_of_other_seeds_is_a_null() -> None:
    """LLC = 3 + 2 log L in other seeds: a change along it is no more, and one across it is."""
    function = fit(LOSSES, 3 + 2 * np.log(LOSSES) + 0.02 * np.random.default_rng(0).normal(size=len(LOSSES)))
    ends = [float(3 + 2 * np.log(loss)) for loss in (0.2, 1.0)]
    along = nulls.change("s", estimates(*ends, losses=[0.2, 1.0]), 0, 1, function)
    assert along.delta_of_loss == pytest.approx(along.delta_llc, abs=0.05)
    assert along.p_of_loss is not None
    assert along.p_of_loss > 0.01
    assert not along.differs
    across = nulls.change("s", estimates(ends[0], ends[1] + 1, losses=[0.2, 1.0]), 0, 1, function)
    assert across.differs
    assert nulls.change("s", estimates(*ends, losses=[0.2, 1.0]), 0, 1).differs  # nobody asked


@pytest.mark.parametrize(
    ("branches", "differs"),
    [((0.0, 1.0), True), ((1.0, 0.0), False), ((0.5, 0.5), False), ((0.0, 0.005), False)],
)
def test_a_change_that_is_gone_without_the_rate_is_the_rates(branches: tuple[float, float], differs: bool) -> None:
    annealed = chains(branches[0]), chains(branches[1])
    change = nulls.change("s", estimates(0.0, 1.0), 0, 1, None, annealed)
    assert change.delta_annealed == pytest.approx(branches[1] - branches[0])
    assert change.differs == differs


def test_a_branch_that_was_not_sampled_leaves_the_null() -> None:
    change = nulls.change("s", estimates(0.0, 1.0), 0, 1, None, (chains(0.0), np.empty(0)))
    assert change.p_annealed == 1.0
    assert not change.differs


def test_ends_that_were_not_sampled_claim_nothing() -> None:
    assert nulls.change("s", estimates(0.0, 1.0), 0, 1).differs
    assert not nulls.change("s", estimates(0.0, 1.0, sampled=[True, False]), 0, 1).differs
    assert not nulls.change("s", estimates(0.0, np.nan), 0, 1).differs


def test_a_stage_is_claimed_at_all_settings_in_one_direction() -> None:
    up, down, still = (nulls.change("s", estimates(1.0, 1.0 + rise), 0, 1) for rise in (1.0, -0.5, 0.0))
    assert nulls.claimed([up])
    assert nulls.claimed([up, up])
    assert not nulls.claimed([up, still])
    assert not nulls.claimed([up, down])
    assert not nulls.claimed([])


def test_the_nearest_checkpoint_is_nearest_in_log_step() -> None:
    assert [nulls.nearest((0, 10, 1000), step) for step in (0.5, 90, 110, 5000)] == [0, 1, 2, 2]


def row(step: int, verdict: str, reasons: str = "") -> nulls.Row:
    numbers = {"llc": 1.0, "llc_low": 0.9, "llc_high": 1.1, "loss": 1.0, "predicted": 1.0, "predicted_error": 0.1}
    return {"step": step, "verdict": verdict, "reasons": reasons} | numbers


def test_checkpoints_are_those_whose_chains_sampled_at_all_settings() -> None:
    off, escaped = "off minimum: the slope at w* adds 1 to 2", "escaped: draws are at distance 3"
    rows = {
        "a": [row(0, "LLC"), row(1, "curvature"), row(2, "none", off), row(3, "none", f"{off}; {escaped}")],
        "b": [row(0, "none", escaped), row(1, "none", off), row(2, "undecided"), row(3, "LLC")],
    }
    assert nulls.sampled_at_all(rows) == [1, 2]
    assert nulls.sampled_at_all({}) == []  # where all settings are saturated
    own = nulls.estimates_of(rows["a"], [chains(1.0)] * 4)
    assert own.sampled.tolist() == [True, True, True, False]
    assert own.predicted.tolist() == [1.0] * 4
