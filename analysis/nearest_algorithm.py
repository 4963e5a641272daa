"""Which algorithm a decoder on prompts of functions is nearest to, over training and position.

python -m analysis.nearest_algorithm --run DIR --other DIR

The distance of two predictors is the mean over prompts of `families.functions.distances`; position k has seen k pairs.
The nearest algorithm is *named* where the runner-up is farther by more than two seeds of the model, the run and the
other one, are from one another at the same step:

    d(model, runner-up) - d(model, nearest) > d(model, other seed)

Algorithms that predict the same at a position, such as least squares and Bayes of a linear class without noise, are one
there; those that predict as the best constant does, as all but a pool's do without pairs, are the prior. Baselines that
are fitted anew at each position are left out, and those whose penalties are chosen on other prompts; and the oracle,
which is told more than a prompt.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from icl_lab.analysis.command import Command
from icl_lab.analysis.loaded_run import LoadedRun, load_run
from icl_lab.families.functions import baselines, exact, task
from icl_lab.families.functions.batch import FunctionBatch
from icl_lab.families.functions.config import FunctionsConfig
from icl_lab.families.functions.distances import distances
from icl_lab.families.functions.outputs import SAME, distance_unit, label_of, shown_positions
from icl_lab.lab import cli
from icl_lab.lab.configs.run import RunConfig, Seeds, fields_of, with_seeds
from icl_lab.lab.flag_types import Whole
from icl_lab.plots.nearest_algorithm import draw_nearest_algorithm
from icl_lab.src.checks import require
from icl_lab.src.prng import Purpose
from icl_lab.src.statistics import mean_and_error, with_error
from icl_lab.store import layout, snapshots
from icl_lab.store.atomic import write_csv
from icl_lab.store.listing import flat
from icl_lab.store.metrics import last_step
from icl_lab.store.outputs import in_path
from icl_lab.store.rundir import read_config

TINY = 1e-6  # of the variance, or nats: algorithms that are nearer to one another predict the same
RUNNER_UP = ("runner_up", "runner_up_distance", "runner_up_distance_se")  # empty where there is none


class Algorithms(NamedTuple):
    """The predictions of n algorithms by name on b prompts, and which predict the same at each position [n, n, K]."""

    batch: FunctionBatch
    predictions: dict[str, np.ndarray]
    same: np.ndarray


def algorithms_on(config: FunctionsConfig, batch: FunctionBatch) -> Algorithms:
    """The algorithms of a run that are defined, on the first prompts: as many as all of them are computed of."""
    leaving_out = {*baselines.CHOSEN, *baselines.REFITTED}
    found = {
        name: values
        for name, values in baselines.predictions_on(baselines.Asked(config), batch, leaving_out)
        if isinstance(values, np.ndarray) and name != exact.ORACLE
    }
    shared = min(map(len, found.values()))
    predictions, part = {name: values[:shared] for name, values in found.items()}, task.first(batch, shared)
    same = np.ones((len(found), len(found), config.data.num_pairs), bool)
    for (i, first), (j, second) in combinations(enumerate(predictions.values()), 2):
        same[i, j] = same[j, i] = distances(config.function, first, second, part).mean(axis=0) < TINY
    return Algorithms(part, predictions, same)


def over_training(loaded: LoadedRun, other: LoadedRun, count: int) -> list[dict[str, Any]]:
    """A row for each snapshot of a run, or for its end, and each position, on so many test prompts of the run."""
    config = replace(loaded.config, test_tasks=count)
    algorithms = algorithms_on(config, task.prompts(config, Purpose.TEST_SET, count))
    return [
        {"step": step} | row
        for step, *seeds in at_same_steps(loaded, other)
        for row in nearest(
            config, algorithms, *(task.predictions_of(each.model, each.params, algorithms.batch) for each in seeds)
        )
    ]


def at_same_steps(loaded: LoadedRun, other: LoadedRun) -> Iterator[tuple[int, LoadedRun, LoadedRun]]:
    """(step, a run, the other) for each snapshot of the run, or of its end alone if it kept none.

    Where the other run has no snapshot of the step, it is as it was at its end.
    """
    if not snapshots.steps(loaded.run):
        yield last_step(loaded.run, loaded.config), loaded, other
        return
    kept, theirs = {*snapshots.steps(other.run)}, other.checkpoints()
    for step, checkpoint in loaded.checkpoints():
        yield step, checkpoint, next(then for at, then in theirs if at == step) if step in kept else other


def nearest(
    config: FunctionsConfig, algorithms: Algorithms, model: np.ndarray, other: np.ndarray
) -> list[dict[str, Any]]:
    """A row for each position, of a model's predictions [b, K], or [b, K, C], and those of another seed."""
    to_each = [distances(config.function, model, said, algorithms.batch) for said in algorithms.predictions.values()]
    between = distances(config.function, model, other, algorithms.batch)
    return [
        {"position": k, "prompts": len(between)} | _at(algorithms, np.stack(to_each)[:, :, k], between[:, k], k)
        for k in range(config.data.num_pairs)
    ]


