"""No verdict on an LLC passes on a number that could not be computed: a row, calibration, nulls, validation."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icl_lab.analysis.development import nulls, of_loss
from icl_lab.analysis.llc.estimate import of_traces
from icl_lab.analysis.llc.mixing import NO_MOVEMENT
from icl_lab.analysis.llc.settings import Settings
from icl_lab.analysis.llc.validation import cases as cases
from icl_lab.analysis.llc.validation.cases import estimate
from icl_lab.analysis.llc_calibrate import advise
from icl_lab.store.llc_rows import DIAGNOSTICS, ESTIMATE, current, is_usable
from tests.verdicts.values import NOT_COMPUTED, NOT_FINITE

SETTINGS = Settings(eps=1e-3, nbeta=100.0, gamma=10.0, chains=4, burn_in=40, draws=400)
WITHIN = {"saturation": 0.1, "stability": 0.1, "trend": 0.0, "acceptance": 0.9, "r_hat": 1.0}
ROW = {"step": 1, "llc": 5.0, "llc_low": 4.9, "llc_high": 5.1, "loss": 1.0, "norm": 1.0, **WITHIN}
ROW |= {
    "verdict": "undecided",
    "reasons": "",
    "eps": 1e-3,
    "nbeta": 100.0,
    "gamma": 10.0,
    "chains": 4,
    "burn_in": 400,
    "thin": 1,
    "relaxation": 200.0,
    "sampler": "sgld",
}


EARLIER = {name: value for name, value in ROW.items() if name not in ("verdict", "reasons")} | {"health": "healthy"}


def traces(**changed: Any) -> dict[str, np.ndarray]:
    rng, draws = np.random.default_rng(0), SETTINGS.burn_in + SETTINGS.draws
    return {
        "excess": 0.05 + 0.01 * rng.standard_normal((4, draws)),
        "distance": np.full((4, draws), 0.3),
        "fixed_loss": 1.05 + 0.01 * rng.standard_normal((4, 44)),
        "acceptance": np.full((4, 44), 0.9),
    } | changed


def told(loss: float = 1.0, null_loss: float = 2.0, **changed: Any) -> tuple[str, str]:
    """The verdict on chains, and the reasons."""
    row = of_traces(traces(**changed), SETTINGS, loss, null_loss, np.sqrt(3.0), 3, top_eigenvalue=1.0).row()
    return row["verdict"], row["reasons"]


@given(st.sampled_from(sorted(DIAGNOSTICS)), st.sampled_from(NOT_COMPUTED))
def test_no_diagnostic_of_an_earlier_row_passes_that_is_not_computed(name: str, value: float | None) -> None:
    """Those of today's rows are judged in tests/analysis/llc/test_verdict.py."""
    assert current(EARLIER) == ROW  # as an earlier version wrote it
    read = current(EARLIER | {name: value})
    assert (read["verdict"], read["reasons"]) == ("none", f"cannot be computed: {name} is {value}")


@pytest.mark.parametrize("name", ESTIMATE)
@pytest.mark.parametrize("value", NOT_COMPUTED)
def test_no_estimate_is_usable_that_is_not_there(name: str, value: float | None) -> None:
    assert current(EARLIER | {name: value})["reasons"] == f"cannot be computed: {name} is {value}"
    assert is_usable(ROW)
    assert not is_usable(ROW | {name: value})
    assert not is_usable({other: number for other, number in ROW.items() if other != name})


def test_a_row_of_today_says_its_verdict_itself() -> None:
    assert current(ROW | {"r_hat": 1.3}) == ROW | {"r_hat": 1.3}


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
@pytest.mark.parametrize("value", NOT_FINITE)
def test_chains_are_not_usable_where_a_trace_or_a_loss_is_not_finite(value: float) -> None:
    assert told() == ("undecided", "")
    for name, values in traces().items():
        if name != "distance":  # by which a plateau is shown, or none
            holed = values.copy()
            holed[1, -1] = value
            assert told(**{name: holed})[0] == "none", name
    for name in ("loss", "null_loss"):
        assert told(**{name: value})[0] == "none", name


