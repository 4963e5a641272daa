"""The CSV of a sweep, rebuilt from its cells: every planned point has a row, whatever became of it.

python -m sweeps.collect --runs_dir DIR --out FILE
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import cli
from configs.identity import RESULTS_VERSION
from configs.registry import family_of, family_of_model
from configs.run import RunConfig
from src.checks import ConfigError
from store import conditions, layout, outputs, rundir
from store.atomic import naming_file
from store.lock import locked_file
from store.readers import StoreError, expecting, read_json
from sweeps import table, upgrade
from sweeps.plan import Row, find_plan, read_plan
from sweeps.status import cell_status
from sweeps.table import RowPolicy

NO_FOLDER = ".anew"  # a folder that no sweep has

CellFiles = Mapping[str, Any]  # a finished cell's files, by short name

# columns that say what became of a row, and how
STATUS_COLUMNS = ("status", "bitwise")


def row_values(row: Row, folder: Path, failed: Container[str] = ()) -> dict[str, Any]:
    """A row of the CSV: what was asked for, what became of it, and its numbers if it is done.

    `failed` names cells that are known to have failed: where nothing can be written, they cannot say so themselves.
    """
    asked, columns = row.asked, family_of(row.asked).columns
    status, _ = cell_status(row.cell, folder)
    if status not in rundir.FINISHED and row.cell.name in failed:
        status = "failed"
    found = cell_files(folder / row.cell.name, asked) if status == "done" else None

    def results(names: Mapping[str, Callable[[CellFiles], Any]]) -> dict[str, Any]:
        return {name: None if found is None else value(found) for name, value in names.items()}

    return {
        "exp": row.cell.name,
        "model": asked.name,
        **{name: value(asked) for name, value in columns.asked.items()},
        "seed": asked.data_seed,
        **results(columns.first),
        "status": status,
        **{name: value(asked) for name, value in columns.settings.items()},
        **results({**columns.measured, **columns.further(asked)}),
        "results_version": RESULTS_VERSION,
    }


def cell_files(run: Path, config: RunConfig) -> CellFiles:
    """The files of a finished cell that its row is made of."""
    found = read_json(run / layout.SUMMARY)
    if "left_plateau" not in found:  # of an earlier version
        from analysis.plateau import left_plateau  # imports JAX

        found["left_plateau"] = left_plateau(config, found)
    return found | {name: read_json(run / file) for name, file in family_of(config).columns.files.items()}


def result_columns(names: Iterable[str], models: Iterable[str]) -> set[str]:
    """Those of the columns of a table of these models whose values the cells decide."""
    families = {family_of_model(model).name: family_of_model(model).columns for model in models}
    measured = {
        name for columns in families.values() for name in (*columns.first, *columns.measured, *columns.further(None))
    }
    return {*names} & {*measured, *STATUS_COLUMNS}


def current_rows(
    rows: Sequence[Row], folder: Path, out: Path, failed: Container[str] = (), anew: Container[str] = ()
) -> list[dict[str, Any]]:
    """The rows of a table as its plan and its cells have them now; those `anew` as if they had not begun."""
    values, name = [], table.relative_folder(folder, out)
    for row in rows:
        place = folder / NO_FOLDER if row.cell.name in anew else folder
        with expecting(folder / row.cell.name, "a finished cell of a sweep; --overwrite trains it anew"):
            found = row_values(row, place, failed)
            values.append({**found, table.FOLDER: name, "bitwise": _bitwise(place / row.cell.name, found["status"])})
    return values


def _bitwise(run: Path, status: str) -> str | None:
    """Whether a finished cell has the bits of an uninterrupted run."""
    return str(conditions.is_bitwise(rundir.read_meta(run))).lower() if status == "done" else None


def collect(rows: Sequence[Row], folder: Path, out: Path, failed: Container[str] = ()) -> list[dict[str, Any]]:
    """Writes a plan's rows into the table, beside those of others, and gives them. The caller holds the table."""
    values = current_rows(rows, folder, out, failed)
    if values:
        table.write(out, values, setting_columns(values))
    return values


def start(
    rows: Sequence[Row], folder: Path, out: Path, terms: RowPolicy, anew: Container[str] = ()
) -> list[dict[str, Any]]:
    """The first writing of a table: `StoreError` if anything in it would be lost that the terms do not let go of."""
    values = current_rows(rows, folder, out, anew=anew)
    if values:
        table.check(out, values, setting_columns(values), terms)
        table.write(out, values, setting_columns(values), alone=terms.replace)
    return values


def setting_columns(values: Sequence[Mapping[str, Any]]) -> list[str]:
    """The columns that say what was asked for."""
    names = list(dict.fromkeys(name for row in values for name in row))
    results = result_columns(names, dict.fromkeys(str(row["model"]) for row in values))
    return [name for name in names if name not in results]


def check_out(out: Path, folder: Path) -> None:
    """Raises unless a CSV can be written there: a new file, or a sweep's CSV. Leaves nothing behind."""
    place = Path(os.path.realpath(out.parent), out.name)
    own = os.path.realpath(folder)
    is_own = place.name.startswith(".") or (place.name.startswith("plan") and place.suffix == ".json")
    if place.is_relative_to(own) and (place.parent != Path(own) or is_own):
        raise StoreError(f"{out} is where the sweep's own files go; choose another --out")
    if out.is_dir():
        raise StoreError(f"{out} is a folder, not a file")
    outputs.check_free(out, "sweeps")
    table.read(out)
    check_writable(out, out.parent)


def check_writable(path: Path, folder: Path) -> None:
    """An `OSError` that names `path` unless files can be made in a folder, or where it will be made."""
    nearest = next(place for place in (folder.absolute(), *folder.absolute().parents) if place.exists())
    with naming_file(path), tempfile.TemporaryFile(dir=nearest):
        pass


def parser() -> cli.Parser:
    """The flags."""
    built = cli.Parser("sweeps.collect", "Writes the CSV of a sweep from what its cells hold now.")
    built.add_argument("--runs_dir", type=Path, required=True, help="the sweep's folder")
    built.add_argument("--out", type=Path, required=True, help="the CSV")
    built.add_argument("--plan", type=Path, help="the plan in that folder; the table's own if not given")
    add_table_flags(built)
    return built


def add_table_flags(built: cli.Parser) -> None:
    """The flags that say what becomes of rows in the table that are not planned."""
    kept = built.add_mutually_exclusive_group()
    kept.add_argument("--append", action="store_true", help="leave the rows in the CSV that are not planned here")
    kept.add_argument("--replace_table", action="store_true", help="drop them; nothing is trained again")


def main(argv: list[str]) -> None:
    """The command line."""
    flags = parser().parse(argv)
    plan = flags.plan or find_plan(flags.runs_dir, flags.out)
    rows = read_plan(plan)
    check_out(flags.out, flags.runs_dir)
    upgrade.rename_cells(rows, flags.runs_dir, flags.out)
    with locked_file(flags.out, table.LOCK_TIMEOUT):
        values = start(rows, flags.runs_dir, flags.out, RowPolicy(flags.append, flags.replace_table, trains=False))
    done = sum(row["status"] == "done" for row in values)
    print(f"{cli.printable(flags.out)}: {done} of {len(values)} planned rows are done")


if __name__ == "__main__":
    cli.launch(main, StoreError, ConfigError)
