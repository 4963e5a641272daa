"""The step size that a model takes at each position of the context, compared with the best one there.

python -m analysis.position_steps --run DIR [--tasks N]

Position-weighted gradient descent (`baselines.position_weighted`) predicts y^ = sum_k c_k f_k, with
f_k = y_(k) x_(k).x_query.

    predicted       c of least loss on separate tasks with the training's order, noise and placement
    regressed       c of the regression of the model's predictions on f, over tasks of the evaluation's distribution
    differentiated  c_k of the regression of d y^ / d y_(k) on x_(k).x_query, over the same tasks

The last two are one for predictors of that form. Of a model that is not linear in the labels they are averages over
tasks; `variance_explained` says how much of its predictions such a step is. One linear layer on concatenated tokens
has one factor for all y_(k) x_(k).x_query, whatever its positional encoding: it reads flat where an order would reward
step sizes that differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.tree_util import Partial

from icl_lab.analysis.command import Command
from icl_lab.analysis.loaded_run import LoadedRun, load_run
from icl_lab.baselines.gradient_descent import Predictor
from icl_lab.baselines.position_weighted import best_step_sizes, expected_loss, fit_step_sizes, moments, regress
from icl_lab.families.regression.task import make_test_batch, position_steps_batch
from icl_lab.lab import cli
from icl_lab.lab.flag_types import TASKS
from icl_lab.src.batch import Batch
from icl_lab.src.checks import require, same_shape
from icl_lab.store import layout
from icl_lab.store.atomic import write_json

EXCHANGEABLE = "the positions of the training contexts are exchangeable, so all step sizes predicted are one"
BY_POSITION = ("predicted", "predicted_se", "regressed", "regressed_se", "differentiated")


def differentiated(predict: Predictor, batch: Batch) -> np.ndarray:
    """c_k = sum_b d_k g_k / sum_b g_k^2 [N], d_k = d y^ / d y_(k) and g_k = x_(k).x_query of each task."""
    derivatives, towards = (
        np.asarray(part, np.float64) for part in _derivatives(Partial(predict), jax.tree.map(jnp.asarray, batch))
    )
    steps: np.ndarray = np.sum(derivatives * towards, axis=0) / np.sum(towards**2, axis=0)
    return steps


@jax.jit
def _derivatives(predict: Partial, batch: Batch) -> tuple[Array, Array]:
    """d y^ / d y_(k) and x_(k).x_query, each [B, N]."""
    derivatives = jax.grad(lambda y: jnp.sum(predict(batch._replace(y=y))))(batch.y)
    return derivatives, jnp.einsum("bnd,bd->bn", batch.x, batch.x_query)


_predictions = jax.jit(lambda predict, batch: predict(batch))


def read_step_sizes(predict: Predictor, batch: Batch) -> dict[str, Any]:
    """The step sizes that a predictor takes, by both readings, and the share of its predictions that they explain."""
    predictions = np.asarray(_predictions(Partial(predict), batch), np.float64)
    regression, flat = regress(batch, predictions), moments(batch, predictions).flat
    unexplained = 2 * float(expected_loss(flat, fit_step_sizes(flat)))
    return {
        "regressed": regression.step_sizes,
        "regressed_se": regression.standard_errors,
        "differentiated": differentiated(predict, batch),
        "variance_explained": regression.r2,
        "variance_explained_by_one_step_size": 1 - unexplained / float(flat.square) if flat.square > 0 else np.nan,
    }


def agreement(read: np.ndarray, predicted: np.ndarray) -> dict[str, float]:
    """How far step sizes read are from those predicted, over positions.

    r2 = 1 - sum (read - predicted)^2 / sum (predicted - their mean)^2: 1 where they agree, 0 for the mean at every
    position; rms is the root mean squared difference.
    """
    same_shape(read=read, predicted=predicted)
    squares = np.sum((read - predicted) ** 2)
    spread = np.sum((predicted - predicted.mean()) ** 2)
    return {"r2": float(1 - squares / spread), "rms": float(np.sqrt(squares / len(predicted)))}


def position_steps(loaded: LoadedRun, tasks: int | None = None) -> dict[str, Any]:
    """The step sizes of a run of linear regression, predicted and read; `ConfigError` for fewer tasks than positions.

    `tasks` are drawn as the test set is, which is taken if not given.
    """
    loaded.config.data.check_drawn("position_steps")
    config = loaded.config if tasks is None else replace(loaded.config, test_tasks=tasks)
    pairs = config.data.num_pairs
    for name in ("test_tasks", "step_size_tasks"):
        count = getattr(config, name)
        require(count > pairs, f"{count} tasks are too few to fit {pairs} step sizes; {name} must be above {pairs}")
    predicted = best_step_sizes(position_steps_batch(config, config.train))
    read = read_step_sizes(loaded.predict, make_test_batch(config))
    values = {
        "tasks": config.test_tasks,
        "fitted_tasks": config.step_size_tasks,
        "predicted": predicted.step_sizes,
        "predicted_se": predicted.standard_errors,
        **read,
    }
    for name in ("regressed", "differentiated"):
        scores = agreement(read[name], predicted.step_sizes)
        values |= {f"{name}_{key}": value for key, value in scores.items()}
    if config.train.exchangeable:
        values |= {"regressed_r2": None, "differentiated_r2": None, "reason": EXCHANGEABLE}
    return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in values.items()}


def write(loaded: LoadedRun, tasks: int | None = None) -> dict[str, Any]:
    """Writes position_steps.json."""
    values = position_steps(loaded, tasks)
    write_json(loaded.run / layout.POSITION_STEPS, values)
    return values


def add_flags(parser: cli.Parser) -> None:
    """How many tasks."""
    parser.add_argument(
        "--tasks", type=TASKS, help="number of tasks to draw like the test set (default: the test set itself)"
    )


def _rows(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A row for each position, then how well predictions and step sizes are explained."""
    positions = range(len(values["predicted"]))
    rows = [{"position": place + 1} | {name: values[name][place] for name in BY_POSITION} for place in positions]
    single = {name: value for name, value in values.items() if name not in BY_POSITION}
    return [*rows, *({name: "not defined" if value is None else value} for name, value in single.items())]


COMMAND = Command(
    "position_steps",
    "Reads the step size that a model takes at each position, and compares it with the best one there.",
    lambda run, flags: _rows(write(load_run(run), flags.tasks)),
    add_flags,
)

if __name__ == "__main__":
    COMMAND.launch()
