"""Measures what a local learning coefficient costs: SGLD steps against training steps, and time to a standard error.

All are of the decoder `hoogland` (51 717 parameters) after a short training that ends with its learning rate, at two
settings: the published one, at which the chains are saturated, and the default.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import numpy as np

from icl_lab.analysis.llc import sgld
from icl_lab.analysis.llc.estimator import Estimator, fixed_tasks
from icl_lab.analysis.llc.loss import first, losses_of, split
from icl_lab.analysis.llc.sampling import CHECK_SAMPLES, Asked, differentiated_by
from icl_lab.analysis.llc.settings import Settings as Setting
from icl_lab.analysis.llc_saturation import settings_of
from icl_lab.benchmarks import torch_sgld
from icl_lab.benchmarks.cases import Settings, decoder, lsa1
from icl_lab.benchmarks.programs import our_program
from icl_lab.benchmarks.timing import Timed, compare, in_turns, seconds_of, spread
from icl_lab.families.diversity.config import DiversityConfig
from icl_lab.families.task import model_of
from icl_lab.lab.native.build import native_kernel
from icl_lab.lab.native.kernel import XLA, Kernel
from icl_lab.src.native.library import open_library
from icl_lab.src.sequences import tokenise
from icl_lab.store.params import flattened

TASKS = 4096  # of the fixed set
BLOCK = 40  # draws of a call that is timed
CHECK_EVERY = 10  # draws between two checks, as in an estimate with 400 draws
CHAINS, TORCH_CHAINS = 8, 4
TRAINING_BATCH, OUR_BATCH, PLAIN_BATCH = 64, 64, 256
BATCHES = (16, 64, 256)
STACK_BATCH = 1024  # of a stack's chain
BATCH_MEANS = 20  # parts of a chain whose means give its standard error
CHECKPOINTS, ESTIMATED = 100, 3  # of a training; of these are measured
STEPS = 600  # of a chain at each
LABELS = {"published": "published setting (saturated)", "default": "default setting"}

Entry = dict[str, Any]


class Point(NamedTuple):
    """A checkpoint of the decoder: its parameters, the fixed set, and each task's loss [n] there."""

    config: DiversityConfig
    params: Any
    tasks: Any
    baseline: jax.Array


@lru_cache(maxsize=1)
def trained(steps: int) -> Point:
    """The decoder after so many steps, in which the learning rate rises and falls to 0."""
    config = decoder("hoogland", batch_size=TRAINING_BATCH, steps=steps)
    program = our_program(config)
    program.train(steps)
    params, tasks = program.params(), fixed_tasks(config, TASKS, {})
    return Point(config, params, tasks, jax.jit(model_of(config).losses)(params, tasks))


def chains(
    point: Point, setting: Setting, batch: int, number: int, draws: int, check_every: int = CHECK_EVERY
) -> Callable[[int], sgld.Draws]:
    """A compiled program of so many chains and draws, from a seed."""

    @jax.jit
    def run(keys: jax.Array, params: Any, tasks: Any, baseline: jax.Array) -> sgld.Draws:
        losses, centre = sgld.flat(model_of(point.config), params)
        source = sgld.drawn_from(tasks, baseline, batch)
        target = sgld.Target(losses, centre, setting.nbeta, setting.gamma)
        steps = sgld.Steps(0, draws, 1, check_every)
        alone = partial(sgld.chain, fixed=first(tasks, CHECK_SAMPLES), eps=setting.step_size, steps=steps)
        if number == 1:  # products of a batch of one are slower than without a batch
            one: sgld.Draws = jax.tree.map(lambda values: values[None], alone(keys[0], target, source))
            return one
        return jax.vmap(lambda key: alone(key, target, source))(keys)

    def from_seed(seed: int) -> sgld.Draws:
        keys = jax.random.split(jax.random.key(seed), number)
        drawn: sgld.Draws = jax.block_until_ready(run(keys, point.params, point.tasks, point.baseline))
        return drawn

    return from_seed


def timed_chains(point: Point, setting: Setting, batch: int, number: int, check_every: int = CHECK_EVERY) -> Timed:
    """Seconds of so many calls of `BLOCK` draws of each chain."""
    program = chains(point, setting, batch, number, BLOCK, check_every)
    return lambda calls: seconds_of(lambda: [program(call) for call in range(calls)])


