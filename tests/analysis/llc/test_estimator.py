"""Estimates: settings, the interval of a row, masks, and orders that have to come out right."""

from dataclasses import asdict, replace
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from icl_lab.analysis.llc.any_model import chosen_eps, require_no_flat_direction
from icl_lab.analysis.llc.estimate import of_traces
from icl_lab.analysis.llc.estimator import check_mask
from icl_lab.analysis.llc.settings import Settings
from icl_lab.analysis.llc.validation import cases
from icl_lab.analysis.llc.validation.cases import chain_means, estimate
from icl_lab.src.checks import ConfigError
from icl_lab.src.model import Model

FULL = Settings(eps=2e-4, nbeta=1e3, gamma=1.0, data="full", chains=32, burn_in=100, draws=300, thin=10)


def rowed(excess: np.ndarray, settings: Settings) -> dict[str, Any]:
    checks = np.ones((len(excess), -(-excess.shape[1] // settings.check_every)))
    traces = {"excess": excess, "distance": excess, "fixed_loss": checks, "acceptance": checks}
    return of_traces(traces, settings, 1.0, 2.0, np.sqrt(3.0), 3, top_eigenvalue=1.0).row()


def test_the_interval_is_t_over_chain_means_after_burn_in() -> None:
    settings = replace(FULL, chains=5, burn_in=10, draws=40)
    excess = np.random.default_rng(0).standard_normal((5, 50)) * 0.1 + 0.5
    excess[:, :10] = 1e3
    means = 1e3 * excess[:, 10:].mean(axis=1)
    low, high = stats.t.interval(0.95, 4, means.mean(), stats.sem(means))
    row = rowed(excess, settings)
    assert (row["llc"], row["llc_low"], row["llc_high"]) == pytest.approx((means.mean(), low, high))
    assert {name: row[name] for name in asdict(settings)} == asdict(settings)


def test_chains_that_diverge_have_no_estimate() -> None:
    excess = np.ones((4, 400))
    excess[2, 350:] = np.nan
    row = rowed(excess, replace(FULL, chains=4))
    assert np.isnan([row["llc"], row["llc_low"], row["llc_high"]]).all()
    assert row["reasons"].startswith("cannot be computed: chain 2 diverged at draw 350,")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"eps": 0.0}, "eps is 0.0; it must be a number above 0"),
        ({"nbeta": -1.0}, "nbeta is -1.0; it must be a number above 0"),
        ({"nbeta": float("inf")}, "nbeta is inf"),
        ({"eps": float("nan")}, "eps is nan"),
        ({"gamma": -0.1}, "gamma is -0.1; it must be a number from 0"),
        ({"gamma": float("nan")}, "gamma is nan"),
        ({"chains": 1}, "chains is 1; it must be a whole number from 2 to 4096"),
        ({"draws": 7}, "draws is 7"),
        ({"burn_in": -1}, "burn_in is -1"),
        ({"thin": 0}, "thin is 0"),
        ({"batch_size": 5000}, "more than the 4096 tasks"),
        ({"data": "new"}, "choose fixed, fresh, full"),
        ({"mask": "("}, "not a regular expression"),
        ({"sampler": "adam"}, "sampler is 'adam'; choose sgld, rmsprop, sghmc, hmc"),
        ({"sampler": "hmc"}, "hmc takes all samples at each step, so it must be full"),
        ({"friction": 0.0}, "friction is 0.0; it must be a number above 0"),
        ({"friction": 1.5}, "friction is 1.5"),
        ({"descend": -1}, "descend is -1"),
    ],
)
def test_settings_that_no_chain_can_have(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Settings(**wrong)


settings_of = st.builds(
    Settings,
    eps=st.floats(1e-9, 1.0),
    nbeta=st.floats(1e-3, 1e6),
    gamma=st.floats(0.0, 1e6),
    chains=st.integers(2, 64),
    burn_in=st.integers(0, 500),
    draws=st.integers(8, 2000),
    thin=st.integers(1, 100),
    seed=st.integers(0, 5),
)


@given(settings_of, settings_of)
def test_settings_have_a_name_of_their_own(one: Settings, other: Settings) -> None:
    assert (one.name == other.name) == (one == other)
    assert one.name == replace(one).name
    assert one.check_every * 40 <= max(one.draws, 40)
    assert one.program == replace(one, eps=0.5, nbeta=2.0, gamma=3.0, seed=9).program


def test_eps_that_is_chosen_is_no_number_of_the_settings() -> None:
    """It is a tenth of the bound of stability at each checkpoint; a negative curvature bounds nothing."""
    settings = replace(FULL, eps=None)
    with pytest.raises(
        ConfigError, match="eps is auto, but one value for all checkpoints is needed here; give a number"
    ):
        _ = settings.step_size
    assert chosen_eps(settings, 3.0) == pytest.approx(0.1 / (1e3 * 3.0 + 1.0))
    assert chosen_eps(settings, -3.0) == pytest.approx(0.1)


def test_a_mask_is_checked_by_the_names_of_a_model() -> None:
    def init(key: Any) -> Any:
        return {"attn": {"w": jnp.zeros(2)}}

    model = Model(init=init, predict=lambda *_: None, losses=lambda *_: None)
    check_mask(model, "^attn.*/w$")
    with pytest.raises(ConfigError, match="matches no floating-point parameter; choose from attn/w"):
        check_mask(model, "embedding")


def test_without_localisation_a_flat_or_falling_direction_is_refused() -> None:
    """A millionth of the largest eigenvalue is flat."""
    require_no_flat_direction(1.1e-6, 1.0)
    for low in (0.9e-6, 0.0, -0.1, float("nan")):
        with pytest.raises(ConfigError, match="choose gamma above 0"):
            require_no_flat_direction(low, 1.0)


def test_a_flatter_minimum_has_a_lower_coefficient() -> None:
    """Sum w^2 is d / 2 and sum w^4 is d / 4: 5 and 2.5, by chains with the same noise."""
    regular, degenerate = (estimate(cases.powers(k, 10), FULL)[0] for k in (1, 2))
    assert regular["llc"] == pytest.approx(5.0, rel=0.15)
    assert degenerate["llc"] == pytest.approx(2.5, rel=0.15)
    assert degenerate["llc_high"] < regular["llc_low"]


def test_off_a_minimum_the_estimate_is_negative() -> None:
    case = cases.quadratic([1.0] * 4, off=0.2)
    row, traces = estimate(case, replace(FULL, gamma=1e3))
    assert row["llc_high"] < 0
    assert row["below"] > 0.9  # and the diagnostics show it: draws are below L(w*)
    assert chain_means(traces, FULL).max() < 0