def _at(algorithms: Algorithms, to_each: np.ndarray, between: np.ndarray, k: int) -> dict[str, Any]:
    """The row of a position, of distances [n, b] to each algorithm and those [b] between two seeds.

    Where all algorithms predict the same there is no runner-up, and nothing to name.
    """
    means = to_each.mean(axis=1)
    first, *others = np.argsort(means, kind="stable")
    rivals = [number for number in others if not algorithms.same[first, number, k]]
    names, second = _names(algorithms, first, k), dict[str, Any](dict.fromkeys(RUNNER_UP))
    if rivals:
        distance = mean_and_error(to_each[rivals[0]])
        second = dict(zip(RUNNER_UP, (_names(algorithms, rivals[0], k), *distance), strict=True))
    is_named = bool(rivals) and means[rivals[0]] - means[first] > between.mean()
    return {
        "nearest": names,
        **with_error("distance", mean_and_error(to_each[first])),
        **second,
        **with_error("between_seeds", mean_and_error(between)),
        "named": names if is_named else "",
    }


def _names(algorithms: Algorithms, number: int, k: int) -> str:
    """An algorithm with those that predict the same at a position; none has a name of its own if the prior does too."""
    same = algorithms.same[number, :, k]
    names = [name for name, is_same in zip(algorithms.predictions, same, strict=True) if is_same]
    return baselines.PRIOR if baselines.PRIOR in names else SAME.join(names)


# --- the other run ---


def check_other(run: Path, config: FunctionsConfig, other: Path, theirs: RunConfig) -> None:
    """`ConfigError` unless two configs differ in the seed of the initialisation, and else at most in the data's.

    Runs on a pool have the same data's seed: of another one they know other functions.
    """
    require(theirs.family == config.family, f"{other} is a run of the family {theirs.family}, not of {config.family}")
    fields, others = (flat(fields_of(_without_seeds(each))) for each in (config, theirs))
    differing = [name for name in {**fields, **others} if fields.get(name) != others.get(name)]
    require(
        not differing,
        f"{other} differs from {run} in {', '.join(differing)}; it must be a run of the same settings with another "
        "initialisation (--init_seed)",
    )
    require(
        theirs.init_seed != config.init_seed and not config.init_from,
        f"{other} begins with the parameters that {run} begins with; it must have another initialisation (--init_seed)",
    )
    is_pool = min(config.data.num_functions, config.data.num_prompts) < np.inf
    require(
        not is_pool or theirs.data_seed == config.data_seed,
        f"{other} has the pool of the data seed {theirs.data_seed}, and {run} that of {config.data_seed}; it must have "
        f"the same (--seed {config.data_seed} --init_seed {theirs.init_seed})",
    )


def _without_seeds(config: RunConfig) -> RunConfig:
    return with_seeds(replace(config.canonical(), preset=""), Seeds())


# --- the command ---


def measure(run: Path, flags: argparse.Namespace) -> list[str]:
    """Writes nearest_algorithm.csv and draws it; gives the table of the last step."""
    config = read_config(run)
    check_other(run, config, flags.other, read_config(flags.other))
    rows = over_training(load_run(run), load_run(flags.other), flags.prompts)
    write_csv(run / layout.NEAREST_ALGORITHM, rows)
    draw_nearest_algorithm(run)
    return [*table(config, rows), named_where(config, rows)]


def table(config: FunctionsConfig, rows: Sequence[dict[str, Any]]) -> list[str]:
    """The distances at the last step, at some positions, and the nearest algorithm where it is named."""
    last = rows[-1]
    heads = ("nearest", "runner-up", "between seeds")
    lines = [
        f"{distance_unit(config)} between predictions on {last['prompts']} test prompts at step {last['step']}, "
        "after k pairs, ± s.e.",
        f"  {'':6}" + "".join(f"{head:>16}" for head in heads) + "   named",
    ]
    shown = shown_positions(config.data.num_pairs)
    for row in (row for row in rows if row["step"] == last["step"] and row["position"] in shown):
        cells = (_cell(row, name) for name in ("distance", "runner_up_distance", "between_seeds"))
        named = label_of(config, row["named"]) or "-"
        lines.append(f"  k = {row['position']:<2d}" + "".join(f"{cell:>16}" for cell in cells) + f"   {named}")
    return lines


def _cell(row: dict[str, Any], name: str) -> str:
    return "" if row[name] is None else f"{row[name]:.4f} ±{row[f'{name}_se']:.4f}"


def named_where(config: FunctionsConfig, rows: Sequence[dict[str, Any]]) -> str:
    """Which algorithms are named, and at how many of all steps and positions."""
    counts = Counter(row["named"] for row in rows if row["named"])
    parts = [f"{label_of(config, named)} at {count}" for named, count in counts.items()]
    return f"of {len(rows)} steps and positions: {', '.join(parts) or 'none has a name'}"


def add_flags(parser: cli.Parser) -> None:
    """The other seed, and the number of prompts."""
    parser.add_argument(
        "--other", type=in_path, required=True, help="run directory of the same settings with another --init_seed"
    )
    parser.add_argument("--prompts", type=Whole(2), default=1000, help="test prompts")


COMMAND = Command(
    "nearest_algorithm",
    "Finds the algorithm that a decoder is nearest to, over training and position.",
    measure,
    add_flags,
)

if __name__ == "__main__":
    COMMAND.launch()
