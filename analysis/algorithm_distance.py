"""How far a transformer and the algorithms are from one another, on the same test tasks.

python -m analysis.algorithm_distance --run DIR [--snapshots]

cosine      of the sensitivities d prediction / d x_query, mean over tasks
difference  mean |prediction - other's prediction|
loss_ratio  loss / other's loss

The turn is the step from which a transformer is nearer to one algorithm than to another for good. Writes
algorithm_distance.csv and figures.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import Array
from jax.tree_util import Partial

from icl_lab.analysis.command import Command
from icl_lab.analysis.loaded_run import ComparedRun, baselines_of, load_compared
from icl_lab.analysis.shifts import replaced_labels
from icl_lab.baselines.comparison import SMALLEST_NORM, sensitivity
from icl_lab.families.regression.baselines import defined
from icl_lab.families.regression.config import RegressionConfig
from icl_lab.families.regression.task import make_test_batch
from icl_lab.lab import cli
from icl_lab.plots.algorithm_distance import draw_algorithm_distance
from icl_lab.src.batch import Batch
from icl_lab.src.checks import same_shape
from icl_lab.src.registries import MODEL
from icl_lab.src.statistics import mean_and_error, ratio_and_error
from icl_lab.store import layout
from icl_lab.store.atomic import write_csv
from icl_lab.store.readers import is_number

FINAL = "final"
SOLVED = 1e-4  # times the loss of predicting zero: smaller losses are rounding error, and ratios to them undefined
UNDEFINED = (float("nan"), float("nan"))
NOT_DEFINED = "not defined"

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
    """The distances of one predictor with respect to another, with standard errors; nan where one is not defined.

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
    algorithms = baselines_of(loaded)
    predictors = {MODEL: loaded.predict, **defined(algorithms)}
    rows = pairs(loaded.config, predictors)
    replaced = {} if loaded.config.data.file else replaced_labels(loaded.config, predictors)  # labels of a file stay
    for count, losses in replaced.items():
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
            others = {name: response(f, batch) for name, f in defined(baselines_of(loaded, names)).items()}
        responses = {MODEL: response(checkpoint.predict, batch), **others}
        yield from (row for row in against(str(step), MODEL, responses, targets) if row["column"] != MODEL)


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


class Turn(NamedTuple):
    """A turn at `step`, give or take `half_width`: half the distance of the two snapshots between which it is."""

    step: float
    half_width: float


def cosines_of(rows: Sequence[Mapping[str, object]]) -> dict[str, np.ndarray]:
    """`step` [T], and for each algorithm the cosines [T] with it, of rows of cosines as `over_training` gives them."""
    steps = list(dict.fromkeys(str(row["step"]) for row in rows))
    names = dict.fromkeys(str(row["column"]) for row in rows)
    curves = {name: np.array([row["value"] for row in rows if row["column"] == name], float) for name in names}
    return {"step": np.array(steps, int), **curves}


def turn(steps: np.ndarray, before: np.ndarray, after: np.ndarray) -> Turn | None:
    """The first step from which `after` [T] is above `before` [T] for good; None if it is not at the end.

    It is halfway between the last snapshot where it is not above and the next one. Above from the first snapshot on,
    the turn is there, with no width.
    """
    same_shape(steps=steps, before=before, after=after)
    (not_above,) = np.nonzero(~(after > before))
    if not not_above.size:
        return Turn(float(steps[0]), 0.0)
    last = int(not_above[-1])
    if last == len(steps) - 1:
        return None
    low, high = float(steps[last]), float(steps[last + 1])
    return Turn((low + high) / 2, (high - low) / 2)


def turn_in(rows: Sequence[dict[str, object]], before: str = "gd", after: str = "gd_plus_plus") -> Turn | None:
    """`turn_of` of rows of algorithm_distance.csv; None too where one of the two is not defined."""
    curves = cosines_of([row for row in rows if row["measure"] == "cosine" and row["step"] != FINAL])
    return turn(curves["step"], curves[before], curves[after]) if {before, after} <= curves.keys() else None


def turn_of(loaded: ComparedRun, before: str = "gd", after: str = "gd_plus_plus") -> Turn | None:
    """The turn of a run with snapshots: from where on it is nearer to one algorithm than to another for good."""
    return turn_in([*over_training(loaded, (before, after))], before, after)


def add_flags(parser: cli.Parser) -> None:
    """Whether training is followed too."""
    parser.add_argument(
        "--snapshots",
        action="store_true",
        help="measure the transformer at every snapshot of its training too (--config.snapshots=true keeps them)",
    )


def measure(run: Path, flags: argparse.Namespace) -> list[dict[str, Any]]:
    """Measures a stored run and draws the matrix; gives the transformer's part of it, robustness and the turn."""
    rows = write(load_compared(run), flags.snapshots)
    draw_algorithm_distance(run)
    final = [row for row in rows if row["step"] == FINAL]
    shown = [_shown(name, final) for name in dict.fromkeys(row["row"] for row in final)]
    turned = turn_in(rows) if flags.snapshots else None
    if turned is not None:
        shown.append({"turn": "gd to gd_plus_plus", "step": turned.step, "half_width": turned.half_width})
    return shown


def _shown(name: str, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """A line of what is printed: losses, also with replaced labels, and the transformer's distances."""
    reason = next((row["reason"] for row in rows if row["row"] == name and row["reason"]), None)
    if reason:
        return {"algorithm": name, NOT_DEFINED: reason}
    algorithm_rows = [row for row in rows if (row["row"], row["column"]) in ((name, ""), ("tf", name))]
    values = {row["measure"]: row["value"] for row in algorithm_rows if name != "tf" or not row["column"]}
    return {"algorithm": name} | {key: value if is_number(value) else NOT_DEFINED for key, value in values.items()}


COMMAND = Command(
    "algorithm_distance",
    "Measures how far a run and the algorithms are from one another: cosines, predictions, losses, replaced labels.",
    measure,
    add_flags,
)

if __name__ == "__main__":
    COMMAND.launch()
