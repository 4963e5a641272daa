"""The loss of gradient descent after every step, by a rule for its step size, and of the references: gd_metrics.json.

A rule is given the problem and returns a `Descent`: the function from a batch and a start [B, D] to losses [T, B] after
every step, and what is worth saying about the sizes it uses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from icl_lab.baselines.iterations import descent, normal_equations, power_iteration, steepest_descent
from icl_lab.baselines.linear_mmse import bayes_penalty, ridge_weights
from icl_lab.baselines.loss_curves import facts, over_tasks, path_losses, reference_losses, summary, unstable_share
from icl_lab.src.batch import Batch
from icl_lab.src.data_config import QueriesData
from icl_lab.src.one_step import one_step_size
from icl_lab.src.precision import use_highest_precision
from icl_lab.src.queries import task_chunks

DAMPING = 0.75  # of the closed-form step: undamped it diverges on 8 % of the tasks of 20 pairs in 20 dimensions
GRID = np.linspace(0.1, 1.3, 49)  # of the lower envelope, in units of the closed-form step


class Problem(NamedTuple):
    """What a rule may know: the evaluated tasks (their distribution, seed and number), steps, damping, start(batch)."""

    data: QueriesData
    seed: int
    num_tasks: int
    steps: int
    damping: float | None
    start: Callable[[Batch], Array]


class Descent(NamedTuple):
    """losses(batch, start) -> [T, B]; facts for the file."""

    losses: Callable[[Batch, Array], Array]
    facts: dict[str, Any]


def one_step(problem: Problem) -> Descent:
    """c = damping c*, with c* of least loss after one step in closed form (`one_step_size`); damping .75 by default."""
    damping = DAMPING if problem.damping is None else problem.damping
    c = damping * one_step_size(problem.data)
    return Descent(_fixed(problem.steps, c), {"damping": damping, "step_sizes": c})


def spectral(problem: Problem) -> Descent:
    """c = damping / lambda_max of each task's own S, by power iteration; damping 1 by default."""
    damping = 1.0 if problem.damping is None else problem.damping

    def losses(batch: Batch, start: Array) -> Array:
        normal = normal_equations(batch)
        return path_losses(descent(normal, damping / power_iteration(normal.scatter), problem.steps, start), batch)

    return Descent(losses, {"damping": damping, "step_sizes": "damping / lambda_max of each task"})


def spectral_set(problem: Problem) -> Descent:
    """c = damping / the largest lambda_max of all tasks evaluated: one step size that is safe on each of them."""
    damping = 1.0 if problem.damping is None else problem.damping

    def largest(batch: Batch) -> dict[str, Array]:
        return {"lambda": power_iteration(normal_equations(batch).scatter)[None]}

    largest_of_all = float(over_tasks(largest, problem.data, problem.seed, problem.num_tasks)["lambda"].max())
    c = damping / largest_of_all
    return Descent(_fixed(problem.steps, c), {"damping": damping, "step_sizes": c, "lambda_max": largest_of_all})


def envelope(problem: Problem) -> Descent:
    """The lower envelope of a grid: after t steps, the loss of t steps of the constant c that is best for that t.

    It is chosen on the evaluated tasks themselves: a bound, which no one constant step size attains at every t.
    """
    grid = jnp.asarray(GRID * one_step_size(problem.data), jnp.float32)

    def all_losses(batch: Batch, sizes: Array) -> Array:
        start = problem.start(batch)
        grid_losses: Array = lax.map(lambda c: _fixed(problem.steps, c)(batch, start), sizes)
        return grid_losses

    totals = np.zeros((len(GRID), problem.steps))
    compiled = jax.jit(all_losses)
    for batch, count in task_chunks(problem.data, problem.seed, problem.num_tasks):
        totals += np.asarray(compiled(batch, grid), np.float64)[:, :, :count].sum(axis=2)
    used, choice = np.unique(np.nan_to_num(totals, nan=np.inf).argmin(axis=0), return_inverse=True)

    def losses(batch: Batch, _: Array) -> Array:
        return all_losses(batch, grid[used])[choice, jnp.arange(problem.steps)]

    return Descent(losses, {"step_sizes": np.asarray(grid)[used][choice].tolist()})


def line_search(problem: Problem) -> Descent:
    """Exact line search on each task's context loss, a step size for every task and step."""

    def losses(batch: Batch, start: Array) -> Array:
        return path_losses(steepest_descent(normal_equations(batch), problem.steps, start), batch)

    return Descent(losses, {"step_sizes": "exact line search on each context"})


RULES: Mapping[str, Callable[[Problem], Descent]] = {
    rule.__name__: rule for rule in (one_step, spectral, spectral_set, envelope, line_search)
}


def _fixed(steps: int, c: float | Array) -> Callable[[Batch, Array], Array]:
    """Losses of descent with one step size for all tasks."""

    def losses(batch: Batch, start: Array) -> Array:
        step_size = jnp.broadcast_to(jnp.asarray(c, batch.w.dtype), batch.w.shape[:1])
        return path_losses(descent(normal_equations(batch), step_size, steps, start), batch)

    return losses


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
