"""Diagnostics of chains, on traces that are built: what is against them is said, and nothing is of others."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icl_lab.analysis.llc.health import diagnose, divergence, mixing, reasons, trend
from icl_lab.analysis.llc.settings import Settings
from icl_lab.store.llc_rows import NONE, UNDECIDED

SETTINGS = Settings(eps=1e-3, nbeta=100.0, gamma=10.0, chains=8, burn_in=40, draws=400)
RNG = np.random.default_rng(0)


def traces(**changed: Any) -> dict[str, np.ndarray]:
    """Chains that stand still around an excess of .05, with a check every tenth draw."""
    draws, checks = SETTINGS.burn_in + SETTINGS.draws, 44
    return {
        "excess": 0.05 + 0.01 * RNG.standard_normal((8, draws)),
        "distance": np.full((8, draws), 0.3),
        "fixed_loss": 1.05 + 0.01 * np.concatenate([np.full((8, 1), -5.0), RNG.standard_normal((8, checks - 1))], 1),
        "acceptance": np.full((8, checks), 0.9),
    } | changed


def found(top: float = 1.0, null_loss: float = 2.0, **changed: Any) -> Any:
    return diagnose(traces(**changed), SETTINGS, 1.0, null_loss, top, np.full(25, 2.0))


def test_chains_without_a_reason_against_them_and_their_numbers() -> None:
    usable = found()
    assert (usable.verdict, usable.reasons) == (UNDECIDED, "")
    assert usable.draw_loss == pytest.approx(1.05, abs=1e-3)
    assert usable.saturation == pytest.approx(0.05, abs=1e-3)
    assert usable.stability == pytest.approx(1e-3 * (100.0 * 1.0 + 10.0))
    assert usable.relaxation == pytest.approx(2 / (1e-3 * 10.0))
    assert usable.radius == pytest.approx(np.sqrt(25 / 10))
    assert usable.norm == pytest.approx(10.0)
    assert usable.distance == pytest.approx(0.3)
    assert usable.acceptance == pytest.approx(0.9)
    assert usable.below == 0.0


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"null_loss": 1.1}, "saturated: draws are 0.50 of the way to the null predictor"),
        ({"null_loss": 0.9}, "cannot be computed: saturation, for L(w*) is above the null predictor's loss"),
        ({"top": 9.9}, "step too long: eps (nbeta h_max + gamma) is 1, not below 1"),
        ({"acceptance": np.full((8, 44), 0.04)}, "step too long: acceptance is 0.04"),
        ({"excess": np.linspace(0, 0.1, 440) + 1e-3 * RNG.standard_normal((8, 440))}, "not mixed: +"),
        ({"excess": np.linspace(0.1, 0, 440) + 1e-3 * RNG.standard_normal((8, 440))}, "not mixed: -"),
        (
            {"fixed_loss": 1.05 + 0.01 * (RNG.standard_normal((8, 44)) + 2 * np.arange(8)[:, None])},
            "not mixed: R-hat is ",
        ),
    ],
)
def test_chains_with_reasons_against_them_say_them(changed: dict[str, Any], said: str) -> None:
    assert said in found(**changed).reasons
    assert found(**changed).verdict == NONE


def test_all_reasons_are_said() -> None:
    within = {"saturation": 0.3, "stability": 0.99, "trend": -2.0, "acceptance": 0.1, "r_hat": 1.2}
    assert reasons(within) == []
    beyond = {"saturation": 0.9, "stability": 1.0, "trend": -2.1, "acceptance": 0.0, "r_hat": 1.3}
    assert [reason.partition(":")[0] for reason in reasons(beyond)] == [
        "saturated",
        "step too long",
        "not mixed",
        "not mixed",
        "step too long",
    ]


def test_a_divergence_names_its_first_chain_and_draw() -> None:
    excess = traces()["excess"]
    excess[5, 30:], excess[2, 17:], excess[6, 17:] = np.nan, np.inf, np.nan
    assert divergence(excess).startswith("cannot be computed: chain 2 diverged at draw 17,")
    assert found(excess=excess).reasons == divergence(excess)
    assert divergence(traces()["excess"]) == ""


def test_burn_in_is_left_out() -> None:
    excess, fixed = traces()["excess"], traces()["fixed_loss"]
    excess[:, :40], fixed[:, 1:4] = 1e6, 1e6
    changed = found(excess=excess, fixed_loss=fixed)
    assert changed.saturation == pytest.approx(0.05, abs=1e-3)
    assert changed.r_hat < 1.1


def test_draws_below_w_star_are_counted() -> None:
    fixed = np.full((8, 44), 1.05)
    fixed[:, 30:] = 0.9
    fixed[:, 0] = 1.0
    assert found(fixed_loss=fixed).below == pytest.approx(14 / 40)


def test_trend_is_a_t_of_quarters() -> None:
    """Against SciPy's one-sample t over chains."""
    from scipy import stats

    excess = RNG.standard_normal((8, 400)) + np.linspace(0, 0.3, 400)
    change = excess[:, 300:].mean(1) - excess[:, :100].mean(1)
    assert trend(excess) == pytest.approx(stats.ttest_1samp(change, 0.0).statistic)
    late = excess[:, 300:].mean(1) - excess[:, 200:300].mean(1)
    assert trend(excess, since=-2) == pytest.approx(stats.ttest_1samp(late, 0.0).statistic)
    assert math.isnan(trend(np.ones((8, 400))))  # nothing changes
    assert trend(np.tile(np.arange(400.0), (8, 1))) == math.inf  # all change alike


@given(st.floats(0.01, 100), st.floats(-10, 10))
def test_trend_has_no_unit(scale: float, shift: float) -> None:
    excess = np.random.default_rng(1).standard_normal((6, 80))
    assert trend(scale * excess + shift) == pytest.approx(trend(excess), rel=1e-6)


def test_mixing_of_known_series() -> None:
    independent = RNG.standard_normal((8, 1000))
    still = mixing(independent)
    assert still["r_hat"] == pytest.approx(1.0, abs=0.01)
    assert still["ess"] == pytest.approx(8000, rel=0.1)
    slow = np.zeros((8, 1000))
    for t in range(1, 1000):
        slow[:, t] = 0.9 * slow[:, t - 1] + RNG.standard_normal(8)
    assert mixing(slow)["ess"] == pytest.approx(8000 * 0.1 / 1.9, rel=0.3)  # n (1 - rho) / (1 + rho)
    assert mixing(independent + 3 * np.arange(8)[:, None])["r_hat"] > 2
    drifting = independent + np.linspace(0, 6, 1000)  # split R-hat sees what whole chains hide
    assert mixing(drifting)["r_hat"] > 1.2


def test_mixing_of_nothing_is_not_a_number() -> None:
    for values in (np.ones((8, 40)), np.ones((8, 3)), np.full((8, 40), np.nan)):
        assert all(np.isnan(value) for value in mixing(values).values())
