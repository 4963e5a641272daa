"""The figure of the ledger: where values are drawn, for every kind of range."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from icl_lab.plots import ledger
from icl_lab.plots.ledger import EDGE, draw_ledger
from icl_lab.store.readers import StoreError
from tests.runners.tiny import ROOT


def axis(low: float, high: float, scale: str, *values: float) -> Any:
    return ledger._Axis({"low": low, "high": high, "scale": scale}, np.array(values))


def test_the_ends_of_a_range_are_0_and_1_on_its_scale() -> None:
    np.testing.assert_allclose(axis(1, 3, "linear", 2)(np.array([1.0, 2.0, 3.0])), [0, 0.5, 1])
    np.testing.assert_allclose(axis(1, 4, "log", 2)(np.array([1.0, 2.0, 4.0])), [0, 0.5, 1])


def test_of_a_range_with_one_end_that_end_is_drawn_and_the_band_is_open() -> None:
    at_most = axis(0, 2, "log", 1.0)
    assert at_most.band == (-EDGE, 1.0)
    assert at_most(np.array([2.0])) == pytest.approx(1)
    assert 0 < at_most(np.array([1.0])) < 1
    at_least = axis(2, 1e6, "log", 3.0)
    assert at_least.band == (0.0, 1 + EDGE)
    assert at_least(np.array([2.0])) == pytest.approx(0)


def test_what_is_far_away_is_drawn_at_the_edge() -> None:
    np.testing.assert_allclose(axis(1, 2, "linear", 1)(np.array([-99.0, 99.0, np.inf])), [-EDGE, 1 + EDGE, 1 + EDGE])


def test_every_list_of_the_committed_ledger_has_a_figure(tmp_path: Path) -> None:
    drawn = draw_ledger(ROOT / "report/claims.csv", tmp_path)
    assert {path.name for path in drawn} == {"paper.png", "ours.png", "check.png"}


def test_a_table_that_is_no_ledger_is_named(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    with pytest.raises(StoreError, match="it has no column"):
        draw_ledger(tmp_path / "t.csv", tmp_path)