def timed_loop(loop: torch_sgld.Chain, calls: int) -> float:
    """Seconds of so many times `BLOCK` steps of a loop."""
    return seconds_of(lambda: loop(calls * BLOCK))


def chains_of_stack(layers: int, kernel: Kernel) -> Timed:
    """Seconds of so many calls of `BLOCK` draws of one chain of a stack, on minibatches of `STACK_BATCH` tasks."""
    config: Any = lsa1(layers)
    model, tasks = model_of(config), fixed_tasks(config, TASKS, {})
    params = jax.tree.map(np.asarray, model.init(jax.random.key(0)))
    library = None if kernel.path is None else open_library(kernel.path, kernel.tag)
    estimator = Estimator(config, Setting(batch_size=STACK_BATCH), library=library)
    taken = split(model.losses, params)
    asked, setting = Asked(loss_and_gradient=estimator.loss_and_gradient), estimator.settings

    @jax.jit
    def run(key: jax.Array, tasks: Any, baseline: jax.Array) -> sgld.Draws:
        losses = losses_of(taken.form, taken.fixed)
        differentiated = differentiated_by(taken.form, taken.fixed, asked)
        target = sgld.Target(losses, taken.vector, setting.nbeta, setting.gamma, None, differentiated)
        source, steps = sgld.drawn_from(tasks, baseline, STACK_BATCH), sgld.Steps(0, BLOCK, 1, BLOCK)
        return sgld.chain(key, target, source, first(tasks, CHECK_SAMPLES), 1e-7, steps)

    baseline = jax.jit(model.losses)(params, tasks)
    key = jax.random.key(0)
    return lambda calls: seconds_of(lambda: [jax.block_until_ready(run(key, tasks, baseline)) for _ in range(calls)])


# --- measurements ---


def step(batch: int, number: int, check_every: int, settings: Settings) -> Entry:
    """A chain's step against a training step of the same batch; checks every so many draws are a part of it."""
    point = trained(settings.loss_steps)
    training = our_program(decoder("hoogland", batch_size=batch, steps=settings.loss_steps)).train
    timed = {
        "ours": timed_chains(point, settings_of({})["default"], batch, number, check_every),
        "training step": lambda calls: training(calls * BLOCK),
    }
    comparison = compare(timed, settings.seconds, settings.repeats, {"ours": number * BLOCK, "training step": BLOCK})
    chain = "an SGLD step" if number == 1 else f"a step of one of {number} chains"
    checks = "" if check_every == BLOCK else f", with a check every {check_every} draws"
    return {"text": f"{chain}, batch {batch}{checks}", **against(comparison["seconds"])}


def of_stack(layers: int, settings: Settings) -> Entry:
    """An SGLD step of a stack by the native kernel against the same by XLA."""
    timed = {"ours": chains_of_stack(layers, native_kernel()), "XLA": chains_of_stack(layers, XLA)}
    comparison = compare(timed, settings.seconds, settings.repeats, {"ours": BLOCK, "XLA": BLOCK})
    return {"text": f"an SGLD step of {layers} layers, batch {STACK_BATCH}, native", **against(comparison["seconds"])}


def error(name: str, settings: Settings) -> Entry:
    """The time until the LLC's standard error is 1, of our chains and of loops in PyTorch."""
    point, setting = trained(settings.loss_steps), settings_of({})[name]
    burn_in, draws = lengths(settings)
    ours = chains(point, setting, OUR_BATCH, CHAINS, burn_in + draws)(0).excess
    excess: dict[str, np.ndarray] = {"ours": np.asarray(ours, np.float64)}
    timed = {"ours": timed_chains(point, setting, OUR_BATCH, CHAINS)}
    for who, loops in torch_chains(point, setting).items():
        excess[who] = np.stack([loop(burn_in + draws) for loop in loops])
        timed[who] = partial(timed_loop, loops[0])
    shares = dict.fromkeys(timed, BLOCK) | {"ours": CHAINS * BLOCK}
    seconds = compare(timed, settings.seconds, settings.repeats, shares)["seconds"]
    variance = {who: draw_variance(setting.nbeta * values[:, burn_in:]) for who, values in excess.items()}
    scaled = {who: [variance[who] * each for each in seconds[who]["values"]] for who in seconds}
    llc = setting.nbeta * excess["ours"][:, burn_in:].mean()
    return {
        "text": f"to a standard error of 1, {LABELS[name]}, LLC {llc:.3g}",
        **against({who: spread(values)._asdict() for who, values in scaled.items()}),
        "llc": {who: float(setting.nbeta * values[:, burn_in:].mean()) for who, values in excess.items()},
        "note": "" if torch_sgld.is_installed() else torch_sgld.MISSING,
    }


