"""Updates committed results of an earlier version: cell names in tables, and configs in figure bundles.

python -m scripts.carry_over [--check]

Today's cell names follow from the planned configs and those in bundles. Everything else in the files stays
byte-identical. A second call changes nothing.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from icl_lab.lab import cli
from icl_lab.lab.configs.identity import config_id
from icl_lab.lab.configs.run import RunConfig, to_dict
from icl_lab.lab.configs.schema_1 import earlier_id
from icl_lab.lab.environment import check_devices
from icl_lab.src.checks import ConfigError
from icl_lab.src.words import printable
from icl_lab.store.atomic import json_bytes
from icl_lab.store.outputs import out_folder
from icl_lab.store.readers import StoreError, expecting, read_json, reading

COLUMNS = {"claims.csv": "cells", "order_noise/cells.csv": "exp"}  # table -> column with cell names
CONFIGS, COMMAND = "configs", "command"  # keys in a bundle
COMMANDS = {  # earlier -> today's
    "python -m report.reproduce": "python -m studies.run reproduction",
    "python -m report.diversity": "python -m studies.run task_diversity",
    "python -m report.order_noise": "python -m studies.run order_noise",
    "python -m report.study": "python -m studies.run order_noise",
}


class Update(NamedTuple):
    """A file's new content, and how many of its names, configs and commands change."""

    content: bytes
    changes: int


def updates(folder: Path) -> dict[Path, Update]:
    """The updates of the files below a report's folder that are in an earlier form."""
    bundles = {path: bundle for path in sorted(folder.rglob("*.json")) if CONFIGS in (bundle := read_json(path))}
    tables = {folder / name: column for name, column in COLUMNS.items() if (folder / name).exists()}
    if not tables and not bundles:
        raise StoreError(f"{folder} holds neither a table of results nor a bundle; name the folder with --report")
    configs = {path: _configs(path, bundle) for path, bundle in bundles.items()}
    today = _names(chain.from_iterable(configs.values()))
    files = {path: _table(path, column, today) for path, column in tables.items()}
    files |= {path: _bundle(path, bundle, configs[path]) for path, bundle in bundles.items()}
    return {path: file for path, file in files.items() if file.changes}


def _configs(path: Path, bundle: Mapping[str, Any]) -> list[RunConfig]:
    from icl_lab.lab.configs.registry import from_dict

    with expecting(path, "a figure's bundle"):
        try:
            return [from_dict(config) for config in bundle[CONFIGS]]
        except ConfigError as error:
            raise StoreError(f"{path} has a config that cannot be used: {error}") from None


def _bundle(path: Path, bundle: Mapping[str, Any], configs: Sequence[RunConfig]) -> Update:
    written = [to_dict(config) for config in configs]
    changes = sum(new != old for new, old in zip(written, bundle[CONFIGS], strict=True))
    with expecting(path, "a figure's bundle"):
        command = str(bundle[COMMAND])
    for earlier, today in COMMANDS.items():
        command = command.replace(earlier, today)
    changes += command != bundle[COMMAND]
    return Update(json_bytes({**bundle, COMMAND: command, CONFIGS: written}), changes)


def _names(configs: Iterable[RunConfig]) -> dict[str, str]:
    """{id at the end of an earlier or today's cell name: today's name}, of these configs and all planned ones."""
    from icl_lab.studies.study import planned
    from icl_lab.sweeps.plan import DIGITS, cell_of

    all_cells = dict.fromkeys([*planned(), *map(cell_of, configs)])
    return {identity(cell.config)[:DIGITS]: cell.name for identity in (earlier_id, config_id) for cell in all_cells}


def _table(path: Path, column: str, today: Mapping[str, str]) -> Update:
    """A table with today's names in a column that has zero or more names per row, separated by spaces."""
    with reading(path):
        head, *lines = csv.reader(io.StringIO(path.read_text(encoding="utf-8"), newline=""))
    with expecting(path, f"a table with a column {column}"):
        index, changes = head.index(column), 0
        for line in lines:
            names = line[index].split(" ") if line[index] else []
            renamed = [_today(path, name, today) for name in names]
            changes += sum(name != new for name, new in zip(names, renamed, strict=True))
            line[index] = " ".join(renamed)
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows([head, *lines])
    return Update(text.getvalue().encode(), changes)


def _today(path: Path, name: str, today: Mapping[str, str]) -> str:
    end = name.rpartition("-")[2]  # the id's first digits
    if end not in today:
        raise StoreError(
            f"{path} names the cell {name}, which is neither planned nor of a config in a bundle, so its name of today "
            "is not known; no file was changed"
        )
    return today[end]


def parser() -> cli.Parser:
    """The flags."""
    built = cli.Parser(
        "scripts.carry_over", "Updates committed results of an earlier version to today's names and configs."
    )
    built.add_argument("--report", type=out_folder, default="report", help="folder of the tables and bundles")
    built.add_argument("--check", action="store_true", help="change nothing; exit with 1 if something would change")
    return built


def main(argv: list[str]) -> int:
    """The command line."""
    flags = parser().parse(argv)
    check_devices()
    from icl_lab.store import outputs
    from icl_lab.studies.ledger import WRITER

    files = updates(flags.report)
    if not flags.check:
        outputs.write({path: file.content for path, file in files.items()}, WRITER)
    for path, file in files.items():
        kind = "configs and commands" if path.suffix == ".json" else "cell names"
        print(f"{printable(path)}: {file.changes} {kind}")
    result = "would be updated" if flags.check else "updated"
    print(f"{len(files)} files {result}" if files else "everything is up to date")
    return 1 if flags.check and files else 0


if __name__ == "__main__":
    cli.launch(main)
