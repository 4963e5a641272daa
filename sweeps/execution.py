"""How and where a sweep is carried out, and the flags that say so."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, NamedTuple

from icl_lab.lab import cli
from icl_lab.lab.executors import choice
from icl_lab.lab.executors.remote import Resources
from icl_lab.lab.executors.task import Executor
from icl_lab.lab.flag_types import Whole
from icl_lab.lab.native.kernel import AUTO
from icl_lab.runners import kernel, resume
from icl_lab.runners.resume import Persistence
from icl_lab.store.outputs import out_file, out_folder
from icl_lab.store.weights import Weights
from icl_lab.sweeps import table
from icl_lab.sweeps.collect import add_table_flags

WIDTH = Whole(1, 4096, "more trainings in a pack do not fit in memory")


class Execution(NamedTuple):
    """How and where a plan is carried out, and the parameters that its runs start from."""

    folder: Path
    out: Path
    executor: str
    width: int
    shard: tuple[int, int]
    dry_run: bool
    overwrite: bool
    quiet: bool = False
    append: bool = False
    replace_table: bool = False
    persistence: Persistence = Persistence()
    resources: Resources = Resources()
    weights: tuple[Weights, ...] = ()
    kernel: str = AUTO

    @property
    def cluster(self) -> Executor | None:
        """The executor of a cluster, if that is chosen, which carries out what is not training too."""
        return choice.executor(self.executor, self.resources) if choice.EXECUTORS[self.executor].needs else None

    @property
    def policy(self) -> table.RowPolicy:
        """What may happen to the rows in the table."""
        return table.RowPolicy(self.append, self.replace_table, self.overwrite)


def add_execution_flags(built: cli.Parser, out: str | None, runs_dir: str | None) -> None:
    """The flags that say how a sweep is carried out; None: the command chooses the place."""
    built.add_argument("--out", type=out_file, default=out, help="the CSV")
    built.add_argument("--runs_dir", type=out_folder, default=runs_dir, help="folder of the runs")
    choice.add_flags(built)
    built.add_argument(
        "--width", type=WIDTH, help="trainings that run together as a pack; default: depends on the executor"
    )
    built.add_argument("--shard", type=_shard, default=(1, 1), help="i/n: only the i-th of n parts of the plan")
    built.add_argument("--dry_run", action="store_true", help="print what would be done")
    built.add_argument("--overwrite", action="store_true", help="retrain all runs of the plan")
    add_table_flags(built)
    resume.add_flags(built)
    kernel.add_flag(built)
    cli.add_quiet(built)


def _shard(text: str) -> tuple[int, int]:
    index, _, count = text.partition("/")
    if not (index.isdecimal() and count.isdecimal() and 1 <= int(index) <= int(count)):
        raise argparse.ArgumentTypeError(f"{text!r} is not i/n with i from 1 to n")
    return int(index), int(count)


def execution(flags: argparse.Namespace) -> Execution:
    """The execution that flags ask for; `UnusableEnvironment` if its executor cannot work here."""
    executor = flags.executor or choice.default_executor()
    resources = choice.resources_of(flags, flags.runs_dir)
    choice.check(executor, resources)
    width = choice.default_width(executor, resources) if flags.width is None else flags.width
    names = ("out", "shard", "dry_run", "overwrite", "quiet", "append", "replace_table", "kernel")
    values: dict[str, Any] = {name: getattr(flags, name) for name in names}
    kept = resume.from_flags(flags)
    values |= {"executor": executor, "width": width, "persistence": kept, "resources": resources}
    return Execution(folder=flags.runs_dir, **values)
