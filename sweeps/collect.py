"""Builds the CSV of a sweep from its runs: one row per planned point, finished or not.

python -m sweeps.collect --runs_dir DIR --out FILE
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from icl_lab.lab import cli
from icl_lab.lab.configs.columns import WHOSE
from icl_lab.lab.configs.identity import RESULTS_VERSION
from icl_lab.lab.configs.registry import family_of, family_of_model, outputs_of
from icl_lab.lab.configs.run import RunConfig
from icl_lab.runners import kernel
from icl_lab.src.checks import ConfigError
from icl_lab.src.words import printable
from icl_lab.store import outputs, provenance, rundir
from icl_lab.store.lock import locked_file
from icl_lab.store.metrics import read_summary
from icl_lab.store.outputs import in_path, out_file
from icl_lab.store.readers import StoreError, expecting, read_json
from icl_lab.store.replacing import naming_file
from icl_lab.sweeps import differing, table
from icl_lab.sweeps.plan import Point
from icl_lab.sweeps.plan_file import find_plan, read_plan
from icl_lab.sweeps.status import refuse_earlier, run_status
from icl_lab.sweeps.table import RowPolicy

NO_FOLDER = ".cleared"  # a folder that does not exist

RunFiles = Mapping[str, Any]  # a finished run's files, by short name

KERNEL = "kernel"  # a column where rows differ in it
STATUS_COLUMNS = ("status", "bitwise", KERNEL)


def row_values(point: Point, folder: Path, failed: Container[str] = ()) -> dict[str, Any]:
    """The row of a point in the CSV: its settings, its status and, if its run is done, its numbers.

    `failed` names runs that are known to have failed, even if their meta.json could not be written.
    """
    asked, name = point.asked, point.run.name
    columns = outputs_of(family_of(asked)).columns
    status, _ = run_status(point.run, folder)
    if status not in rundir.FINISHED and name in failed:
        status = "failed"
    files = run_files(folder / name, asked) if status == "done" else None

    def results(names: Mapping[str, Callable[[RunFiles], Any]]) -> dict[str, Any]:
        return {column: None if files is None else value(files) for column, value in names.items()}

    return {
        "exp": name,
        "model": asked.name,
        **{column: value(asked) for column, value in columns.asked.items()},
        "seed": asked.data_seed,
        **results(columns.first),
        "status": status,
        **{column: value(asked) for column, value in columns.settings.items()},
        **results({**columns.measured, **columns.further(asked), **(WHOSE if asked.keep_best else {})}),
        "results_version": RESULTS_VERSION,
    }


def run_files(run: Path, config: RunConfig) -> RunFiles:
    """The contents of the files from which a finished run's row is made."""
    summary = read_summary(run)
    if "trained" not in summary:  # written by an earlier version
        from icl_lab.analysis.trained import with_verdict  # imports JAX

        summary = with_verdict(config, summary)
    return summary | {name: read_json(run / file) for name, file in outputs_of(family_of(config)).columns.files.items()}


def result_columns(names: Iterable[str], models: Iterable[str]) -> set[str]:
    """The columns, among these names, that hold results, in a table of these models."""
    families = {family_of_model(model).name: outputs_of(family_of_model(model)).columns for model in models}
    measured = {
        name for columns in families.values() for name in (*columns.first, *columns.measured, *columns.further(None))
    }
    return {*names} & {*measured, *STATUS_COLUMNS, *WHOSE}


def current_rows(
    points: Sequence[Point], folder: Path, out: Path, failed: Container[str] = (), cleared: Container[str] = ()
) -> list[dict[str, Any]]:
    """The rows of a table from the runs as they are now; `cleared` runs count as not begun."""
    rows, below = [], table.relative_folder(folder, out)
    for point in points:
        outputs_of(family_of(point.run.config))  # a plugin's that fails says so itself
        name = point.run.name
        parent = folder / NO_FOLDER if name in cleared else folder
        with expecting(folder / name, "a finished run of a sweep; --overwrite retrains it"):
            row = row_values(point, parent, failed)
            rows.append({**row, table.FOLDER: below, "bitwise": _bitwise(parent / name, row["status"])})
    return rows


def _bitwise(run: Path, status: str) -> str | None:
    """Whether a finished run has the bits of an uninterrupted run."""
    bitwise = provenance.is_bitwise(rundir.read_meta(run)) if status == "done" else None
    return None if bitwise is None else provenance.in_words(bitwise)


