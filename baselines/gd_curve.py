"""The loss of gradient descent after every step on a distribution of tasks, and of the references: gd_metrics.json."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from icl_lab.baselines.linear_mmse import bayes_penalty, ridge_weights
from icl_lab.baselines.loss_curves import facts, over_tasks, path_losses, reference_losses, summary, unstable_share
from icl_lab.baselines.step_sizes import RULES, Problem
from icl_lab.src.batch import Batch
from icl_lab.src.data_config import QueriesData
from icl_lab.src.precision import use_highest_precision


@np.errstate(over="ignore", invalid="ignore")  # the caller handles non-finite values
def gd_curve(
    data: QueriesData,
    seed: int,
    num_tasks: int,
    steps: int,
    step_size: str = "one_step",
    damping: float | None = None,
    start: str = "zero",
    penalty: float | None = None,
) -> dict[str, Any]:
    """Losses after steps 1 to T of gradient descent by a rule of `RULES`, from zero or from ridge regression.

    `penalty` is that ridge's, Bayes' if None. The tasks are those a run of the same seed is evaluated on.
    """
    use_highest_precision()
    penalty = bayes_penalty(data) if penalty is None else penalty

    def start_of(batch: Batch) -> Array:
        return ridge_weights(batch, penalty) if start == "ridge" else jnp.zeros_like(batch.w)

    rule = RULES[step_size](Problem(data, seed, num_tasks, steps, damping, start_of))

    def losses_of(batch: Batch) -> dict[str, Array]:
        first = start_of(batch)
        descent_losses = {"gd": rule.losses(batch, first), "start": path_losses(first[None], batch)}
        return descent_losses | reference_losses(batch, data, steps)

    losses = over_tasks(losses_of, data, seed, num_tasks)
    gd, first = losses.pop("gd"), losses.pop("start")
    return {
        "steps": steps,
        **summary(gd),
        "unstable_share": unstable_share(gd, losses["zero"]),
        "step_size": step_size,
        **rule.facts,
        "start": {"from": start, **({"penalty": penalty} if start == "ridge" else {}), **summary(first)},
        "references": {name: summary(values) for name, values in losses.items()},
        **facts(data, seed, num_tasks),
    }
