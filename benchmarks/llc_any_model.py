"""Measures the LLC of any model: its quadratic prediction against a warm estimate, and a first call in a process."""

from __future__ import annotations

import itertools
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from icl_lab.analysis.llc.any_model import Problem, estimate, spectrum_at
from icl_lab.analysis.llc.estimator import Estimator
from icl_lab.analysis.llc.loss import split
from icl_lab.analysis.llc.settings import Settings as Setting
from icl_lab.benchmarks.cases import Settings, lsa1
from icl_lab.benchmarks.llc import against
from icl_lab.benchmarks.timing import in_turns, seconds_of, spread
from icl_lab.families.task import model_of
from icl_lab.lab.configs.run import RunConfig
from icl_lab.src.prng import key

SIZES, SAMPLES = (8, 64, 64, 1), 4096  # an MLP without biases, 4672 weights
ESTIMATE = Setting(eps=3e-5, nbeta=133.3, gamma=667.0, tasks=SAMPLES)
WARM = "a warm estimate"
COLD = """
import numpy as np, jax.numpy as jnp, icl_lab
rng, sizes = np.random.default_rng(0), (8, 64, 64, 1)
params = [rng.standard_normal(s).astype(np.float32) / s[0] ** 0.5 for s in zip(sizes[:-1], sizes[1:])]
x, y = rng.standard_normal((4096, 8)).astype(np.float32), rng.standard_normal(4096).astype(np.float32)
def loss(params, batch):
    hidden = batch[0]
    for weights in params[:-1]:
        hidden = jnp.tanh(hidden @ weights)
    return 0.5 * ((hidden @ params[-1])[:, 0] - batch[1]) ** 2
icl_lab.llc(loss, params, (x, y), nbeta=133.3, gamma=667.0, eps=3e-5, predict=False)
"""

Entry = dict[str, Any]


class Case(NamedTuple):
    """A problem and its name."""

    text: str
    problem: Problem


def mlp() -> Case:
    """The MLP as it begins, on random targets."""
    import jax.numpy as jnp

    rng = np.random.default_rng(0)
    params = [
        rng.standard_normal(shape).astype(np.float32) / np.float32(np.sqrt(shape[0]))
        for shape in itertools.pairwise(SIZES)
    ]
    x, y = rng.standard_normal((SAMPLES, SIZES[0])).astype(np.float32), rng.standard_normal(SAMPLES).astype(np.float32)

    def loss(weights: Any, batch: Any) -> Any:
        hidden = batch[0]
        for matrix in weights[:-1]:
            hidden = jnp.tanh(hidden @ matrix)
        return 0.5 * ((hidden @ weights[-1])[:, 0] - batch[1]) ** 2

    return Case("8-64-64-1 MLP", Problem(split(loss, params), (x, y), SAMPLES))


def of_run(text: str, config: RunConfig) -> Case:
    """A model of a family as it begins, on its tasks."""
    return Case(text, Estimator(config, ESTIMATE).problem(model_of(config).init(key(0))))


def prediction(case: Callable[[], Case], settings: Settings) -> Entry:
    """Seconds of the spectrum, from which every prediction follows, against those of a warm estimate without it."""
    text, problem = case()
    calls: dict[str, Callable[[], object]] = {
        "ours": lambda: spectrum_at(problem),
        WARM: lambda: estimate(problem, ESTIMATE, predict=False),
    }
    for call in calls.values():
        call()
    turns = in_turns({name: partial(seconds_of, call) for name, call in calls.items()}, settings.repeats)
    seconds = {name: spread(values)._asdict() for name, values in turns.items()}
    return {"text": f"the quadratic prediction, {text}", **against(seconds)}


def cold(settings: Settings) -> Entry:
    """CPU seconds of a first estimate in a new process, with import and compilation, against `import jax` alone."""
    programs = {"ours": COLD, "import jax": "import jax"}
    calls = {name: partial(_cpu_seconds, program) for name, program in programs.items()}
    seconds = {name: spread(values)._asdict() for name, values in in_turns(calls, settings.repeats).items()}
    return {"text": "CPU seconds of a first `icl_lab.llc` in a new process, 8-64-64-1 MLP", **against(seconds)}


def _cpu_seconds(program: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", program], check=True, env=_without_cache())
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _without_cache() -> dict[str, str]:
    return {**os.environ, "JAX_ENABLE_COMPILATION_CACHE": "false"}


MEASURED: dict[str, Callable[[Settings], Entry]] = {
    "llc_cold_mlp": cold,
    "llc_predict_mlp": partial(prediction, mlp),
    "llc_predict_lsa1": partial(prediction, lambda: of_run("lsa1", lsa1())),
}
