"""Carries results of an earlier version over: tables name the cells of today, and bundles hold the configs of today.

python -m scripts.carry_over [--check]

The names of ledger and study follow from the configs that are planned today and those in bundles. Numbers, and all else
that a file says, stay to the byte; a second time there is nothing to do.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import cli
from configs.identity import config_id
from configs.run import RunConfig, to_dict
from configs.schema_1 import earlier_id
from environment import check_devices
from src.checks import ConfigError
from store.atomic import json_bytes
from store.readers import StoreError, expecting, read_json, reading

COLUMNS = {"claims.csv": "cells", "order_noise/cells.csv": "exp"}  # table -> its column that names cells
CONFIGS = "configs"  # of a bundle


class Carried(NamedTuple):
    """A file as it is to be, and how many of its names or configs are others then."""

    content: bytes
    changes: int


def carried(folder: Path) -> dict[Path, Carried]:
    """The files below a report's folder that are of an earlier form, as they are written today."""
    bundles = {path: bundle for path in sorted(folder.rglob("*.json")) if CONFIGS in (bundle := read_json(path))}
    tables = {folder / name: column for name, column in COLUMNS.items() if (folder / name).exists()}
    if not tables and not bundles:
        raise StoreError(f"{folder} holds neither a table of results nor a bundle; name the folder with --report")
    configs = {path: _configs(path, bundle) for path, bundle in bundles.items()}
    today = _names(chain.from_iterable(configs.values()))
    found = {path: _table(path, column, today) for path, column in tables.items()}
    found |= {path: _bundle(bundle, configs[path]) for path, bundle in bundles.items()}
    return {path: file for path, file in found.items() if file.changes}


def _configs(path: Path, bundle: Mapping[str, Any]) -> list[RunConfig]:
    from configs.registry import from_dict

    with expecting(path, "a figure's bundle"):
        try:
            return [from_dict(config) for config in bundle[CONFIGS]]
        except ConfigError as error:
            raise StoreError(f"{path} has a config that cannot be used: {error}") from None


def _bundle(bundle: Mapping[str, Any], configs: Sequence[RunConfig]) -> Carried:
    written = [to_dict(config) for config in configs]
    changes = sum(new != old for new, old in zip(written, bundle[CONFIGS], strict=True))
    return Carried(json_bytes({**bundle, CONFIGS: written}), changes)


def _names(configs: Iterable[RunConfig]) -> dict[str, str]:
    """The end of a cell's name, of then or of today -> its name today, of these configs and of all that is planned.

    Names end with ids. What stands before them, for people, has changed besides.
    """
    from report import study
    from report.claims import RUNS
    from sweeps.plan import DIGITS, cell_of, cells, plan

    planned = cells(plan([*(runs.grid for runs in RUNS.values()), *study.grids()]))
    found = dict.fromkeys([*planned, *map(cell_of, configs)])
    return {identity(cell.config)[:DIGITS]: cell.name for identity in (earlier_id, config_id) for cell in found}


def _table(path: Path, column: str, today: Mapping[str, str]) -> Carried:
    """A table with the names of today in a column, which has one, several with blanks between, or none a row."""
    with reading(path):
        head, *lines = csv.reader(io.StringIO(path.read_text(encoding="utf-8"), newline=""))
    with expecting(path, f"a table with a column {column}"):
        place, changes = head.index(column), 0
        for line in lines:
            names = line[place].split(" ") if line[place] else []
            renamed = [_today(path, name, today) for name in names]
            changes += sum(name != new for name, new in zip(names, renamed, strict=True))
            line[place] = " ".join(renamed)
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows([head, *lines])
    return Carried(text.getvalue().encode(), changes)


def _today(path: Path, name: str, today: Mapping[str, str]) -> str:
    end = name.rpartition("-")[2]  # the id's first digits
    if end not in today:
        raise StoreError(
            f"{path} names the cell {name}, which is neither planned nor of a config in a bundle, so what it is called "
            "today is not known; no file was changed"
        )
    return today[end]


def parser() -> cli.Parser:
    """The flags."""
    built = cli.Parser("scripts.carry_over", "Gives committed results of an earlier version today's names and configs.")
    built.add_argument("--report", type=Path, default=Path("report"), help="folder of the tables and bundles")
    built.add_argument("--check", action="store_true", help="change nothing; exit with 1 if something would change")
    return built


def main(argv: list[str]) -> int:
    """The command line."""
    flags = parser().parse(argv)
    check_devices()
    from report.ledger import WRITER
    from store import outputs

    found = carried(flags.report)
    if not flags.check:
        outputs.write({path: file.content for path, file in found.items()}, WRITER)
    for path, file in found.items():
        print(f"{cli.printable(path)}: {file.changes} {'configs' if path.suffix == '.json' else 'names of cells'}")
    said = "would be carried over" if flags.check else "carried over"
    print(f"{len(found)} files {said}" if found else "everything is of today's form")
    return 1 if flags.check and found else 0


if __name__ == "__main__":
    cli.launch(main, StoreError, ConfigError)
