"""Measures how far a run and known algorithms are from one another, on the same test tasks.

python -m analysis.algorithm_distance --run DIR [--snapshots]

cosine      of the sensitivities d prediction / d x_query, mean over tasks; of a sequence, those of its last pair
difference  mean |prediction - other's prediction|
loss_ratio  loss / other's loss

What a family's models are compared with is `analysis.compared`'s. The turn is the step from which a transformer is
nearer to one algorithm than to another for good. Writes algorithm_distance.csv and figures.
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
from icl_lab.analysis.compared import HALF, Compared, compared, load
from icl_lab.analysis.loaded_run import LoadedRun
from icl_lab.analysis.shifts import replaced_labels
from icl_lab.baselines.comparison import SMALLEST_NORM, last_sensitivity, sensitivity
from icl_lab.families.languages.config import LanguagesConfig
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
CHUNK = 256  # sequences whose responses are computed at once
OF_LANGUAGES = "model"  # the model's rows in the matrix that a run of languages writes

Value = tuple[float, float]  # with its standard error over tasks


class Response(NamedTuple):
    """What a predictor does on B tasks: predictions [B] or [B, Q], sensitivities [B, D] or [B, Q, D], float64."""

    predictions: np.ndarray
    sensitivities: np.ndarray


def response(predict: Partial, batch: Batch) -> Response:
    """The response of a predictor; one program for all arrays of a `Partial`."""
    return Response(*(np.asarray(part, np.float64) for part in _response(predict, batch)))


@jax.jit
def _response(predict: Partial, batch: Batch) -> tuple[Array, Array]:
    return predict(batch), sensitivity(predict, batch)


@jax.jit
def _response_of_sequences(predict: Partial, batch: Batch) -> tuple[Array, Array]:
    return predict(batch), last_sensitivity(predict, batch)


def responses_on(tasks: Compared, predictors: Mapping[str, Partial]) -> dict[str, Response]:
    """The responses of predictors on test tasks; sequences are taken a few at a time, as exact predictors are wide."""
    if not tasks.sequences:
        return {name: response(predict, tasks.batch) for name, predict in predictors.items()}
    starts = range(0, len(tasks.targets), CHUNK)
    parts = [jax.tree.map(lambda part, start=start: part[start : start + CHUNK], tasks.batch) for start in starts]
    responses = {}
    for name, predict in predictors.items():
        found = [_response_of_sequences(predict, part) for part in parts]
        arrays = zip(*found, strict=True)
        responses[name] = Response(*(np.concatenate(part).astype(np.float64) for part in arrays))
    return responses


def distance(one: Response, other: Response, targets: np.ndarray) -> dict[str, Value]:
    """The distances of one predictor with respect to another, with standard errors; nan where one is not defined.

    Standard errors are over tasks, each of which has its mean over queries or positions. A sensitivity that is 0 on all
    tasks has no direction. A ratio to a loss at rounding level is undefined.
    """
    same_shape(predictions=one.predictions, others=other.predictions, targets=targets)
    difference = np.abs(one.predictions - other.predictions)
    losses = [_of_tasks(0.5 * (each.predictions - targets) ** 2) for each in (one, other)]
    solved = not losses[1].mean() > SOLVED * 0.5 * np.mean(targets**2)
    return {
        "cosine": _cosine(one.sensitivities, other.sensitivities),
        "difference": mean_and_error(_of_tasks(difference)),
        "loss_ratio": UNDEFINED if solved else ratio_and_error(*losses),
    }


def _of_tasks(values: np.ndarray) -> np.ndarray:
    """The mean [B] over all but the first axis."""
    means: np.ndarray = values if values.ndim == 1 else values.reshape(len(values), -1).mean(axis=1)
    return means


def _cosine(one: np.ndarray, other: np.ndarray) -> Value:
    if not (one.any() and other.any()):
        return UNDEFINED
    norms = np.linalg.norm(one, axis=-1) * np.linalg.norm(other, axis=-1)
    return mean_and_error(_of_tasks(np.sum(one * other, axis=-1) / np.maximum(norms, SMALLEST_NORM)))


@np.errstate(over="ignore", invalid="ignore")  # non-finite values are empty fields
def matrix(loaded: LoadedRun) -> list[dict[str, Any]]:
    """Rows of the matrix of a run at its end: the transformer's and the algorithms' losses, and all pairs.

    Of linear regression the loss also with replaced labels. Of an algorithm that is not defined the reason.
    """
    tasks = compared(loaded)
    predictors = {model_name(loaded.config): loaded.predict, **defined(tasks.predictors)}
    rows = _between(tasks, predictors)
    if isinstance(loaded.config, RegressionConfig) and not loaded.config.data.file:  # labels of a file stay
        for count, losses in replaced_labels(loaded.config, predictors).items():
            measure = f"loss_replaced_{count}"
            rows += [_row(FINAL, name, "", measure, mean_and_error(each)) for name, each in losses.items()]
    reasons = {name: reason for name, reason in tasks.predictors.items() if isinstance(reason, str)}
    return rows + [_row(FINAL, name, "", "loss", UNDEFINED, reason) for name, reason in reasons.items()]


def model_name(config: Any) -> str:
    """What the model's rows are called: in runs of languages, whose training writes the matrix, another name."""
    return OF_LANGUAGES if isinstance(config, LanguagesConfig) else MODEL


