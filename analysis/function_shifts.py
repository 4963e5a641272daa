"""A decoder on prompts of functions under shifts, compared with the best baseline under the same shift.

python -m analysis.function_shifts --run DIR [--half_subspace --x_twice ...]

A flag asks for a shift; without any, all are measured. A shift *breaks* a model if its loss exceeds that of the best
baseline under the same shift by more than .1 of the variance of the labels there, or by .1 nats, and the 95 % interval
of the excess lies above 0. Training is unchanged. No baseline knows the shift, but for penalties, which are chosen on
other prompts of the same shift. With --fitted trees, boosting and networks by Adam are among the baselines.
"""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from icl_lab.analysis.command import Command
from icl_lab.analysis.loaded_run import LoadedRun, load_run
from icl_lab.families.functions import baselines, exact, task
from icl_lab.families.functions.batch import FunctionBatch
from icl_lab.families.functions.config import FunctionsConfig
from icl_lab.families.functions.function_class import NUMBER, FunctionClass
from icl_lab.families.functions.sequences import Drawn, Pool, Size, labelled, sample_functions
from icl_lab.families.functions.shifts import NONE, SHIFTS, Shift
from icl_lab.lab import cli
from icl_lab.lab.flag_types import Whole
from icl_lab.src.checks import ConfigError, require
from icl_lab.src.prng import Purpose
from icl_lab.src.prng import key as make_key
from icl_lab.src.registries import FUNCTION_CLASSES, MODEL
from icl_lab.src.statistics import mean_and_error
from icl_lab.store import layout
from icl_lab.store.atomic import write_csv

# how the names of predictors begin that are no baselines: of the model, and of those that are told more than a prompt
NO_BASELINES = (MODEL, exact.ORACLE, "member_")
SLOW = tuple(name for name in baselines.REFITTED if name != "lasso")
BREAKS = 0.1  # of the labels' variance, or nats
INTERVAL = 1.96  # standard errors
LONGER, OTHERS = "longer_prompts", "other_classes"
GROWS = 2  # times as many pairs as in training
LEARNED = ("learned", "query_key", "relative")  # positions that a longer prompt has not
FURTHER = {
    LONGER: "twice as many pairs as in training, where positions are not learned",
    OTHERS: "functions of each other class whose labels are of the same kind",
}


class Measured(NamedTuple):
    """Losses [b] of the model and of predictors at a position, and the labels' variance there over the class's."""

    position: int
    losses: dict[str, np.ndarray]
    variance: float


@partial(jax.jit, static_argnames=("function", "size", "count"))
def _draw(seed: jax.Array, purpose: jax.Array, function: FunctionClass, size: Size, count: int, pool: Pool) -> Drawn:
    key = jax.random.fold_in(make_key(seed), purpose)
    return sample_functions(key, function, size, count, pool, jnp.ones(size.dim, bool))


_labelled = jax.jit(labelled, static_argnums=0)


def measure(
    loaded: LoadedRun, names: list[str], count: int, leaving_out: Collection[str] = SLOW
) -> list[dict[str, Any]]:
    """Writes function_shifts.csv, a row for each shift, position and predictor; gives those of the model.

    These say whether it broke. Of another class the shift has its name. Some baselines are left out.
    """
    shifted = partial(measured, count=count, leaving_out=leaving_out)
    rows: list[dict[str, Any]] = []
    kept: LoadedRun = replace(loaded, config=replace(loaded.config, test_tasks=count))
    for name in names:
        if name == LONGER:
            rows += _rows(kept.config, name, shifted(longer(kept), SHIFTS[NONE]))
        elif name == OTHERS:
            for other in other_classes(kept.config):
                rows += _rows(kept.config, other.kind, shifted(on_class(kept, other), SHIFTS[NONE]))
        else:
            rows += _rows(kept.config, name, shifted(kept, SHIFTS[name]))
    write_csv(loaded.run / layout.FUNCTION_SHIFTS, rows)
    return [row for row in rows if row["predictor"] == MODEL]


