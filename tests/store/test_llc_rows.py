"""Rows of LLC tables: which are usable, and what those of earlier versions say in today's words."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from icl_lab.store import StoreError, layout
from icl_lab.store.llc_rows import (
    DIAGNOSTICS,
    ESTIMATE,
    NONE,
    UNDECIDED,
    VERDICTS,
    WORDS,
    current,
    is_usable,
    read_development,
    read_stages,
    read_table,
    said,
    translated,
    usable,
)
from icl_lab.store.metrics import append_metrics, metrics, read_summary, truncate_metrics

# what a version with the column health said -> what it says today
EARLIER = {
    "saturated: draws are 0.91 of the way to the null predictor": (
        "saturated: draws are 0.91 of the way to the null predictor"
    ),
    "unstable: eps (nbeta h_max + gamma) is 1.2, not below 1": (
        "step too long: eps (nbeta h_max + gamma) is 1.2, not below 1"
    ),
    "moving: +3.1 standard errors from the first to the last quarter of the draws": (
        "not mixed: +3.1 standard errors from the first to the last quarter of the draws"
    ),
    "unmixed: R-hat is 1.300, above 1.2": "not mixed: R-hat is 1.300, above 1.2",
    "rejected: acceptance is 0.04": "step too long: acceptance is 0.04",
    "above null: L(w*) is above the null predictor's loss": (
        "cannot be computed: saturation, for L(w*) is above the null predictor's loss"
    ),
    "no movement: the losses of the draws differ by rounding alone, so R-hat is not computed": (
        "not mixed: the losses of the draws differ by rounding alone, so R-hat is not computed"
    ),
    "not computed: trend is nan": "cannot be computed: trend is nan",
    "no minimum: the draws lie below L(w*)": "off minimum: the draws lie below L(w*)",
    "diverged: chain 3 at draw 17, as eps is too large for these nbeta and gamma": (
        "cannot be computed: chain 3 diverged at draw 17, as eps is too large for these nbeta and gamma"
    ),
    "unmixed": "not mixed",
    "": "cannot be computed: no reason is given",
    # an error that was recorded in a training
    "with gamma 0 nothing bounds the flat directions at these parameters; choose gamma above 0": (
        "cannot be computed: with gamma 0 nothing bounds the flat directions at these parameters, choose gamma above 0"
    ),
}
ROW: dict[str, Any] = {"step": 1, "llc": 5.0, "llc_low": 4.9, "llc_high": 5.1, "health": "healthy", "eps": 1e-4}
ROW |= {"saturation": 0.1, "stability": 0.1, "trend": 0.0, "r_hat": 1.0, "acceptance": 0.9}


@pytest.mark.parametrize("health", EARLIER)
def test_every_earlier_reason_has_a_word_of_today(health: str) -> None:
    assert translated(health) == [EARLIER[health]]
    assert EARLIER[health].partition(":")[0] in WORDS
    row = current(ROW | {"health": health})
    assert (row["verdict"], row["reasons"]) == (NONE, EARLIER[health])
    assert not is_usable(row)


def test_several_earlier_reasons_are_several_today() -> None:
    texts = list(EARLIER)[:9]
    assert current(ROW | {"health": "; ".join(texts)})["reasons"] == "; ".join(EARLIER[text] for text in texts)


def test_a_row_that_was_healthy_is_undecided_and_its_columns_keep_their_places() -> None:
    row = current(ROW)
    assert [*row] == ["step", *ESTIMATE, "verdict", "reasons", "eps", *DIAGNOSTICS]
    assert (row["verdict"], row["reasons"]) == (UNDECIDED, "")
    assert {name: value for name, value in row.items() if name in ROW} == {
        name: value for name, value in ROW.items() if name != "health"
    }
    assert is_usable(row)
    assert current(row) == row
    with pytest.raises(KeyError):
        current({"step": 1, "llc": 5.0})


@pytest.mark.parametrize("name", [*ESTIMATE, *DIAGNOSTICS])
@pytest.mark.parametrize("value", [math.nan, math.inf, None])
def test_a_row_that_was_healthy_without_a_number_is_not_usable(name: str, value: float | None) -> None:
    row = current(ROW | {name: value})
    assert (row["verdict"], row["reasons"]) == (NONE, f"cannot be computed: {name} is {value}")


@pytest.mark.parametrize("verdict", VERDICTS)
def test_a_row_is_usable_by_its_verdict_and_its_numbers(verdict: str) -> None:
    row = {"verdict": verdict, "llc": 5.0, "llc_low": 4.9, "llc_high": 5.1}
    assert is_usable(row) == (verdict != "none")
    for name in ESTIMATE:
        for value in (math.nan, math.inf, -math.inf, None):
            assert not is_usable(row | {name: value})
        assert not is_usable({other: number for other, number in row.items() if other != name})
    assert not is_usable(row | {"verdict": "healthy"})  # a word that is none


def test_reasons_are_said_in_one_text() -> None:
    assert said([]) == {"verdict": "undecided", "reasons": ""}
    assert said(["a: b", "c: d"]) == {"verdict": "none", "reasons": "a: b; c: d"}


# --- files ---


def test_tables_of_all_versions_are_read(tmp_path: Path) -> None:
    """One setting of today's columns and one of an earlier version's in one table, as in no file of ours."""
    text = "step,llc_a,llc_low_a,llc_high_a,health_a,llc_b,llc_low_b,llc_high_b,verdict_b,reasons_b\n"
    text += "1,2,1,3,healthy,2,1,3,none,saturated: NA\n2,,,,unmixed,2,1,3,LLC,\n3,nan,1,3,healthy,2,,3,LLC,\n"
    (tmp_path / "table.csv").write_text(text)
    table = read_table(tmp_path / "table.csv", ("step",), suffixes=("_a", "_b"))
    assert table["verdict_a"].tolist() == ["undecided", "none", "none"]
    assert table["reasons_a"].tolist() == ["", "not mixed", "cannot be computed: llc is nan"]
    assert table["reasons_b"].tolist() == ["saturated: NA", "", ""]
    assert "health_a" not in table
    np.testing.assert_array_equal(usable(table, "_a"), [True, False, False])
    np.testing.assert_array_equal(usable(table, "_b"), [False, True, False])
    with pytest.raises(StoreError, match="has no column verdict, reasons"):
        read_table(tmp_path / "table.csv", ("step",))
    (tmp_path / "table.csv").write_text("llc,llc_low,llc_high,health\nfive,1,3,healthy\n")
    with pytest.raises(StoreError, match="is not a table of LLCs"):
        read_table(tmp_path / "table.csv", ())


def test_records_of_all_versions_are_read(tmp_path: Path) -> None:
    base = {"step": 0, "train_loss": 1.0, "eval_loss": 1.0}
    gone = dict.fromkeys(("llc", "llc_low", "llc_high", "llc_saturation"))
    known = {"llc": 5.0, "llc_low": 4.9, "llc_high": 5.1, "llc_saturation": 0.1}
    records = [
        base | known | {"llc_health": "healthy"},
        base | gone | {"llc_health": "diverged: chain 1 at draw 7, as eps is too large for these nbeta and gamma"},
        base | known | {"llc_verdict": "curvature", "llc_reasons": ""},
        base,
    ]
    (tmp_path / layout.METRICS).write_text("".join(json.dumps(record) + "\n" for record in records))
    first, diverged, *todays = metrics(tmp_path)
    assert first == base | known | {"llc_verdict": "undecided", "llc_reasons": ""}
    assert (diverged["llc_verdict"], diverged["llc"]) == ("none", None)
    assert diverged["llc_reasons"].startswith("cannot be computed: chain 1 diverged at draw 7, as eps is")
    assert todays == records[2:]
    append_metrics(tmp_path, record := records[2] | {"step": 10})  # as of a run that goes on
    truncate_metrics(tmp_path, 10, [0, 0, 0, 0, 10])
    assert [*metrics(tmp_path)][-1] == record
    assert len([*metrics(tmp_path)]) == 5
    (tmp_path / layout.SUMMARY).write_text(json.dumps(records[0] | {"num_steps": 100}))
    assert read_summary(tmp_path) == first | {"num_steps": 100}


def test_facts_of_all_versions_are_read_and_names_of_settings_stay(tmp_path: Path) -> None:
    line = {"slope": -1.0, "healthy": 3, "checkpoints": 4}
    facts = {"settings": {"healthy": {"eps": 1.0}}, "lines": {"healthy": line}, "healthy": {"healthy": [3, 4]}}
    (tmp_path / layout.DEVELOP).parent.mkdir(parents=True)
    (tmp_path / layout.DEVELOP).write_text(json.dumps(facts | {"healthy_at_all": [0, 1]}))
    read = read_development(tmp_path)
    assert read == {
        "settings": {"healthy": {"eps": 1.0}},
        "lines": {"healthy": {"slope": -1.0, "usable": 3, "checkpoints": 4}},
        "usable": {"healthy": [3, 4]},
        "usable_at_all": [0, 1],
    }
    (tmp_path / layout.DEVELOP).write_text(json.dumps(read))
    assert read_development(tmp_path) == read
    stages = {"healthy_only": True, "checkpoints": {"healthy": [True]}, "milestones": [{"step": 1.0, "healthy": True}]}
    (tmp_path / layout.STAGES_FACTS).write_text(json.dumps(stages))
    assert read_stages(tmp_path) == {
        "usable_only": True,
        "checkpoints": {"usable": [True]},
        "milestones": [{"step": 1.0, "usable": True}],
    }
    (tmp_path / layout.DEVELOP).write_text('{"lines": 5}')
    with pytest.raises(StoreError, match="is not the development of a run"):
        read_development(tmp_path)


def test_a_table_is_of_as_many_verdicts_as_rows() -> None:
    assert usable(pd.DataFrame({"verdict": [], "llc": []})).shape == (0,)