def collect(points: Sequence[Point], folder: Path, out: Path, failed: Container[str] = ()) -> list[dict[str, Any]]:
    """Writes a plan's rows into the table and returns them; other rows stay. The caller has locked the table."""
    values = joined(current_rows(points, folder, out, failed), points, out)
    if values:
        table.write(out, values, setting_columns(values), fill=_filler(values, out))
    return values


def start(
    points: Sequence[Point], folder: Path, out: Path, policy: RowPolicy, cleared: Container[str] = ()
) -> list[dict[str, Any]]:
    """Writes the table for the first time; `StoreError` if rows would be lost that the policy keeps."""
    values = current_rows(points, folder, out, cleared=cleared)
    values = with_kernels(values, out) if policy.replace else joined(values, points, out)
    if values:
        check(out, values, policy)
        table.write(out, values, setting_columns(values), policy.replace, _filler(values, out))
    return values


def check(out: Path, values: Sequence[dict[str, Any]], policy: RowPolicy) -> None:
    """`StoreError` if writing these rows would lose others, or join rows that no column tells apart."""
    settings = setting_columns(values)
    table.check(out, values, settings, policy)
    if policy.append and values:
        present = map(_filler(values, out), table.read(out))
        table.check_distinct(out, values, present, [*settings, *filter(differing.is_field, values[0])])


def joined(values: Sequence[dict[str, Any]], points: Sequence[Point], out: Path) -> list[dict[str, Any]]:
    """The rows as they stand in a table with others: with all its columns, and with the fields in which they differ."""
    present = table.read(out)
    planned = {(row[table.FOLDER], row["exp"]) for row in values}
    kept = [line for line in present if (line.get(table.FOLDER), line["exp"]) not in planned]
    others = [config for line in kept if (config := _config_of(line, out))]
    fields = [*filter(differing.is_field, present[0] if present else ()), *differing.names(points, others)]
    values = with_columns_of_others(values, present)
    named_fields = list(dict.fromkeys(fields))
    return [
        {**row, **differing.written(point.run.config, named_fields)}
        for row, point in zip(with_kernels(values, out, kept, present), points, strict=True)
    ]


def with_kernels(
    values: Sequence[dict[str, Any]], out: Path, others: Sequence[table.Line] = (), present: Sequence[table.Line] = ()
) -> list[dict[str, Any]]:
    """The rows with the kernel of each finished run, if rows of the table differ in it or it has the column."""
    kernels = [_kernel_of(row, out) for row in values]
    known = {*kernels, *(_kernel_of(line, out) for line in others)} - {None}
    if len(known) < 2 and not (present and KERNEL in present[0]):
        return [*values]
    return [{**row, KERNEL: kernel} for row, kernel in zip(values, kernels, strict=True)]


def _kernel_of(line: Mapping[str, Any], out: Path) -> str | None:
    """What a finished run's gradients were computed with; None where it has not finished, or is not there."""
    run = out.parent / (line.get(table.FOLDER) or NO_FOLDER) / line["exp"]
    try:
        return kernel.of_run(run) if line["status"] == "done" and rundir.has_begun(run) else None
    except StoreError:
        return None


def _config_of(line: table.Line, out: Path) -> RunConfig | None:
    """The config of a row's run, or where that has not begun the one that is planned."""
    folder, name = out.parent / (line.get(table.FOLDER) or NO_FOLDER), line["exp"]
    return differing.stored_config(folder / name) or differing.planned_configs(folder).get(name)


def _filler(values: Sequence[Mapping[str, Any]], out: Path) -> Callable[[table.Line], table.Line]:
    """Gives a line of a table the fields that these rows have and it lacks, from its run, or empty."""
    names = [*filter(differing.is_field, values[0])]

    def filled(line: table.Line) -> table.Line:
        missing = [name for name in names if not line.get(name)]
        config = _config_of(line, out) if missing else None
        fields = differing.written(config, missing) if config else dict.fromkeys(missing)
        if KERNEL in values[0]:
            fields = {KERNEL: line.get(KERNEL) or _kernel_of(line, out), **fields}
        return line | {name: "" if value is None else str(value) for name, value in fields.items()}

    return filled


