"""Evaluates a run, and all baselines that are defined, on contexts of your own.

python -m analysis.evaluate --run RUN --data FILE [--estimate]

Loss is half the squared error of a query's label; means are over contexts, with their standard errors, and the ratio is
the model's loss over a baseline's on the same contexts. A baseline that has to know what is not given is not defined,
and the table has the reason. `--estimate` takes it from the training contexts or, if there are none, from the pairs
that are evaluated, as second moments (`baselines.estimated`).
Writes analysis/evaluate.csv, a row for each query, and analysis/evaluate.json.
"""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from icl_lab.analysis.command import Command
from icl_lab.analysis.queries import Predicts, Queries, predicted, predicts_every_position, queries_of
from icl_lab.analysis.registered import FITTED, registered
from icl_lab.analysis.run import Run
from icl_lab.families.own_data import SPLITS, OwnData, read, take
from icl_lab.families.own_sets import Sets, holds_contexts_of, sets_of
from icl_lab.families.regression.config import RegressionConfig
from icl_lab.lab import cli
from icl_lab.lab.guest import as_guest
from icl_lab.src.checks import require, size
from icl_lab.src.registries import BASELINES
from icl_lab.src.statistics import mean_and_error, ratio_and_error
from icl_lab.store import layout
from icl_lab.store.atomic import write_csv, write_json
from icl_lab.store.outputs import in_path

if TYPE_CHECKING:
    import pandas as pd

MODEL = "model"  # the row of what is evaluated
CONVENTION = "loss: half the squared error, mean over contexts; ratio: the model's over it"


class Evaluation(NamedTuple):
    """`table`: a row for the model and each baseline. `contexts`: a row for each query, with predictions and losses.

    facts: what the baselines were given, such as step sizes, and where each value comes from.
    """

    table: pd.DataFrame
    contexts: pd.DataFrame
    facts: Mapping[str, Any]

    def by_position(self) -> pd.DataFrame:
        """The mean losses by the number of pairs before the query."""
        losses = [name for name in self.contexts.columns if name.endswith("_loss")]
        return self.contexts.groupby("position")[losses].mean()

    def __repr__(self) -> str:
        defined = self.table[self.table["reason"] == ""].drop(columns="reason")
        lines = [f"{name} is not defined: {why}" for name, why in self.table["reason"].items() if why]
        return "\n".join([defined.to_string(float_format="%.4g", na_rep=""), CONVENTION, *lines])

    def _repr_html_(self) -> str:
        return f"{self.table.to_html(float_format='%.4g', na_rep='')}<p>{CONVENTION}</p>"


def evaluate(
    model: Predicts,
    x: ArrayLike,
    y: ArrayLike,
    x_query: ArrayLike | None = None,
    y_query: ArrayLike | None = None,
    *,
    baselines: Mapping[str, Callable[..., Any]] | None = None,
    training: Sequence[ArrayLike] | None = None,
    estimate: bool = False,
    steps: int | None = None,
) -> Evaluation:
    """Compares a model with all baselines defined on contexts x [B, N, D], y [B, N], x_query [B, D], y_query [B].

    model: a run, a function (x, y, x_query) -> predictions [B], or an array of predictions. Without x_query the last
    pair of each context is the query; for a decoder's run, and an array [B, N], each pair but the first is a query.
    baselines: further functions, by name. training: contexts (x, y[, x_query, y_query]) on which a step size is fitted,
    and with `estimate` what baselines would have to know. steps: how many steps iterative baselines take, 1
    by default; a regression run sets its own. `ConfigError` for what has other shapes, for nan and for a single
    context.
    """
    if steps is not None:
        size("steps", steps)
        alone = not isinstance(getattr(model, "config", None), RegressionConfig)
        require(alone, "a regression run already sets how many steps baselines take; leave steps out")
    for name in baselines or {}:
        require(name not in (MODEL, FITTED, *BASELINES), f"{name} is the name of a baseline already; take another")
    queries = queries_of(x, y, x_query, y_query, x_query is None and predicts_every_position(model, y))
    fitted_on = None if training is None else _training(training, queries)
    with as_guest():
        run = model if isinstance(model, Run) else None
        found: dict[str, np.ndarray | str] = {MODEL: predicted(MODEL, model, queries)}
        for name, function in (baselines or {}).items():
            found[name] = predicted(name, function, queries)
        facts, others = registered(run, queries, fitted_on, estimate, steps)
    return _evaluation(queries, found | others, facts)


def _training(arrays: Sequence[ArrayLike], queries: Queries) -> Queries:
    """The queries of training contexts, of as many dimensions as those that are evaluated."""
    require(len(arrays) in (2, 4), f"training has {len(arrays)} arrays; it must be (x, y) or (x, y, x_query, y_query)")
    x_query, y_query = arrays[2:] or (None, None)
    every_position = queries.x_query is None and x_query is None
    training = queries_of(arrays[0], arrays[1], x_query, y_query, every_position)
    own, dim = training.x.shape[2], queries.x.shape[2]
    require(own == dim, f"training has {own} dimensions, but the contexts that are evaluated have {dim}")
    return training