def measured(loaded: LoadedRun, shift: Shift, count: int, leaving_out: Collection[str]) -> Iterator[Measured]:
    """The losses under a shift, at each position where it is defined, or of a query at some of them."""
    config = loaded.config
    size, dim, pool = task.size_of(config), config.data.dim, task.pool_of(config)
    seed, chosen_on = np.uint32(config.data_seed), min(count, baselines.CHOOSING_PROMPTS)
    drawn = {
        purpose: _draw(seed, np.uint32(purpose), config.function, size, prompts, pool)
        for purpose, prompts in ((Purpose.TEST_SET, count), (Purpose.FITTED, chosen_on))
    }
    positions = [k for k in range(size.num_pairs) if shift.has(k, dim)]
    # prompts of their own for each of some positions, or the same for all
    groups = [[k] for k in shown_positions(positions)] if shift.of_query else [positions]
    for group in filter(None, groups):
        batch, others = (relabelled(config, each, shift, group[0], purpose) for purpose, each in drawn.items())
        asked = baselines.Asked(config, group if shift.of_query else None, others)
        losses = losses_on(loaded, batch, asked, leaving_out)
        for k in group:
            yield Measured(k, {name: values[:, k] for name, values in losses.items()}, _variance(config, batch, k))


def shown_positions(positions: list[int], most: int = 8) -> list[int]:
    """At most so many positions, evenly spaced from the first to the last."""
    places = np.linspace(0, len(positions) - 1, min(most, len(positions)))
    return [positions[round(float(place))] for place in places]


def relabelled(config: FunctionsConfig, drawn: Drawn, shift: Shift, k: int, purpose: Purpose) -> FunctionBatch:
    """The prompts of a shift at a position: inputs changed, labels anew, then what it does to labels.

    The basis of a shift is the same at all positions and for all purposes; noise and orders are those of the purpose.
    """
    x = np.asarray(drawn.x, np.float64)
    inputs = jnp.asarray(shift.inputs(x, k, np.random.default_rng([config.data_seed, 17])), jnp.float32)
    random = np.random.default_rng([config.data_seed, 17, purpose])
    batch = _labelled(config.function, drawn._replace(x=inputs), jnp.ones(x.shape[1]))
    y, target = np.asarray(batch.y) * np.float32(shift.scale), np.asarray(batch.y_query) * np.float32(shift.scale)
    if shift.noise:
        variance = _variances(config, batch)[:, None]
        shrunk = ((variance / (variance + shift.noise**2)) ** 0.5).astype(np.float32)
        noise = shift.noise * random.standard_normal(y.shape).astype(np.float32)
        y, target = shrunk * (y + noise), shrunk * target
    if shift.permuted:
        order = random.permuted(np.broadcast_to(np.arange(k), (len(y), k)), axis=1)
        y = y.copy()
        y[:, :k] = np.take_along_axis(y[:, :k], order, axis=1)
    found: FunctionBatch = batch._replace(y=jnp.asarray(y), y_query=jnp.asarray(target))
    return found


def losses_on(
    loaded: LoadedRun, batch: FunctionBatch, asked: baselines.Asked, leaving_out: Collection[str]
) -> dict[str, np.ndarray]:
    """The losses [b, K] of the model and of predictors."""
    function = loaded.config.function
    said: dict[str, np.ndarray] = {MODEL: task.predictions_of(loaded.model, loaded.params, batch)}
    said |= {
        name: values
        for name, values in baselines.predictions_on(asked, batch, leaving_out)
        if isinstance(values, np.ndarray)
    }
    return {name: task.errors_of(function, values, task.first(batch, len(values))) for name, values in said.items()}


def _variances(config: FunctionsConfig, batch: FunctionBatch) -> np.ndarray:
    """The variance [B] of the labels of each prompt's class."""
    of_members = np.array([member.variance(config.data.dim) for member in config.function.members])
    found: np.ndarray = of_members[np.asarray(batch.member)]
    return found


def _variance(config: FunctionsConfig, batch: FunctionBatch, k: int) -> float:
    """The variance of targets at a position over that of the class; 1 of labels that are no numbers."""
    if {member.target for member in config.function.members} != {NUMBER}:
        return 1.0
    return float(np.var(np.asarray(batch.y_query)[:, k] / np.sqrt(_variances(config, batch))))


