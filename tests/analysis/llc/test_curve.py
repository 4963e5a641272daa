"""A curve of LLCs: which points count for a plateau, the limits there, and what is said where there is none."""

import math
from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from icl_lab.analysis.llc import curve
from icl_lab.analysis.llc.any_model import Problem
from icl_lab.analysis.llc.estimate import Estimate, of_traces
from icl_lab.analysis.llc.loss import split
from icl_lab.analysis.llc.settings import Settings
from icl_lab.analysis.llc.verdict import LOCALISED, PLATEAU, UNDECIDED

BASE = Settings(eps=1e-4, nbeta=100.0, gamma=1.0, data="full", chains=4, burn_in=0, draws=80)


def made(nbeta: float, gamma: float, value: float = 2.0, **changes: Any) -> Estimate:
    """An estimate of this value by four chains that differ by 1 %, on a plateau unless it is said otherwise."""
    means = value / nbeta * (1 + 0.01 * np.array([-1.0, -0.5, 0.5, 1.0]))
    excess = means[:, None] * (1 + 0.1 * np.sin(np.arange(80.0)))
    found = of_traces({"excess": excess}, replace(BASE, nbeta=nbeta, gamma=gamma))
    slopes = found.slopes._replace(degree=changes.pop("degree", 2.0), degree_error=0.01)
    return replace(
        found, pull=changes.pop("pull", PLATEAU), reasons=changes.pop("reasons", ()), slopes=slopes, **changes
    )


def test_a_point_counts_with_its_neighbours_within_half_a_decade() -> None:
    near, far = made(100, 1), made(100, 10)
    assert curve.on_plateau([near]) == [False]  # alone it shows nothing
    assert curve.on_plateau([near, far]) == [False, False]
    assert curve.on_plateau([near, made(100, 10**0.5)]) == [True, True]
    assert curve.on_plateau([near, made(100, 3), made(300, 1, pull=UNDECIDED)]) == [False] * 3
    assert curve.on_plateau([near, made(100, 3, degree=4.0)]) == [False, False]


def test_the_limit_in_eps_is_linear_chain_by_chain() -> None:
    coarse, finer = made(100, 1, 2.2), made(100, 1, 2.1)
    limit = curve.extrapolated(coarse, finer, [coarse])
    assert limit.value == pytest.approx(2 * finer.value - coarse.value)
    assert limit.low < limit.value < limit.high
    assert limit.coefficient is None
    assert curve.extrapolated(coarse, finer, [coarse], 1).coefficient == limit.value


@pytest.mark.parametrize(("coefficient", "multiplicity", "c"), [(0.5, 2, 0.7), (2.0, 3, -1.0), (1.0, 2, 3.0)])
def test_the_coefficient_of_a_known_multiplicity_is_found_from_two_nbeta(
    coefficient: float, multiplicity: int, c: float
) -> None:
    def at(nbeta: float) -> Estimate:
        value = coefficient - (multiplicity - 1) / (math.log(nbeta) + c)
        return replace(made(nbeta, 1), value=value)

    assert curve.with_multiplicity([at(1e3), at(1e5)], multiplicity) == pytest.approx(coefficient)
    assert curve.with_multiplicity([at(1e3)], multiplicity) is None
    fallen = [replace(at(1e3), value=1.0), replace(at(1e5), value=0.9)]  # no c has an LLC that falls with nbeta
    assert curve.with_multiplicity(fallen, multiplicity) is None
    said = curve.extrapolated(at(1e3), at(1e3), [at(1e3)], multiplicity).said
    assert said.endswith(f"lambda of multiplicity {multiplicity}: needs two nbeta on the plateau")


def test_where_there_is_no_plateau_the_next_step_is_said() -> None:
    assert curve.next_step([made(100, 1, pull=LOCALISED)]).startswith("gamma sets the value")
    assert curve.next_step([made(100, 1, pull=UNDECIDED)]).endswith("raise --chains or --draws")
    assert "within half a decade" in curve.next_step([made(100, 1)])
    for word, remedy in curve.REMEDIES.items():
        assert curve.next_step([made(100, 1, reasons=(f"{word}: a sentence",))]) == remedy


def test_a_curve_descends_once_and_says_how_far(monkeypatch: pytest.MonkeyPatch) -> None:
    """From (1, 1) to the minimum at 0: distance sqrt 2, and a loss of 1 less."""
    calls = []
    once = curve.descended
    monkeypatch.setattr(curve, "descended", lambda *given: calls.append(given) or once(*given))
    taken = split(lambda w, batch: batch[:, 0] * 0.5 * jnp.sum(w**2), np.ones(2, np.float32))
    problem = Problem(taken, np.ones((1, 1), np.float32), 1)
    settings = replace(BASE, eps=None, chains=4, draws=40, tasks=1, batch_size=1, descend=20)
    found = curve.curve_of(problem, settings, [1e3], [10.0, 1e3])
    assert len(calls) == 1
    for row in found.rows():
        assert row["descent_distance"] == pytest.approx(math.sqrt(2), rel=1e-3)
        assert row["descent_gain"] == pytest.approx(1.0, rel=1e-3)
        assert row["descend"] == 20
        assert abs(row["slope_part"]) < 0.01


def test_a_regular_minimum_has_a_plateau_at_half_its_parameters() -> None:
    """L = |w|^2 / 2 of 4 parameters at gamma / nbeta of .001 to .003: LLC 2, within 5 % by 32 chains."""
    taken = split(lambda w, batch: batch[:, 0] * 0.5 * jnp.sum(w**2), np.zeros(4, np.float32))
    problem = Problem(taken, np.ones((1, 1), np.float32), 1)
    settings = replace(BASE, eps=None, chains=32, burn_in=100, draws=300, tasks=1, batch_size=1)
    found = curve.curve_of(problem, settings, [1e3], [1.0, 3.0])
    assert found.counts == [True, True]
    assert found.limit is not None
    assert found.limit.value == pytest.approx(2.0, rel=0.05)
    assert found.said.startswith("plateau: LLC ")
    assert [row["on_plateau"] for row in found.rows()] == [True, True]
    pulled = curve.curve_of(problem, settings, [1e3], [1e3, 3e3])
    assert pulled.limit is None
    assert pulled.said.startswith("no plateau at these settings; gamma sets the value")
