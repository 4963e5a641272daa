"""How far a transformer and the algorithms are from one another, on the same test tasks.

cosine      of the sensitivities d prediction / d x_query, mean over tasks
difference  mean |prediction - other's prediction|
loss_ratio  loss / other's loss
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import Array
from jax.tree_util import Partial

from icl_lab.analysis.compared_run import ComparedRun
from icl_lab.analysis.measures.algorithms import TF, algorithms_of, defined
from icl_lab.analysis.measures.shifts import replaced_labels
from icl_lab.baselines.comparison import SMALLEST_NORM, sensitivity
from icl_lab.families.regression.config import RegressionConfig
from icl_lab.families.regression.task import make_test_batch
from icl_lab.src.batch import Batch
from icl_lab.src.checks import same_shape
from icl_lab.src.statistics import mean_and_error, ratio_and_error
from icl_lab.store import layout
from icl_lab.store.atomic import write_csv

FINAL = "final"
SOLVED = 1e-4  # times the loss of predicting zero: smaller losses are rounding error, and ratios to them undefined
UNDEFINED = (float("nan"), float("nan"))

Value = tuple[float, float]  # with its standard error over tasks


class Response(NamedTuple):
    """What a predictor does on B tasks: predictions [B] and sensitivities [B, D], float64."""

    predictions: np.ndarray
    sensitivities: np.ndarray


def response(predict: Partial, batch: Batch) -> Response:
    """The response of a predictor; one program for all arrays of a `Partial`."""
    return Response(*(np.asarray(part, np.float64) for part in _response(predict, batch)))


@jax.jit
def _response(predict: Partial, batch: Batch) -> tuple[Array, Array]:
    return predict(batch), sensitivity(predict, batch)


def distance(one: Response, other: Response, targets: np.ndarray) -> dict[str, Value]:
    """The measures of one predictor with respect to another, with standard errors; nan where one is not defined.

    A sensitivity that is 0 on all tasks has no direction. A ratio to a loss at rounding level is undefined.
    """
    same_shape(predictions=one.predictions, others=other.predictions, targets=targets)
    difference = np.abs(one.predictions - other.predictions)
    losses = [0.5 * (each.predictions - targets) ** 2 for each in (one, other)]
    solved = not losses[1].mean() > SOLVED * 0.5 * np.mean(targets**2)
    return {
        "cosine": _cosine(one.sensitivities, other.sensitivities),
        "difference": mean_and_error(difference),
        "loss_ratio": UNDEFINED if solved else ratio_and_error(*losses),
    }


def _cosine(one: np.ndarray, other: np.ndarray) -> Value:
    if not (one.any() and other.any()):
        return UNDEFINED
    norms = np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)
    return mean_and_error(np.sum(one * other, axis=1) / np.maximum(norms, SMALLEST_NORM))


@np.errstate(over="ignore", invalid="ignore")  # non-finite values are empty fields
def matrix(loaded: ComparedRun) -> list[dict[str, Any]]:
    """Rows of the matrix of a run at its end: the transformer's and the algorithms' losses, and all pairs.

    The loss also with replaced labels. Of an algorithm that is not defined the reason.
    """
    algorithms = algorithms_of(loaded)
    predictors = {TF: loaded.predict, **defined(algorithms)}
    rows = pairs(loaded.config, predictors)
    for count, losses in replaced_labels(loaded.config, predictors).items():
        rows += [_row(FINAL, name, "", f"loss_replaced_{count}", mean_and_error(each)) for name, each in losses.items()]
    reasons = {name: reason for name, reason in algorithms.items() if isinstance(reason, str)}
    return rows + [_row(FINAL, name, "", "loss", UNDEFINED, reason) for name, reason in reasons.items()]


@np.errstate(over="ignore", invalid="ignore")
def pairs(config: RegressionConfig, predictors: Mapping[str, Partial]) -> list[dict[str, Any]]:
    """The rows of predictors' losses on the test tasks, and of all pairs of them."""
    batch = make_test_batch(config)
    targets = np.asarray(batch.y_query, np.float64)
    responses = {name: response(predict, batch) for name, predict in predictors.items()}
    return [row for name in responses for row in against(FINAL, name, responses, targets)]


@np.errstate(over="ignore", invalid="ignore")
def over_training(loaded: ComparedRun, names: Iterable[str] = ()) -> Iterator[dict[str, Any]]:
    """The transformer's rows at every snapshot of its training, with respect to the algorithms of these names, or all.

    `StoreError` if the run kept none.
    """
    batch = make_test_batch(loaded.config)
    targets = np.asarray(batch.y_query, np.float64)
    others: Mapping[str, Response] | None = None
    for step, checkpoint in loaded.checkpoints():
        if others is None:
            others = {name: response(f, batch) for name, f in defined(algorithms_of(loaded, names)).items()}
        responses = {TF: response(checkpoint.predict, batch), **others}
        yield from (row for row in against(str(step), TF, responses, targets) if row["column"] != TF)


def against(step: str, name: str, responses: Mapping[str, Response], targets: np.ndarray) -> Iterator[dict[str, Any]]:
    """The rows of one predictor: its loss, and what it is with respect to each."""
    own = responses[name]
    yield _row(step, name, "", "loss", mean_and_error(0.5 * (own.predictions - targets) ** 2))
    for other, theirs in responses.items():
        for measure, value in distance(own, theirs, targets).items():
            yield _row(step, name, other, measure, value)


def _row(step: str, row: str, column: str, measure: str, value: Value, reason: str = "") -> dict[str, Any]:
    mean, error = (part if np.isfinite(part) else float("nan") for part in value)
    names = {"step": step, "row": row, "column": column, "measure": measure}
    return names | {"value": mean, "value_se": error, "reason": reason}


def write(loaded: ComparedRun, snapshots: bool = False) -> list[dict[str, Any]]:
    """Writes algorithm_distance.csv: the matrix, and with `snapshots` the transformer's rows over training."""
    rows = [*(over_training(loaded) if snapshots else ()), *matrix(loaded)]
    write_csv(loaded.run / layout.ALGORITHM_DISTANCE, rows)
    return rows
