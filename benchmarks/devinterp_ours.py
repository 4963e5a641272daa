"""Our side of `benchmarks.devinterp`: what `benchmarks.devinterp_worker` answers, by the function `icl_lab.llc`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from icl_lab.analysis.llc.any_model import llc
from icl_lab.benchmarks.devinterp_cases import SETTINGS, Ours, read
from icl_lab.benchmarks.devinterp_worker import Answer, serve


def losses_at(problem: Ours) -> Answer:
    """The loss of each sample at w*."""
    import jax
    import numpy as np

    losses = jax.jit(problem.losses)(problem.params, problem.data)
    return {"losses": np.asarray(losses, np.float64).tolist()}


def estimate(problem: Ours, seed: int, predict: bool) -> Answer:
    """An estimate, with or without its quadratic prediction: value, error and the means of the chains [C]."""
    settings: dict[str, Any] = {name: problem.settings[name] for name in SETTINGS}
    found = llc(problem.losses, problem.params, problem.data, **settings, predict=predict, seed=seed)
    means = settings["nbeta"] * found.excess.mean(axis=1)
    return {"value": found.value, "error": found.error, "means": means.tolist()}


def main(path: str) -> None:
    """Answers about the problem of a file."""
    serve({"losses": losses_at, "estimate": estimate}, read(Path(path)))