@np.errstate(over="ignore", invalid="ignore")
def pairs(config: RegressionConfig, predictors: Mapping[str, Partial]) -> list[dict[str, Any]]:
    """The rows of predictors' losses on the test tasks of linear regression, and of all pairs of them."""
    batch = make_test_batch(config)
    return _between(Compared(batch, np.asarray(batch.y_query, np.float64), {}), predictors)


def _between(tasks: Compared, predictors: Mapping[str, Partial]) -> list[dict[str, Any]]:
    responses = responses_on(tasks, predictors)
    return [row for name in responses for row in against(FINAL, name, responses, tasks.targets, tasks.unit)]


@np.errstate(over="ignore", invalid="ignore")
def over_training(loaded: LoadedRun, names: Iterable[str] = ()) -> Iterator[dict[str, Any]]:
    """The transformer's rows at every snapshot of its training, with respect to the algorithms of these names, or all.

    `StoreError` if the run kept none.
    """
    tasks, model = compared(loaded, names), model_name(loaded.config)
    others: Mapping[str, Response] | None = None
    for step, checkpoint in loaded.checkpoints():
        if others is None:
            others = responses_on(tasks, defined(tasks.predictors))
        responses = {**responses_on(tasks, {model: checkpoint.predict}), **others}
        yield from (
            row for row in against(str(step), model, responses, tasks.targets, tasks.unit) if row["column"] != model
        )


def against(
    step: str, name: str, responses: Mapping[str, Response], targets: np.ndarray, unit: float = HALF
) -> Iterator[dict[str, Any]]:
    """The rows of one predictor: its loss, unit * (prediction - target)^2, and what it is with respect to each."""
    own = responses[name]
    yield _row(step, name, "", "loss", mean_and_error(_of_tasks(unit * (own.predictions - targets) ** 2)))
    for other, theirs in responses.items():
        for measure, value in distance(own, theirs, targets).items():
            yield _row(step, name, other, measure, value)


def _row(step: str, row: str, column: str, measure: str, value: Value, reason: str = "") -> dict[str, Any]:
    mean, error = (part if np.isfinite(part) else float("nan") for part in value)
    names = {"step": step, "row": row, "column": column, "measure": measure}
    return names | {"value": mean, "value_se": error, "reason": reason}


def write(loaded: LoadedRun, snapshots: bool = False) -> list[dict[str, Any]]:
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


def turn_of(loaded: LoadedRun, before: str = "gd", after: str = "gd_plus_plus") -> Turn | None:
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
    loaded = load(run)
    rows = write(loaded, flags.snapshots)
    draw_algorithm_distance(run)
    model = model_name(loaded.config)
    final = [row for row in rows if row["step"] == FINAL]
    shown = [_shown(name, final, model) for name in dict.fromkeys(row["row"] for row in final)]
    turned = turn_in(rows) if flags.snapshots else None
    if turned is not None:
        shown.append({"turn": "gd to gd_plus_plus", "step": turned.step, "half_width": turned.half_width})
    return shown


def _shown(name: str, rows: Sequence[dict[str, Any]], model: str) -> dict[str, Any]:
    """A line of what is printed: losses, also with replaced labels, and the transformer's distances."""
    reason = next((row["reason"] for row in rows if row["row"] == name and row["reason"]), None)
    if reason:
        return {"algorithm": name, NOT_DEFINED: reason}
    algorithm_rows = [row for row in rows if (row["row"], row["column"]) in ((name, ""), (model, name))]
    values = {row["measure"]: row["value"] for row in algorithm_rows if name != model or not row["column"]}
    return {"algorithm": name} | {key: value if is_number(value) else NOT_DEFINED for key, value in values.items()}


COMMAND = Command(
    "algorithm_distance",
    "Measures how far a run and known algorithms are from one another: cosines, predictions, and losses, also with "
    "replaced labels.",
    measure,
    add_flags,
)

if __name__ == "__main__":
    COMMAND.launch()