@pytest.mark.parametrize("eps", [1e-20, 1e-30])
def test_chains_that_do_not_move_say_so(eps: float) -> None:
    """Steps below float32's resolution: all draws are w*."""
    steps = replace(SETTINGS, eps=eps, data="full", chains=2, burn_in=10, draws=40)
    row, drawn = estimate(cases.regression(50, 3), steps)
    assert np.ptp(drawn["fixed_loss"]) <= 1e-6 * row["loss"]
    assert f"not mixed: {NO_MOVEMENT}" in row["reasons"].split("; ")
    assert estimate(cases.regression(50, 3), replace(steps, eps=1e-3, draws=400, burn_in=200))[0]["reasons"] == ""


def test_draws_that_differ_by_rounding_have_not_moved() -> None:
    flat = 1.05 + 1e-7 * np.random.default_rng(0).standard_normal((4, 44))
    assert told(fixed_loss=flat) == ("none", f"not mixed: {NO_MOVEMENT}")


@pytest.mark.parametrize("value", NOT_FINITE)
@pytest.mark.parametrize("name", ESTIMATE)
def test_no_cell_of_a_grid_is_recommended_without_its_numbers(name: str, value: float) -> None:
    later = ROW | {"step": 2}
    assert advise([ROW, later]).cell is not None
    assert advise([ROW, later | {name: value}]).cell is None


def test_a_cell_without_a_checkpoint_of_the_grid_is_not_recommended_and_no_cell_has_no_order() -> None:
    other = ROW | {"gamma": 20.0}
    assert advise([ROW, other, other | {"step": 2}]).cell is not None
    assert advise([ROW, other | {"step": 2}]).cell is None
    gone = ROW | {"llc": math.nan, "verdict": "none", "reasons": "cannot be computed: chain 0 diverged at draw 7"}
    assert "no order" in advise([gone, gone | {"step": 2}]).order


# --- stages ---

CHAINS = np.linspace(-0.1, 0.1, 8)


def rising(**other: float) -> nulls.Estimates:
    """From 1 to 9 where the Hessian predicts no change; fields of the later checkpoint may be replaced."""
    rows = [ROW | {"step": 0, "predicted": 1.0, "predicted_error": 0.1}, ROW | {"predicted": 1.0} | other]
    return nulls.estimates_of(
        [{"predicted_error": 0.1, **row} for row in rows], [CHAINS + 1, CHAINS + other.get("llc", 9.0)]
    )


@pytest.mark.parametrize("value", NOT_COMPUTED)
def test_no_change_differs_from_its_nulls_where_a_p_value_is_not_computed(value: float | None) -> None:
    change = nulls.change("s", rising(), 0, 1)
    assert (change.p_of_loss, change.p_annealed) == (None, None)  # nobody asked
    assert nulls.claimed([change, change])
    for name in ("p_zero", "p_predicted"):
        assert not change._replace(**{name: value}).differs, name  # type: ignore[arg-type]
    for name in ("p_of_loss", "p_annealed"):
        if value is not None:
            assert not change._replace(**{name: value}).differs, name  # type: ignore[arg-type]
    assert not nulls.claimed([])


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
@pytest.mark.parametrize("name", ["llc", "llc_low", "llc_high", "predicted", "predicted_error"])
@pytest.mark.parametrize("value", NOT_FINITE)
def test_no_change_differs_from_its_nulls_where_a_number_of_a_row_is_missing(name: str, value: float) -> None:
    assert nulls.change("s", rising(), 0, 1).differs
    assert not nulls.change("s", rising(**{name: value}), 0, 1).differs


def test_a_null_of_the_loss_that_is_not_computed_is_not_excluded() -> None:
    losses = np.geomspace(0.1, 2, 20)
    gone = rising(loss=math.nan)
    assert not nulls.change("s", gone, 0, 1, of_loss.fit(losses, losses)).differs


# --- validation (its targets: tests/analysis/llc/test_validation.py) ---


def test_a_validation_of_nothing_does_not_pass(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from icl_lab.scripts import llc_validation as command

    monkeypatch.setattr(command, "_printed", lambda targets, quick: iter(()))
    monkeypatch.setattr(command, "_wrong", lambda: iter(()))
    monkeypatch.setattr(command, "write", lambda *files: None)
    assert command.main(["--out", str(tmp_path)]) == 1
