"""Measures the loss of gradient descent after every step, and of reference predictors.

python -m analysis.gd_curve --dim 20 --num_pairs 20 --steps 50 --out gd_metrics.json
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from icl_lab.baselines.gd_curve import gd_curve
from icl_lab.lab import cli, compile_cache
from icl_lab.lab.environment import check_devices
from icl_lab.lab.flag_types import COUNT, NOT_NEGATIVE, POSITIVE, SEED, TASKS, Whole
from icl_lab.src.checks import finite_results, require
from icl_lab.src.data_config import LinearData, QueriesData
from icl_lab.src.loss_conventions import TRIMMED_MEAN
from icl_lab.src.words import printable
from icl_lab.store import outputs
from icl_lab.store.atomic import json_bytes
from icl_lab.store.outputs import in_path, out_file
from icl_lab.store.rundir import read_config

STEP_SIZES = ("one_step", "spectral", "spectral_set", "envelope", "line_search")
DAMPED = ("one_step", "spectral", "spectral_set")
STARTS = ("zero", "ridge")
WRITER = "baselines.gd_step"  # as in the records of files that earlier versions left, so that these are replaced
SIZE = Whole(1, 2**14, "a context of more does not fit in memory")
MOST_LOSSES = 2**28  # that are kept, one a task and step


def parser() -> cli.Parser:
    """The flags."""
    built = cli.Parser("analysis.gd_curve", "Writes the loss of gradient descent on a context after every step.")
    built.add_argument("--dim", type=SIZE, default=20, help="input dimension")
    built.add_argument("--num_pairs", type=SIZE, default=20, help="pairs of a context")
    built.add_argument("--num_queries", type=SIZE, default=20, help="queries of a context")
    built.add_argument("--noise_std", type=NOT_NEGATIVE, default=0.05, help="standard deviation of the labels' noise")
    built.add_argument("--steps", type=COUNT, default=50, help="steps of gradient descent")
    built.add_argument("--step_size", choices=STEP_SIZES, default="one_step", help="how the step size is chosen")
    built.add_argument("--damping", type=POSITIVE, help="factor of the step size (.75 for one_step, 1 for spectral)")
    built.add_argument("--start", choices=STARTS, default="zero", help="where descent starts")
    built.add_argument(
        "--ridge",
        type=NOT_NEGATIVE,
        help="penalty of the ridge regression of --start ridge (default: the Bayes-optimal one)",
    )
    built.add_argument("--num_tasks", type=TASKS, default=5000, help="tasks")
    built.add_argument(
        "--seed",
        type=SEED,
        default=0,
        help="seed of the tasks; a run with this data seed is evaluated on the same ones",
    )
    built.add_argument("--like", type=in_path, help="run directory whose task distribution and seed are used")
    built.add_argument("--out", type=out_file, default="gd_metrics.json", help="file to write")
    return built


def data_of(flags: argparse.Namespace) -> QueriesData:
    """The distribution of the tasks: a run's, or Gaussian inputs and noise."""
    if flags.like is not None:
        return _like(read_config(flags.like), flags.like)
    given = {name: getattr(flags, name) for name in ("dim", "num_pairs", "num_queries", "noise_std")}
    return QueriesData(input_distribution="gaussian", **given)


def _like(config: Any, run: Path) -> QueriesData:
    """The distribution of a run's tasks, with as many queries a context as it has."""
    data = getattr(config, "data", None)
    require(isinstance(data, LinearData), f"{run} is a run of the family {config.family}, whose tasks are not linear")
    fields = {field.name: getattr(data, field.name) for field in dataclasses.fields(LinearData)}
    return QueriesData(**fields, num_queries=getattr(data, "num_queries", 1))


def check(flags: argparse.Namespace) -> None:
    """`ConfigError` for invalid flags."""
    kept = flags.steps * flags.num_tasks
    numbers = flags.num_tasks * (flags.num_pairs + flags.num_queries) * flags.dim
    require(numbers < 2**31, f"{flags.num_tasks} tasks of these sizes hold {numbers} numbers, 2^31 or more; use fewer")
    require(kept <= MOST_LOSSES, f"{flags.steps} steps of {flags.num_tasks} tasks give {kept} losses, more than 2^28")
    if flags.damping is not None:
        require(flags.step_size in DAMPED, f"damping has no meaning for the step size {flags.step_size}")
    if flags.ridge is not None:
        require(flags.start == "ridge", "ridge is the penalty of --start ridge, which is not given")


def check_losses(flags: argparse.Namespace, data: QueriesData, metrics: Mapping[str, Any]) -> None:
    """`ConfigError` that names the value at which losses overflow; the median's, as a few tasks may diverge."""
    causes = [("noise_std", data.noise_std, metrics["references"]["ridge"]), ("ridge", flags.ridge, metrics["start"])]
    name, value = ("steps", flags.steps) if flags.damping is None else ("damping", flags.damping)
    for cause, given, losses in (*causes, (name, value, metrics)):
        if given is not None:
            finite_results(cause, given, [{"median": loss} for loss in losses["median"]])


def main(argv: list[str]) -> None:
    """Writes gd_metrics.json and prints some of its losses."""
    flags = parser().parse(argv)
    check(flags)
    outputs.check([flags.out], WRITER)
    data = data_of(flags)
    seed = flags.seed if flags.like is None else read_config(flags.like).data_seed
    check_devices()
    compile_cache.enable()
    metrics = gd_curve(
        data, seed, flags.num_tasks, flags.steps, flags.step_size, flags.damping, flags.start, flags.ridge
    )
    check_losses(flags, data, metrics)
    outputs.write({flags.out: json_bytes(metrics)}, WRITER)
    print(f"mse over {flags.num_tasks} tasks: {TRIMMED_MEAN} ± s.e., which is drawn; median; mean of all")
    for step in (step for step in (1, 2, 4, 8, 12, 24, 50) if step <= flags.steps):
        print(f"step {step:3d}  {_in_words(metrics, step - 1)}")
    print(f"ridge     {_in_words(metrics['references']['ridge'], 0)}; written to {printable(flags.out)}")


def _in_words(losses: Mapping[str, Any], place: int) -> str:
    trimmed, error, median, mean = (losses[name][place] for name in ("trimmed_mean", "trimmed_sem", "median", "mse"))
    return f"{trimmed:.4g} ± {error:.2g}, median {median:.4g}, mean {mean:.4g}"


def launch() -> NoReturn:
    """Runs the command on this process's arguments, and exits."""
    cli.launch(main)


if __name__ == "__main__":
    launch()
