"""Runs or a sweep's CSV as a pandas table: `store.table("runs/eval_order")`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icl_lab.store.listing import BROKEN, MISSING, NO_RUN, Entry, flat, last_record, list_runs
from icl_lab.store.readers import StoreError, is_number, read_csv
from icl_lab.store.rundir import read_summary

if TYPE_CHECKING:
    import pandas as pd

SETTINGS = ("contexts",)  # fields of a summary that repeat the config


def table(path: str | Path) -> pd.DataFrame:
    """One row per run: `path`, `status`, the config's fields under dotted names, and the numbers of its summary.

    A run that is not done has the numbers of its last record. Lists of numbers, such as curves, are left out. Broken
    runs have a reason in `error`. A sweep's CSV keeps its columns, with `exp` as `path` too. `StoreError` for anything
    else.
    """
    source = Path(path)
    if source.is_dir():
        import pandas as pd  # half a second, see store.atomic

        return pd.DataFrame([_row(entry) for entry in list_runs(source) if entry.status != NO_RUN])
    rows = read_csv(source, ("seed",), ("exp", "model", "status"))
    rows.insert(0, "path", rows["exp"])
    return rows[["path", "status", *(name for name in rows.columns if name not in ("path", "status"))]]


def _row(entry: Entry) -> dict[str, Any]:
    row: dict[str, Any] = {"path": str(entry.path), "status": entry.status}
    if entry.status == BROKEN:
        return row | {"error": entry.reason}
    try:
        missing = {MISSING: _cell([*entry.plugins_missing])} if entry.plugins_missing else {}
        return row | missing | {name: _cell(value) for name, value in entry.config.items()} | _numbers(entry)
    except StoreError as error:  # changed since it was listed
        return row | {"status": BROKEN, "error": str(error)}


def _cell(value: Any) -> Any:
    """Lists as text, so that columns can be compared and grouped by."""
    return ",".join(map(str, value)) if isinstance(value, list) else value


def _numbers(entry: Entry) -> dict[str, Any]:
    if entry.status == "done":
        return _numeric(read_summary(entry.path))
    return _numeric(last_record(entry.path))


def _numeric(values: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers in nested mappings, and in lists of mappings by index; NaN for null."""
    kept = {name: value for name, value in values.items() if name not in SETTINGS}
    by_index = {
        name: dict(enumerate(value)) if isinstance(value, list) and all(isinstance(v, dict) for v in value) else value
        for name, value in kept.items()
    }
    return {
        name: float("nan") if value is None else value
        for name, value in flat(by_index).items()
        if value is None or is_number(value)
    }
