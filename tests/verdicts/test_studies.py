"""No verdict of a study passes on a number that could not be computed: claims, controls, contrasts, predictions."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icl_lab.scripts import gpu_check
from icl_lab.src.intervals import SCALES
from icl_lab.studies import measuring
from icl_lab.studies.claim import Claim, Measurement
from icl_lab.studies.conjecture_page import together
from icl_lab.studies.contrast import DECIDING, judged
from icl_lab.studies.order_noise.agreement import _row
from icl_lab.studies.verdict import CONTROL_NOT_COMPUTED, NOBODY, judge
from icl_lab.studies.verdict import NOT_COMPUTED as FOR_A_RUN
from tests.verdicts.values import NOT_COMPUTED as MISSING
from tests.verdicts.values import NOT_FINITE

PASSES = ("reproduced", "no effect")
INSIDE = (0.98, 0.981, 0.979, 0.98, 0.9805, 0.9795, 0.9803, 0.9798)


def claim(scale: str = "linear", **rules: Any) -> Claim:
    low, high = (-math.inf, math.inf) if scale in ("linear", "log") else (0.5, 0.999)
    return Claim("c", "1", "says", 1.0, low, high, "derived", float, scale=scale, **rules)


def measured(*values: float | None, control: tuple[float | None, ...] = ()) -> Measurement:
    return Measurement(values, tuple(range(len(values))), 0.5, "cpu", "2026-01-01", "abc", control_values=control)


@given(
    st.sampled_from(sorted({*SCALES} - {"share"})),
    st.sampled_from([math.nan, math.inf, None]),
    st.integers(1, len(INSIDE)),
    st.sampled_from([{}, {"every": True}, {"no_effect": (-math.inf, math.inf)}, {"among": bool}]),
)
def test_no_claim_is_reproduced_by_values_of_which_most_are_not_computed(
    scale: str, value: float | None, count: int, rules: dict[str, Any]
) -> None:
    """A claim on those that learnt leaves nan out; of the others one missing value is enough."""
    c = claim(scale, **rules)
    assert judge(c, measured(*INSIDE)).verdict == "reproduced"
    left_out = "among" in rules and value is not None and math.isnan(value)
    missing = (value,) * (len(INSIDE) if left_out or value == math.inf else count)
    judged = judge(c, measured(*missing, *INSIDE[len(missing) :]))
    assert judged.verdict not in PASSES
    if value is None or math.isnan(value):
        assert judged.because == (NOBODY if left_out else FOR_A_RUN)


@pytest.mark.parametrize("value", [math.nan, None])
def test_no_claim_is_reproduced_where_its_control_is_not_computed(value: float | None) -> None:
    for control in ((value,), (3.0, value), (value, 3.0, 3.0)):
        judged = judge(claim()._replace(low=0.5, high=1.5), measured(*INSIDE, control=control))
        assert (judged.verdict, judged.because) == ("undecided", CONTROL_NOT_COMPUTED)
    assert judge(claim()._replace(low=0.5, high=1.5), measured(*INSIDE, control=(3.0,))).verdict == "reproduced"


def test_no_measurement_is_no_verdict() -> None:
    assert judge(claim(), None).verdict == "not run"
    assert judge(claim(), measured()).verdict == "undecided"


@pytest.mark.parametrize("learnt", [math.nan, 0.0, None, math.inf])
def test_a_run_of_which_nobody_knows_whether_it_learnt_is_left_out(
    learnt: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measuring.rundir, "read_status", lambda run: "done")
    runs = (measuring.Path("run"),)
    among = claim(among=lambda run: learnt)._replace(measure=lambda run: 7.0)
    assert math.isnan(measuring._value(among, runs) or 0.0)
    assert measuring._value(among._replace(among=lambda run: 1.0), runs) == 7.0
    assert measuring._value(among._replace(among=lambda run: True, measure=lambda run: math.nan), runs) is None


@pytest.mark.parametrize("verdicts", [(), ("not run",), ("reproduced", "not run"), ("no effect",), ("",)])
def test_a_conjecture_of_nothing_or_of_what_is_not_run_is_undecided(verdicts: tuple[str, ...]) -> None:
    def of_all(*words: str) -> str:
        return together([{"verdict": word, "reading_says": word, "n": 8} for word in words])["verdict"]

    assert of_all("reproduced", "as predicted") == "as predicted"
    assert of_all(*verdicts) == "undecided"


# --- contrasts ---

ROW = {"n": 8, "largest_change": 0.0, "p_equivalence": 0.001, "p_holm": 0.001, "difference": 1.0}
SHOWN = {"exact": "no effect", "equivalence": "no effect", "difference": "higher"}


@pytest.mark.parametrize("value", MISSING)
@pytest.mark.parametrize("kind", SHOWN)
def test_no_contrast_shows_anything_by_a_number_that_is_not_computed(kind: str, value: float | None) -> None:
    assert judged(ROW | {"kind": kind})["verdict"] == SHOWN[kind]
    assert judged(ROW | {"kind": kind, DECIDING[kind]: value})["verdict"] == "undecided"


@pytest.mark.parametrize("value", NOT_FINITE)
def test_no_change_is_as_predicted_where_one_of_the_two_is_not_computed(value: float) -> None:
    changes = np.array([0.1, 0.1001, 0.0999])
    assert _row(0.1, changes, 0.005)["reading_says"] == "as predicted"
    assert _row(value, changes, 0.005)["verdict"] == "undecided"
    assert _row(0.1, np.array([*changes, value]), 0.005)["verdict"] == "undecided"


# --- the check of a GPU ---


@pytest.mark.parametrize(
    "changed",
    [
        *({"exit_status": statuses} for statuses in ([], [None], [0, None], [math.nan], [1])),
        *({"result": result} for result in (None, {}, [])),
    ],
)
def test_no_part_passes_without_a_command_a_status_or_a_result(changed: dict[str, Any]) -> None:
    part = {"exit_status": [0], "result": {"tests": 3}}
    assert not gpu_check._failed(part)
    assert gpu_check._failed(part | changed)
