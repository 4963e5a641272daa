"""Every command that reads a table refuses what is no row of one, with its line, and a table with nothing to draw."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from icl_lab import store
from icl_lab.store.readers import StoreError
from icl_lab.studies.order_noise.table import CELLS, read_cells
from tests.doors import Refused, ran, refused
from tests.plots import sweep

__all__ = ["ran", "refused"]

ROWS = 3


def commas(row: str) -> str:
    """As many as part the fields of a row."""
    return "," * (len(next(csv.reader([row]))) - 1)


DAMAGES: dict[str, tuple[Callable[[str], str], str]] = {
    "a short row": (lambda row: row.rsplit(",", 2)[0], "its line 3 has"),
    "a long row": (lambda row: f"{row},7", "its line 3 has"),
    "a row of one field": (lambda row: "lsa1", "its line 3 has 1 fields, and the first one"),
    "a row of commas": (lambda row: commas(row), "its line 3 has commas alone"),
    "our side of a merge": (lambda row: f"<<<<<<< HEAD\n{row}", "its line 3 is the marker of a merge"),
    "the middle of a merge": (lambda row: f"=======\n{row}", "its line 3 is the marker of a merge"),
    "a marker with commas": (lambda row: ">>>>>>> other" + commas(row), "its line 3 is the marker of a merge"),
}
# command -> the words before and after the table, and the columns that are emptied for there to be nothing to draw
FIGURES = {
    "plots.fig_templates": {"status": "planned"},
    "plots.effects": {"change": "", "difference": ""},
    "plots.predictions": {"change": ""},
}
OTHERS = ("store.table", "eval_order", "studies")


def text_of(command: str, root: Path, folder: Path) -> str:
    """Some rows of a table that a command draws or reads."""
    source = {
        "plots.effects": root / "report/order_noise/contrasts.csv",
        "plots.predictions": root / "report/order_noise/agreement.csv",
        "studies": root / "report/order_noise" / CELLS,
    }.get(command) or sweep.write(folder / "swept.csv", sweep.grid())
    return "".join(source.read_text(encoding="utf-8").splitlines(keepends=True)[: ROWS + 1])


@pytest.fixture
def sentence(refused: Refused, root: Path, tmp_path: Path) -> Callable[[str, str], str]:
    """What a command says of a table with this text; it leaves no figure."""

    def said(command: str, text: str) -> str:
        path = tmp_path / CELLS
        path.write_text(text, encoding="utf-8")
        if command in FIGURES:
            message = refused(command, "--from", path, "--out", tmp_path / "figs")
            assert not (tmp_path / "figs").exists()
            return message
        if command == "eval_order":
            return refused(command, "--runs_dir", tmp_path / "runs", "--out", path, "--append", "--dry_run")
        with pytest.raises(StoreError) as error:
            store.table(path) if command == "store.table" else read_cells(tmp_path)
        return str(error.value)

    return said


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("command", [*FIGURES, *OTHERS])
def test_what_is_no_row_is_refused_with_its_line(
    command: str, damage: str, sentence: Callable[[str, str], str], root: Path, tmp_path: Path
) -> None:
    change, words = DAMAGES[damage]
    header, first, second, *rest = text_of(command, root, tmp_path).splitlines()
    said = sentence(command, "\n".join([header, first, change(second), *rest, ""]))
    assert f"{CELLS} cannot be read: {words}" in said


@pytest.mark.parametrize("command", FIGURES)
def test_a_table_with_nothing_to_draw_is_refused(
    command: str, sentence: Callable[[str, str], str], root: Path, tmp_path: Path
) -> None:
    path = tmp_path / "whole.csv"
    path.write_text(text_of(command, root, tmp_path), encoding="utf-8")
    table = pd.read_csv(path, dtype=str, keep_default_na=False).assign(**FIGURES[command])
    assert f"{CELLS} has nothing to draw: " in sentence(command, table.to_csv(index=False))


@pytest.mark.parametrize("command", OTHERS[::2])
def test_an_undamaged_table_is_read(command: str, root: Path, tmp_path: Path) -> None:
    (tmp_path / CELLS).write_text(text_of(command, root, tmp_path), encoding="utf-8")
    table = store.table(tmp_path / CELLS) if command == "store.table" else read_cells(tmp_path)
    assert len(table) == ROWS