# --- the tables ---


def _evaluation(queries: Queries, found: Mapping[str, np.ndarray | str], facts: Mapping[str, Any]) -> Evaluation:
    import pandas as pd

    labels = np.asarray(queries.batch.y_query, np.float64)
    predictions = {name: values for name, values in found.items() if not isinstance(values, str)}
    losses = {name: 0.5 * (values - labels) ** 2 for name, values in predictions.items()}
    columns = {"context": queries.of, "position": queries.position, "y": labels} | predictions
    contexts = pd.DataFrame(columns | {f"{name}_loss": values for name, values in losses.items()})
    by_context = {name: _by_context(values, queries) for name, values in losses.items()}
    rows = [_row(name, found[name], by_context) for name in found]
    return Evaluation(pd.DataFrame(rows).set_index("predictor"), contexts, facts)


def _by_context(losses: np.ndarray, queries: Queries) -> np.ndarray:
    """The mean over each context's queries [B]: contexts are independent, positions are not."""
    means: np.ndarray = np.bincount(queries.of, losses) / np.bincount(queries.of)
    return means


def _row(name: str, values: np.ndarray | str, losses: Mapping[str, np.ndarray]) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(("predictor", "loss", "loss_se", "ratio", "ratio_se", "reason"))
    row["predictor"] = name
    if isinstance(values, str):
        return row | {"reason": values}
    row["loss"], row["loss_se"] = mean_and_error(losses[name])
    if name != MODEL and row["loss"] > 0:
        row["ratio"], row["ratio_se"] = ratio_and_error(losses[MODEL], losses[name])
    return row | {"reason": ""}


# --- the command ---


def measure(directory: Path, flags: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Evaluates a run on the contexts of a file, and writes both tables."""
    run, data = Run(directory), read(flags.data)
    own = holds_contexts_of(str(flags.data), run.config)
    run = run.with_file(flags.data) if own else run
    most, _, sequences = run.contexts()
    tested, trained = _split(data, sets_of(run.config) if own else None)
    pairs = None if data.fixed else most
    batch, _, left_out = take(data, tested, pairs, sequences)
    least = f"{flags.data} has {len(batch.y)} contexts with the {most} pairs and the queries that {directory} takes"
    require(len(batch.y) > 1, f"{least}; at least two are needed")
    arrays = batch[:2] if sequences else batch[:4]
    training = None if trained is None else take(data, trained, pairs, sequences).batch
    told = None if training is None else training[:2] if sequences else training[:4]
    evaluation = evaluate(run, *arrays, training=told, estimate=flags.estimate)
    write(directory, evaluation, flags.data, left_out)
    for name, row in evaluation.table.iterrows():
        if row["reason"]:
            yield {name: f"not defined: {row['reason']}"}
        else:
            yield {name: "", "loss": row["loss"], "±": row["loss_se"], "ratio": row["ratio"]}


def _split(data: OwnData, own: Sets | None) -> tuple[np.ndarray, np.ndarray | None]:
    """The contexts that are evaluated, the test's, else all that are not the training's; and those of the training.

    Of a file without a split they are the run's own where it was trained on that, else all.
    """
    if own is not None:
        return own.test, own.train
    if data.split is None:
        return np.arange(len(data.lengths)), None
    train, _, test = (np.flatnonzero(data.split == code) for code in range(len(SPLITS)))
    return test if len(test) else np.flatnonzero(data.split > 0), train if len(train) > 1 else None


def write(run: Path, evaluation: Evaluation, data: Path, left_out: int) -> None:
    """Writes evaluate.csv, a row for each query, and evaluate.json: losses, reasons, facts, the file and its hash.

    left_out: how many contexts of the file have too few pairs.
    """
    digest = hashlib.sha256(data.read_bytes()).hexdigest()[:16]
    rows = evaluation.table.astype(object).where(evaluation.table.notna(), None)
    facts = {
        "loss_convention": CONVENTION,
        "data": str(data),
        "sha256": digest,
        "left_out": left_out,
        "facts": evaluation.facts,
    }
    write_json(run / layout.EVALUATION, facts | {"predictors": rows.to_dict("index")})
    write_csv(run / layout.EVALUATED_CONTEXTS, evaluation.contexts.to_dict("records"))


def add_flags(parser: cli.Parser) -> None:
    """Adds the flags: the file, and whether unknown quantities are estimated."""
    parser.add_argument(
        "--data", type=in_path, required=True, help="NPZ or CSV file of contexts, as for --data in training"
    )
    parser.add_argument(
        "--estimate",
        action="store_true",
        help="estimate from the data what baselines must know about it, such as the noise",
    )


COMMAND = Command(
    "evaluate", "Evaluates a run and all baselines that are defined on contexts of your own.", measure, add_flags
)

if __name__ == "__main__":
    COMMAND.launch()