def longer(loaded: LoadedRun) -> LoadedRun:
    """The run with prompts of twice as many pairs; `ConfigError` where positions are learned."""
    config = loaded.config
    require(
        config.model.positions not in LEARNED,
        f"positions is {config.model.positions!r}, so prompts are at most {config.data.num_pairs} pairs long, as in "
        "training; train with --config.positions=rotary, sinusoidal or none",
    )
    evaluated = config.as_evaluated()  # a curriculum of longer prompts might not end
    grown = replace(evaluated, data=replace(config.data, num_pairs=GROWS * config.data.num_pairs))
    return replace(loaded, config=grown, model=task.make_model(grown))


def other_classes(config: FunctionsConfig) -> list[FunctionClass]:
    """The other built-in classes, with their defaults, whose labels are of the same kind and that have such prompts."""
    found = []
    for name in FUNCTION_CLASSES.built_in:
        other, own = FUNCTION_CLASSES[name](), config.function
        same = [{member.target for member in each.members} for each in (own, other)]
        try:
            other.check(config.data.dim, config.data.num_pairs)
        except ConfigError:
            continue
        if name != own.kind and same[0] == same[1] and own.num_classes == other.num_classes:
            found.append(other)
    return found


def on_class(loaded: LoadedRun, function: FunctionClass) -> LoadedRun:
    """The run on fresh functions of another class."""
    data = replace(loaded.config.data, num_functions=float("inf"), num_prompts=float("inf"))
    return replace(loaded, config=replace(loaded.config.as_evaluated(), function=function, data=data))


def _rows(config: FunctionsConfig, shift: str, found: Iterator[Measured]) -> Iterator[dict[str, Any]]:
    """The rows of a shift. The excess of the model is over the baseline with the least mean loss at the position."""
    for each in found:
        means = {name: float(values.mean()) for name, values in each.losses.items()}
        known = {name: mean for name, mean in means.items() if np.isfinite(mean) and not name.startswith(NO_BASELINES)}
        best = min(known, key=lambda name: known[name])
        for name, values in each.losses.items():
            loss, error = mean_and_error(values)
            row: dict[str, Any] = {"function": config.function.kind, "shift": shift, "position": each.position}
            row |= {"predictor": name, "loss": loss, "loss_se": error, "prompts": len(values)}
            row |= dict.fromkeys(("best_baseline", "excess", "excess_se", "breaks"))
            if name == MODEL:
                shared = len(each.losses[best])
                excess, excess_error = mean_and_error(values[:shared] - each.losses[best])
                broken = excess > BREAKS * each.variance and excess - INTERVAL * excess_error > 0
                row |= {"best_baseline": best, "excess": excess, "excess_se": excess_error, "breaks": broken}
            yield row


def add_flags(parser: cli.Parser) -> None:
    """A flag for each shift."""
    for name, text in {**{name: shift.text for name, shift in SHIFTS.items()}, **FURTHER}.items():
        parser.add_argument(f"--{name}", action="store_true", help=text)
    parser.add_argument("--fitted", action="store_true", help="also baselines that are fitted anew, in minutes a shift")
    parser.add_argument("--prompts", type=Whole(2), default=1000, help="prompts of each shift")


def of_flags(run: Path, flags: argparse.Namespace) -> list[dict[str, Any]]:
    """Measures the shifts that are asked for; of all, those that the class has."""
    loaded = load_run(run)
    config = loaded.config
    asked = [name for name in (*SHIFTS, *FURTHER) if getattr(flags, name)]
    for name in (name for name in asked if name in SHIFTS):
        reason = SHIFTS[name].why_not(config.function)
        require(not reason, f"{name} is not defined: {reason}")
    every = [name for name, shift in SHIFTS.items() if not shift.why_not(config.function)]
    every += [LONGER] * (config.model.positions not in LEARNED) + [OTHERS]
    return measure(loaded, asked or every, flags.prompts, () if flags.fitted else SLOW)


COMMAND = Command(
    "function_shifts", "Compares a decoder with the best baseline under shifts of its prompts.", of_flags, add_flags
)

if __name__ == "__main__":
    COMMAND.launch()
