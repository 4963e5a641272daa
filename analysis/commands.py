"""The command lines of the analyses: flags are checked here, before anything heavy is imported.

`python -m analysis.NAME` comes here first; then the module of that name is imported and its `command` called on the
run.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import cli
from environment import check_devices
from src.checks import ConfigError, require
from src.config import LARGEST
from store import layout
from store.lock import locked
from store.readers import StoreError, is_number
from store.rundir import read_config

ALPHAS = (1.0, 1.5, 2.0, 3.0)


class Command(NamedTuple):
    """An analysis as a command: its sentence, its flags besides `--run`, and how these become arguments."""

    description: str
    add_flags: Callable[[cli.Parser], None]
    arguments: Callable[[argparse.Namespace], Mapping[str, Any]]
    family: str = "regression"  # of the runs that it is of


def _no_flags(parser: cli.Parser) -> None:
    pass


def _no_arguments(flags: argparse.Namespace) -> dict[str, Any]:
    return {}


def _alignment_flags(parser: cli.Parser) -> None:
    parser.add_argument("--eta", type=float, help="step size eta/N; the best on separate tasks if not given")


def _alignment_arguments(flags: argparse.Namespace) -> dict[str, Any]:
    require(flags.eta is None or 0 < flags.eta <= LARGEST, f"eta is {flags.eta}; it must be a finite number above 0")
    return {"eta": flags.eta}


def _ood_flags(parser: cli.Parser) -> None:
    cli.add_list(parser, "--alphas", float, ALPHAS, "input scales")
    parser.add_argument("--keep_labels", action="store_true", help="keep the labels of the unscaled inputs")


def _ood_arguments(flags: argparse.Namespace) -> dict[str, Any]:
    for alpha in flags.alphas:
        require(0 < alpha <= LARGEST, f"alphas has {alpha}; each must be a finite number above 0")
    return {"alphas": flags.alphas, "keep_labels": flags.keep_labels}


def _layerwise_flags(parser: cli.Parser) -> None:
    parser.add_argument("--num_tasks", type=int, default=5000, help="tasks")
    parser.add_argument("--layers", type=int, help="layers (50 for one layer rolled out, else those of the stack)")
    parser.add_argument("--damping", type=float, help="damping of a roll-out (.75)")
    parser.add_argument("--out", type=Path, help=f"file to write ({layout.LAYERWISE} of the run)")


def _layerwise_arguments(flags: argparse.Namespace) -> dict[str, Any]:
    require(flags.num_tasks >= 2, f"num_tasks is {flags.num_tasks}; it must be a whole number of at least 2")
    require(flags.layers is None or flags.layers >= 1, f"layers is {flags.layers}; it must be at least 1")
    damping = flags.damping
    require(damping is None or 0 < damping <= LARGEST, f"damping is {damping}; it must be a finite number above 0")
    return {name: getattr(flags, name) for name in ("num_tasks", "layers", "damping", "out")}


COMMANDS = {
    "alignment": Command(
        "Holds a run's transformer against gradient descent: predictions and sensitivities on the same tasks.",
        _alignment_flags,
        _alignment_arguments,
    ),
    "ood_eval": Command("Evaluates a run on inputs of other scales.", _ood_flags, _ood_arguments),
    "comparators": Command(
        "Measures what knows of a run's corruption: a tuned step, the best linear predictor, Bayes over masks.",
        _no_flags,
        _no_arguments,
    ),
    "attention_stats": Command(
        "Asks whether the attention of a run separates corrupted pairs from clean ones.", _no_flags, _no_arguments
    ),
    "copying": Command(
        "Measures how far the first layer's rows depend on the following token.", _no_flags, _no_arguments
    ),
    "over_training": Command(
        "Holds a run at every snapshot of its training against gradient descent, and GD++ where it has several steps.",
        _no_flags,
        _no_arguments,
    ),
    "task_diversity": Command(
        "Holds a decoder against ridge and dMMSE, on tasks of its pool and on fresh ones.",
        _no_flags,
        _no_arguments,
        "diversity",
    ),
    "layerwise": Command(
        "Measures the loss after every layer, beside gradient descent's on the same tasks.",
        _layerwise_flags,
        _layerwise_arguments,
        "layerwise",
    ),
}


def parser(name: str) -> cli.Parser:
    """The parser of an analysis."""
    built = cli.Parser(f"analysis.{name}", COMMANDS[name].description)
    built.add_argument("--run", type=Path, required=True, help="run directory")
    built.add_argument(
        "--allow_pickle", action="store_true", help="read params.pkl where params.safetensors is missing"
    )
    COMMANDS[name].add_flags(built)
    return built


def read(name: str, argv: Sequence[str]) -> tuple[Path, dict[str, Any]]:
    """The run and the arguments in a command line; `UsageError` or `ConfigError` for what cannot be asked."""
    flags = parser(name).parse(argv)
    return flags.run, {"allow_pickle": flags.allow_pickle, **COMMANDS[name].arguments(flags)}


def run(name: str) -> NoReturn:
    """Runs an analysis on this process's arguments, prints what it found, and exits."""

    def main(argv: list[str]) -> None:
        directory, arguments = read(name, argv)
        family, expected = read_config(directory).family, COMMANDS[name].family
        require(family == expected, f"{directory} is a run of the family {family}; {name} is of the family {expected}")
        check_devices()
        with locked(directory):
            found = import_module(f"analysis.{name}").command(directory, **arguments)
        _show(found)

    cli.launch(main, StoreError, ConfigError)


def _show(found: Any) -> None:
    if isinstance(found, list):
        for row in found:
            print(
                "  ".join(
                    f"{name} {value:.4g}" if is_number(value) else f"{name} {value}" for name, value in row.items()
                )
            )
        return
    for name, value in found.items():
        print(f"{name:22s} {cli.printable(value)}")
