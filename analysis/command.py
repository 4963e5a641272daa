"""The command of an analysis: `--run DIR`, its checks, and printing of the result."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from icl_lab.lab import cli, compile_cache
from icl_lab.lab.configs.registry import family_of, outputs_of
from icl_lab.lab.environment import check_devices
from icl_lab.lab.progress import say
from icl_lab.src.checks import require
from icl_lab.src.words import printable
from icl_lab.store.lock import locked
from icl_lab.store.outputs import in_path
from icl_lab.store.readers import is_number
from icl_lab.store.rundir import read_config

OF_ANY_FAMILY = (
    *("losses", "evaluate", "algorithm_distance", "activations", "interventions", "probes"),
    *("essential_dynamics", "developmental_metrics"),
    *("llc", "llc_calibrate", "llc_saturation", "curvature", "stages", "develop"),
)
WIDTH = 22  # of a name, at least
Results = Mapping[str, Any] | Iterable[Mapping[str, Any] | str]  # what is printed: values by name, or rows and lines


class Command(NamedTuple):
    """An analysis of one run: `python -m analysis.NAME --run DIR`.

    measure(run, flags) does the work on a locked run of a family that has this analysis; with `locks` it takes the lock
    itself, when it has to. `check` raises `ConfigError` for invalid flags, before any heavy import.
    """

    name: str
    description: str
    measure: Callable[[Path, argparse.Namespace], Results]
    add_flags: Callable[[cli.Parser], None] = lambda parser: None
    check: Callable[[argparse.Namespace], None] = lambda flags: None
    locks: bool = False

    def parser(self) -> cli.Parser:
        """The flags of all analyses, and this one's."""
        built = cli.Parser(f"analysis.{self.name}", self.description)
        built.add_argument("--run", type=in_path, required=True, help="run directory")
        self.add_flags(built)
        return built

    def read(self, argv: Sequence[str]) -> argparse.Namespace:
        """The flags of a command line; `UsageError` or `ConfigError` for invalid ones."""
        flags = self.parser().parse(argv)
        self.check(flags)
        return flags

    def main(self, argv: list[str]) -> None:
        """Runs the analysis, and prints the result."""
        flags = self.read(argv)
        check_analysis(flags.run, self.name)
        check_devices()
        compile_cache.enable()
        with nullcontext() if self.locks else locked(flags.run):
            _show(self.measure(flags.run, flags))

    def launch(self) -> NoReturn:
        """Runs the command on this process's arguments, and exits."""
        cli.launch(self.main)


def check_analysis(run: Path, name: str) -> None:
    """`ConfigError` if the run's family lacks this analysis; every family has those in `OF_ANY_FAMILY`."""
    family = family_of(read_config(run))
    have = (*OF_ANY_FAMILY, *outputs_of(family).commands)
    require(name in have, f"{run} is a run of the family {family.name}, which has no {name}; it has {', '.join(have)}")


def _flat(values: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Values by name; those of a group under its name and theirs."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", value


def _show(results: Results) -> None:
    if isinstance(results, Mapping):
        rows = [*_flat(results)]
        width = max([WIDTH, *(len(name) for name, _ in rows)])
        for name, value in rows:
            print(f"{name:{width}s} {printable(value)}")
        return
    for row in results:
        if isinstance(row, str):
            say(printable(row))
            continue
        words = (f"{name} {value:.4g}" if is_number(value) else f"{name} {value}" for name, value in row.items())
        say("  ".join(words))
