"""The measurements: one function per kind, which returns an entry of the results as plain JSON values."""

from __future__ import annotations

import shlex
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from icl_lab.benchmarks import compiling, curriculum, development, flops, llc, llc_any_model, looking_inside, processes
from icl_lab.benchmarks.cases import CASES, COMMANDS, COMPILED, NEEDED, SWEEPS, VARIABLES, Settings, lsa1
from icl_lab.benchmarks.plain_loop import plain_loop, test_batch
from icl_lab.benchmarks.programs import WORK, our_program
from icl_lab.benchmarks.timing import compare, in_turns, report, spread
from icl_lab.families.task import model_of
from icl_lab.src.losses import half_mse

SAME_LOSS = 0.02  # relative tolerance; two seeds of lsa1 differ by less than .3 %

Entry = dict[str, Any]


def peak(settings: Settings) -> Entry:
    """The machine's peak GFLOP/s, from a large float32 matrix product."""
    size = settings.matmul_size
    a = jnp.ones((size, size), jnp.float32)
    product = jax.jit(lambda a: a @ a)
    product(a).block_until_ready()
    gflops = []
    for _ in range(2 * settings.repeats):
        began = time.perf_counter()
        product(a).block_until_ready()
        gflops.append(2e-9 * size**3 / (time.perf_counter() - began))
    return {"text": f"float32 matrix product of size {size}, the best of {len(gflops)}", "gflops": max(gflops)}


def same_loss(settings: Settings) -> Entry:
    """The losses of both training loops on the same tasks after the same number of steps."""
    config = lsa1()
    program, (plain_train, plain_loss) = our_program(config), plain_loop(config)
    program.train(settings.loss_steps)
    plain_train(settings.loss_steps)
    test = test_batch(config)
    losses = {
        "ours": float(half_mse(model_of(config).predict(program.params(), test), test.y_query)),
        "plain": plain_loss(),
    }
    difference = losses["ours"] / losses["plain"] - 1
    return {
        "text": f"loss of lsa1 after {settings.loss_steps} steps",
        "loss": losses,
        "difference": difference,
        "tolerance": SAME_LOSS,
        "same": abs(difference) <= SAME_LOSS,
    }


def case(name: str, settings: Settings) -> Entry:
    """A case of `CASES`."""
    measured = CASES[name]
    config, work, width = measured.config, measured.work, measured.width
    times = compare(WORK[work](config, width), settings.seconds, settings.repeats, {"ours": width, "xla": width})
    count = {"steps": flops.training_step, "gradients": flops.loss_and_gradient}
    operations = {"flops": count[work](config)} if work in count else {}
    return {"text": measured.text} | times | operations


def compilation(name: str, settings: Settings) -> Entry:
    """The time to a case's first step: cold, with cached programs, and of the plain loop."""
    with tempfile.TemporaryDirectory() as cache:
        compiling.measure("ours", name, Path(cache))
        repeats = in_turns(
            {
                "ours": lambda: compiling.measure("ours", name),
                "cached": lambda: compiling.measure("ours", name, Path(cache)),
                "xla": lambda: compiling.measure("xla", name),
                "plain": lambda: compiling.measure("plain", name),
            },
            settings.repeats,
        )
    alone = _values({who: repeats[who] for who in ("ours", "cached")}, "compiling")
    return {
        "text": f"to the first step, {CASES[name].text.removeprefix('a step').removeprefix(' of').strip(', ')}",
        **report(_values(repeats, "first_step")),
        "compile_seconds": {who: spread(values)._asdict() for who, values in alone.items()},
    }


def command(name: str, settings: Settings) -> Entry:
    """The time of commands from process start, with their peak memory."""
    text, lines, times = COMMANDS[name]
    with tempfile.TemporaryDirectory() as folder:
        fill = {"steps": settings.run_steps, "out": f"{folder}/run"}
        home = {"XDG_CACHE_HOME": f"{folder}/cache"}

        def call(who: str, line: str) -> Callable[[], dict[str, float]]:
            words = [sys.executable, *shlex.split(line.format(**fill))]
            return lambda: processes.measure(words, home | VARIABLES.get(who, {}))

        possible = [who for who in lines if who not in NEEDED or find_spec(NEEDED[who])]
        calls = {who: call(who, lines[who]) for who in possible}
        for warm_up in calls.values():  # reads files from disk and fills the cache of programs
            warm_up()
        repeats = in_turns(calls, settings.repeats)
    seconds = {
        who: [times.get(who, 1) * each for each in values] for who, values in _values(repeats, "seconds").items()
    }
    memory = {who: spread(values)._asdict() for who, values in _values(repeats, "peak_mib").items()}
    return {"text": text.format(**fill), **report(seconds), "peak_mib": memory}


def growth(name: str, settings: Settings) -> Entry:
    """Seconds per step of one run at each value of a sweep."""
    text, values, at = SWEEPS[name]
    points = []
    for value in values[: settings.points]:
        config, width = at(value)
        times = compare(WORK["steps"](config, width), settings.seconds, settings.repeats, {"ours": width, "xla": width})
        points.append({"value": value, **times})
        jax.clear_caches()
    return {"text": text, "points": points}


def _values(repeats: Mapping[str, list[dict[str, float]]], key: str) -> dict[str, list[float]]:
    return {who: [each[key] for each in every] for who, every in repeats.items()}


MEASUREMENTS: dict[str, Callable[[Settings], Entry]] = {
    "peak": peak,
    "same_loss": same_loss,
    **{name: partial(case, name) for name in CASES},
    **{f"compile_{name}": partial(compilation, name) for name in COMPILED},
    **{name: partial(command, name) for name in COMMANDS},
    **{name: partial(growth, name) for name in SWEEPS},
    **llc.MEASURED,
    **llc_any_model.MEASURED,
    **development.MEASURED,
    **looking_inside.MEASURED,
    **curriculum.MEASURED,
}
