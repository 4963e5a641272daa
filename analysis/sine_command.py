"""The command line of `analysis.compare_sine`: its arguments are checked here, before anything heavy is imported."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import cli
from environment import check_devices
from store.lock import locked
from store.readers import StoreError
from store.rundir import read_config


def parser() -> cli.Parser:
    """The arguments."""
    built = cli.Parser("analysis.compare_sine", "Holds a transformer against its control, both trained on sines.")
    built.add_argument("run", type=Path, help="the transformer's run directory, where the comparison is written")
    built.add_argument("control", type=Path, help="the control's run directory")
    return built


def main(argv: list[str]) -> None:
    """Compares, and prints what was found."""
    flags = parser().parse(argv)
    for run in (flags.run, flags.control):
        read_config(run)
    check_devices()
    with locked(flags.run):
        from analysis.measures.compare_sine import command

        for name, value in command(flags.run, flags.control).items():
            print(f"{name:20s} {value:.6g}")


def run() -> NoReturn:
    """Runs the command on this process's arguments, and exits."""
    cli.launch(main, StoreError)
