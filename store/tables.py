"""Runs as a pandas table: `store.table("runs/eval_order")`, or that of a sweep's CSV."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from store import layout
from store.listing import BROKEN, NO_RUN, Entry, flat, last_record, list_runs
from store.readers import StoreError, is_number, read_csv, read_json

if TYPE_CHECKING:
    import pandas as pd

NOT_NUMBERS = ("contexts",)  # of a summary: settings, which the config's columns are


def table(path: str | Path) -> pd.DataFrame:
    """One row a run: `path`, `status`, the config's fields under dotted names, and the numbers of its summary.

    Of a run that is not done these are the numbers of its last record. Curves, lists of numbers, stay in their files.
    What is broken has its reason in `error`. Of a sweep's CSV, its own columns, `exp` as `path` too. `StoreError` if
    there is neither a folder nor such a table.
    """
    source = Path(path)
    if source.is_dir():
        import pandas as pd  # half a second, see store.atomic

        return pd.DataFrame([_row(entry) for entry in list_runs(source) if entry.status != NO_RUN])
    found = read_csv(source, ("seed",), ("exp", "model", "status"))
    found.insert(0, "path", found["exp"])
    return found[["path", "status", *(name for name in found.columns if name not in ("path", "status"))]]


def _row(entry: Entry) -> dict[str, Any]:
    row: dict[str, Any] = {"path": str(entry.path), "status": entry.status}
    if entry.status == BROKEN:
        return row | {"error": entry.reason}
    try:
        return row | {name: _cell(value) for name, value in entry.config.items()} | _numbers(entry)
    except StoreError as error:  # it has changed since it was listed
        return row | {"status": BROKEN, "error": str(error)}


def _cell(value: Any) -> Any:
    """Lists of words as text, so that columns can be compared and grouped by."""
    return ",".join(map(str, value)) if isinstance(value, list) else value


def _numbers(entry: Entry) -> dict[str, Any]:
    if entry.status == "done":
        return _of(read_json(entry.path / layout.SUMMARY))
    return _of(last_record(entry.path))


def _of(values: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers in nested mappings, and in lists of these by their place; null is one that is not finite."""
    kept = {name: value for name, value in values.items() if name not in NOT_NUMBERS}
    by_place = {
        name: dict(enumerate(value)) if isinstance(value, list) and all(isinstance(v, dict) for v in value) else value
        for name, value in kept.items()
    }
    return {
        name: float("nan") if value is None else value
        for name, value in flat(by_place).items()
        if value is None or is_number(value)
    }
