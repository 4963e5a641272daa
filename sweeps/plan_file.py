"""Writes and reads the plan of a sweep's table: plan_<table>.json in the sweep's folder, from which it is collected."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from icl_lab.lab.configs.identity import RESULTS_VERSION
from icl_lab.lab.configs.registry import from_dict
from icl_lab.lab.configs.run import RunConfig, Seeds, seeds_of, to_dict, with_seeds
from icl_lab.lab.flag_types import whole_value
from icl_lab.lab.garbage import no_garbage_collection
from icl_lab.lab.loaded_plugins import why_not_loaded
from icl_lab.src.checks import ConfigError
from icl_lab.store.atomic import json_bytes, replace_file
from icl_lab.store.readers import StoreError, expecting, read_json
from icl_lab.sweeps.plan import Point, RunSeries, point_of

EARLIER_PLAN = "plan.json"  # of versions with one plan per folder


def plan_file(folder: Path, out: Path) -> Path:
    """The path of a table's plan in a sweep's folder."""
    path = folder / f"plan_{out.stem}.json"
    table = _relative(out, folder)
    if path.exists() and _planned_table(path) not in (table, None):  # of a table of the same name in another folder
        return folder / f"plan_{out.stem}_{hashlib.sha256(table.encode()).hexdigest()[:6]}.json"
    return path


def write_plan(folder: Path, out: Path, points: Sequence[Point]) -> None:
    """Writes the plan of a table into its sweep's folder."""
    values = {"results_version": RESULTS_VERSION, "table": _relative(out, folder), "rows": _written(points)}
    replace_file(plan_file(folder, out), json_bytes(values))


def _written(points: Sequence[Point]) -> list[dict[str, Any]]:
    """The entries of a plan file: consecutive points that differ only in seeds share an entry."""
    written: list[dict[str, Any]] = []
    before: tuple[RunConfig, RunSeries, bool] | None = None
    for point in points:
        seeds, now = seeds_of(point.asked), (with_seeds(point.asked, Seeds()), point.run.series, point.by_field)
        if now != before or seeds != seeds_of(point.run.config):
            by_field = {"by_field": True} if point.by_field else {}
            written.append({"asked": to_dict(point.asked), "run": to_dict(point.run.config), **by_field, "seeds": []})
        written[-1]["seeds"].append(seeds)
        before = now
    return written


def check_plan(folder: Path, out: Path, points: Sequence[Point], append: bool) -> list[Point]:
    """The points that a table's plan will have: with `append`, the new ones follow the present ones.

    `StoreError` if a file of this name exists and is not a plan.
    """
    path = plan_file(folder, out)
    if path.is_symlink() or (path.exists() and not _is_plan(path)):
        raise StoreError(f"{path} is not the plan of a sweep; move it away or choose another --out")
    files = {point.run.name: point.run.config.data_file for point in points}  # of which one may have moved
    earlier = [
        point
        for point in (read_plan(path) if append and path.exists() else ())
        if files.get(point.run.name, point.run.config.data_file) == point.run.config.data_file
    ]
    return list(dict.fromkeys([*earlier, *points])) if earlier else list(points)


def plan_files(folder: Path) -> list[Path]:
    """The plans in a sweep's folder; `StoreError` if there is none."""
    paths = [path for path in (folder / EARLIER_PLAN, *sorted(folder.glob("plan_*.json"))) if path.is_file()]
    if not paths:
        raise StoreError(f"{folder} is not the folder of a sweep: it has no plan_<table>.json")
    return paths


def find_plan(folder: Path, out: Path) -> Path:
    """The plan of a table, else the only plan in the folder."""
    plans = plan_files(folder)
    table_plan = plan_file(folder, out)
    if table_plan in plans or len(plans) == 1:
        return table_plan if table_plan in plans else plans[0]
    names = ", ".join(path.name for path in plans)
    raise StoreError(f"{folder} has the plans {names}, but none for {out.name}; choose one with --plan")


def read_plans(folder: Path) -> list[Point]:
    """The points of all plans in a sweep's folder, without duplicates."""
    return list(dict.fromkeys(point for path in plan_files(folder) for point in read_plan(path)))


@no_garbage_collection()
def read_plan(path: Path) -> list[Point]:
    """The points of a plan; `StoreError` if it is damaged, or of another results version."""
    values = read_json(path)
    if values.get("results_version") != RESULTS_VERSION:
        raise StoreError(f"{path} is of another results version; run its sweep again")
    with expecting(path, "the plan of a sweep"):
        entries = [
            (entry["asked"], _run_in(entry), entry.get("seeds"), entry.get("by_field", False))
            for entry in values["rows"]
        ]
        reasons = {why_not_loaded(config) for asked, run, *_ in entries for config in (asked, run)} - {None}
    if reasons:
        raise StoreError(f"a run of {path} {min(map(str, reasons))}")
    with expecting(path, "the plan of a sweep"):
        try:
            return [point for entry in entries for point in _points_of(*entry)]
        except ConfigError as error:
            raise StoreError(f"{path} has a config that cannot be used: {error}") from None


def _run_in(entry: dict[str, Any]) -> Any:
    """The config of an entry's runs, under today's name or under that of earlier versions."""
    return entry["run"] if "run" in entry else entry["cell"]


def _points_of(asked: Any, run: Any, seeds: Any, by_field: Any) -> list[Point]:
    """The points of an entry of a plan; earlier versions wrote each by itself, without its seeds."""
    config, series = from_dict(asked), RunSeries(from_dict(run))
    if seeds is None:
        return [Point(config, series.run(seeds_of(series.config)))]
    return [point_of(config, series, Seeds(*map(whole_value, each)), by_field is True) for each in seeds]


def _is_plan(path: Path) -> bool:
    """Whether a file is a plan, of any results version."""
    try:
        plan = read_json(path)
    except StoreError:
        return False
    rows = plan.get("rows")
    has_rows = isinstance(rows, list) and all(
        isinstance(row, dict) and "asked" in row and ("run" in row or "cell" in row) for row in rows
    )
    return has_rows and isinstance(plan.get("results_version"), int)


def _planned_table(path: Path) -> str | None:
    try:
        return str(read_json(path)["table"])
    except (StoreError, KeyError):
        return None


def _relative(out: Path, folder: Path) -> str:
    return Path(os.path.relpath(os.path.realpath(out), os.path.realpath(folder))).as_posix()