def torch_chains(point: Point, setting: Setting) -> dict[str, list[torch_sgld.Chain]]:
    """The loops in PyTorch by name, each of some seeds; none where it is missing."""
    if not torch_sgld.is_installed():
        return {}
    tasks = torch_sgld.Tasks(np.asarray(tokenise(point.tasks)), np.asarray(point.tasks.y_query))
    params = {name: np.asarray(value) for name, value in flattened(point.params).items()}
    sizes = setting.step_size, setting.nbeta, setting.gamma
    make = partial(torch_sgld.Chain, params, tasks, point.config.model, sizes=sizes)
    loops = {"unpaired": (PLAIN_BATCH, False), "paired": (OUR_BATCH, True)}
    return {
        f"PyTorch, batch {batch}, {name}": [make(batch, paired, seed=seed) for seed in range(TORCH_CHAINS)]
        for name, (batch, paired) in loops.items()
    }


def bias(name: str, settings: Settings) -> Entry:
    """The LLC and its standard error at each batch size."""
    point, setting = trained(settings.loss_steps), settings_of({})[name]
    burn_in, draws = lengths(settings)
    llc = {}
    for batch in BATCHES:
        excess = chains(point, setting, batch, CHAINS, burn_in + draws)(1).excess
        values = setting.nbeta * np.asarray(excess, np.float64)[:, burn_in:].mean(axis=1)
        llc[str(batch)] = (float(values.mean()), float(values.std(ddof=1) / np.sqrt(CHAINS)))
    return {"text": f"LLC by batch size, {LABELS[name]}", "by_batch": llc}


def whole(settings: Settings) -> Entry:
    """The minutes for all checkpoints of a training, extrapolated from a few."""
    point = trained(settings.loss_steps)
    steps = min(STEPS, settings.loss_steps // 8)
    estimator = Estimator(point.config, Setting(chains=CHAINS, burn_in=steps // 3, draws=steps - steps // 3))
    estimator(0, point.params)
    turns = in_turns({"ours": lambda: seconds_of(lambda: estimator(1, point.params))}, ESTIMATED)["ours"]
    seconds = spread([CHECKPOINTS * each for each in turns])._asdict()
    return {
        "text": f"{CHECKPOINTS} checkpoints x {CHAINS} chains x {steps} steps, batch {OUR_BATCH}, from {ESTIMATED}",
        **against({"ours": seconds}),
    }


# --- arithmetic ---


def lengths(settings: Settings) -> tuple[int, int]:
    """Draws that are left out, and draws that are kept."""
    draws = max(2 * BATCH_MEANS, settings.loss_steps // 10)
    return draws // 2, draws


def draw_variance(values: np.ndarray) -> float:
    """The variance of the mean of values [C, T] times their number C T: seconds scale with it.

    By batch means within each chain, averaged over chains, so that one chain and many are judged alike.
    """
    means = np.stack([part.mean(axis=1) for part in np.array_split(values, BATCH_MEANS, axis=1)], axis=1)
    return float(means.var(axis=1, ddof=1).mean() * values.shape[1] / BATCH_MEANS)


def against(seconds: Mapping[str, Mapping[str, Any]]) -> Entry:
    """Spreads of seconds, and ours over each other's turn by turn, as they are stored."""
    ours = seconds["ours"]["values"]
    return {
        "llc_seconds": dict(seconds),
        "cost": {
            who: spread([a / b for a, b in zip(ours, theirs["values"], strict=True)])._asdict()
            for who, theirs in seconds.items()
            if who != "ours"
        },
    }


MEASURED: dict[str, Callable[[Settings], Entry]] = {
    "llc_step_256": partial(step, 256, 1, BLOCK),
    "llc_step_64": partial(step, 64, 1, BLOCK),
    "llc_chains_64": partial(step, 64, CHAINS, CHECK_EVERY),
    **{f"llc_native_{layers}": partial(of_stack, layers) for layers in (1, 5)},
    **{f"llc_error_{name}": partial(error, name) for name in LABELS},
    **{f"llc_bias_{name}": partial(bias, name) for name in LABELS},
    "llc_run": whole,
}