def note_unknown(out: Path) -> str:
    """A sentence on rows whose runs are not there to say what a field of theirs is, "" if there are none."""
    lines = table.read(out)
    fields = [*filter(differing.is_field, lines[0] if lines else ())]
    lost = [line for line in lines if not all(line[name] for name in fields) and _config_of(line, out) is None]
    unknown = {name: sum(not line[name] for line in lost) for name in fields}
    names = [name for name, count in unknown.items() if count]
    if not names:
        return ""
    number = max(unknown[name] for name in names)
    who = f"{number} rows have" if number > 1 else "1 row has"
    where = "their runs" if number > 1 else "its run"
    return f"{out}: {who} no {', '.join(names)}, which could not be read from {where}"


def with_columns_of_others(values: Sequence[dict[str, Any]], present: Sequence[table.Line]) -> list[dict[str, Any]]:
    """The rows, with empty columns for those that other families have in the table, in the table's order."""
    written = {name for model in {line.get("model", "") for line in present} for name in _columns_of(model)}
    columns = {name for row in values for name in row}
    order = dict.fromkeys(name for name in (present[0] if present else ()) if name in written | columns)
    return [{**order, **row} for row in values]


def _columns_of(model: str) -> set[str]:
    """The columns of a family beyond the common ones; none for an unknown model."""
    try:
        columns = outputs_of(family_of_model(model)).columns
    except ConfigError:
        return set()
    parts = (columns.asked, columns.first, columns.settings, columns.measured, columns.further(None), WHOSE)
    return {name for part in parts for name in part}


def setting_columns(values: Sequence[Mapping[str, Any]]) -> list[str]:
    """The columns of families that hold settings."""
    names = list(dict.fromkeys(name for row in values for name in row))
    results = result_columns(names, dict.fromkeys(str(row["model"]) for row in values))
    return [name for name in names if name not in results and not differing.is_field(name)]


def check_out(out: Path, folder: Path) -> None:
    """Raises unless a sweep's CSV can be written there; leaves nothing behind."""
    path = Path(os.path.realpath(out.parent), out.name)
    runs = os.path.realpath(folder)
    is_reserved = path.name.startswith(".") or (path.name.startswith("plan") and path.suffix == ".json")
    if path.is_relative_to(runs) and (path.parent != Path(runs) or is_reserved):
        raise StoreError(f"{out} is reserved for the sweep's own files; choose another --out")
    if out.is_dir():
        raise StoreError(f"{out} is a folder, not a file")
    outputs.check_free(out, "sweeps")
    table.read(out)
    check_writable(out, out.parent)


def check_writable(path: Path, folder: Path) -> None:
    """An `OSError` that names `path` unless files can be created in a folder, or in its nearest existing parent."""
    nearest = next(parent for parent in (folder.absolute(), *folder.absolute().parents) if parent.exists())
    with naming_file(path), tempfile.TemporaryFile(dir=nearest):
        pass


def parser() -> cli.Parser:
    """The flags."""
    built = cli.Parser("sweeps.collect", "Writes the CSV of a sweep from its runs as they are now.")
    built.add_argument("--runs_dir", type=in_path, required=True, help="the sweep's folder")
    built.add_argument("--out", type=out_file, required=True, help="the CSV")
    built.add_argument("--plan", type=in_path, help="plan file; default: the plan of the CSV")
    add_table_flags(built)
    return built


def add_table_flags(built: cli.Parser) -> None:
    """The flags for rows in the CSV that are not planned."""
    group = built.add_mutually_exclusive_group()
    group.add_argument("--append", action="store_true", help="keep the CSV's rows of runs that are not in this plan")
    group.add_argument(
        "--replace_table",
        action="store_true",
        help="drop the CSV's rows of runs that are not in this plan; the runs stay",
    )


def main(argv: list[str]) -> None:
    """The command line."""
    flags = parser().parse(argv)
    plan = flags.plan or find_plan(flags.runs_dir, flags.out)
    points = read_plan(plan)
    check_out(flags.out, flags.runs_dir)
    refuse_earlier(points, flags.runs_dir)
    with locked_file(flags.out, table.LOCK_TIMEOUT):
        values = start(points, flags.runs_dir, flags.out, RowPolicy(flags.append, flags.replace_table, trains=False))
    done = sum(row["status"] == "done" for row in values)
    print(f"{printable(flags.out)}: {done} of {len(values)} planned rows are done")


if __name__ == "__main__":
    cli.launch(main)
