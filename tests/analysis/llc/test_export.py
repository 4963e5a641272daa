"""An estimate's draws in xarray and ArviZ: the burn-in is left out, and every number is there."""

import sys
from typing import Any

import numpy as np
import pytest

from icl_lab.analysis.llc.estimate import Estimate, of_traces
from icl_lab.analysis.llc.settings import Settings
from icl_lab.lab.environment import UnusableEnvironment

CHAINS, BURN_IN, DRAWS = 3, 20, 80


@pytest.fixture(scope="module")
def estimate() -> Estimate:
    """Traces whose numbers say where they are from, with a check at every second draw."""
    settings = Settings(eps=1e-3, nbeta=10.0, gamma=1.0, chains=CHAINS, burn_in=BURN_IN, draws=DRAWS)
    draw = np.arange(CHAINS)[:, None] + np.arange(BURN_IN + DRAWS)[None] / 1000 + 0.001
    check = draw[:, :: settings.check_every]
    traces = {
        **{"excess": draw, "distance": 2 * draw, "slope": 3 * draw},
        **{"fixed_loss": check, "acceptance": 0 * check + 0.9, "second_excess": check, "second_slope": check},
        **{"losses": np.repeat(draw[..., None], 5, 2), "observed": np.repeat(draw[..., None], 4, 2)},
    }
    return of_traces(traces, settings, 1.0, top_eigenvalue=1.0)


def test_an_xarray_has_draws_and_checks_after_the_burn_in(estimate: Estimate) -> None:
    pytest.importorskip("xarray", reason="xarray is an extra")
    found = estimate.to_xarray()
    assert dict(found.sizes) == {"chain": 3, "draw": 80, "check": 40, "losses_0": 5, "observed_0": 4}
    assert found["observed"].dims == ("chain", "draw", "observed_0")
    assert found["fixed_loss"].dims == ("chain", "check")
    for name in ("excess", "fixed_loss", "second_slope"):
        first = found[name].values[:, 0]
        np.testing.assert_allclose(first, np.arange(3) + BURN_IN / 1000 + 0.001)
    assert found.attrs["verdict"] == estimate.verdict
    assert found.attrs["nbeta"] == 10.0
    assert found.attrs["llc"] == estimate.value


def test_what_it_says_can_be_stored(estimate: Estimate) -> None:
    """NetCDF takes numbers and text as attributes."""
    pytest.importorskip("xarray", reason="xarray is an extra")
    assert all(isinstance(value, (int, float, str)) for value in estimate.to_xarray().attrs.values())


def test_arviz_has_the_draws_as_a_posterior(estimate: Estimate) -> None:
    arviz: Any = pytest.importorskip("arviz", reason="ArviZ is an extra")
    posterior = estimate.to_arviz().posterior
    assert {*posterior.data_vars} == {"excess", "distance", "slope", "observed"}
    np.testing.assert_array_equal(posterior["excess"].values, estimate.excess)
    assert posterior["observed"].shape == (3, 80, 4)
    assert arviz.summary(estimate.to_arviz(), var_names=["excess"])["mean"].item() == pytest.approx(1.06, abs=0.01)


@pytest.mark.parametrize("name", ["xarray", "arviz"])
def test_a_missing_package_is_named(name: str, estimate: Estimate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(UnusableEnvironment, match=f"lacks the package {name}; install it with .* -m pip install "):
        getattr(estimate, f"to_{name}")()
