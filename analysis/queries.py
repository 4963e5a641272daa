"""Contexts of one's own as queries, and what a run, a function or an array predicts for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from icl_lab.analysis.run import Run
from icl_lab.families.own_arrays import batch_from_arrays
from icl_lab.src.batch import Batch
from icl_lab.src.checks import require

# In a model's place: a run, a function (x, y, x_query) -> predictions, or predictions
Predicts: TypeAlias = "Run | Callable[..., Any] | ArrayLike"


class Queries(NamedTuple):
    """R queries, each after some pairs of a context, as a batch for baselines that are sums over pairs.

    batch: R contexts, the pairs that a query does not see being zero. of, position [R]: which context it is of,
    and how many pairs it sees. x [B, N, D], y [B, N], x_query [B, D]: the contexts themselves; x_query is None where
    each pair but the first is a query.
    """

    batch: Batch
    of: np.ndarray
    position: np.ndarray
    x: np.ndarray
    y: np.ndarray
    x_query: np.ndarray | None

    @property
    def contexts(self) -> int:
        """B."""
        return len(self.x)

    def cut(self) -> Iterator[Batch]:
        """The contexts with the pairs that a query sees alone, [B] for each position; where each pair is a query."""
        x, y, w = self.x, self.y, np.asarray(self.batch.w)[:: self.x.shape[1] - 1]
        for seen in range(1, x.shape[1]):
            parts: tuple[Any, ...] = (x[:, :seen], y[:, :seen], x[:, seen], y[:, seen], w)
            yield Batch(*parts)


def queries_of(
    x: ArrayLike, y: ArrayLike, x_query: ArrayLike | None, y_query: ArrayLike | None, every_position: bool
) -> Queries:
    """The queries of contexts: one for each, the last pair where none is given; or each pair but the first."""
    require(
        x_query is None or y_query is not None,
        "x_query is given without y_query; losses need the labels of the queries",
    )
    require(not (every_position and x_query is not None), "every pair is already a query; leave x_query out")
    if not every_position:
        batch = batch_from_arrays(x, y, x_query, y_query)
        count, pairs, _ = batch.x.shape
        parts = (np.asarray(part) for part in (batch.x, batch.y, batch.x_query))
        return _checked(Queries(batch, np.arange(count), np.full(count, pairs), *parts))
    whole = batch_from_arrays(x, y, sequences=True)
    pairs_x, pairs_y = np.asarray(whole.x), np.asarray(whole.y)
    count, length, dim = pairs_x.shape
    require(length > 1, "the contexts have only one pair; a query needs at least one pair before it")
    seen = np.arange(length - 1) < np.arange(1, length)[:, None]  # [position, pair]
    before_x = np.where(seen[None, :, :, None], pairs_x[:, None, :-1], 0).reshape(-1, length - 1, dim)
    before_y = np.where(seen[None], pairs_y[:, None, :-1], 0).reshape(-1, length - 1)
    w = np.repeat(np.asarray(whole.w), length - 1, axis=0)
    rows: tuple[Any, ...] = (before_x, before_y, pairs_x[:, 1:].reshape(-1, dim), pairs_y[:, 1:].reshape(-1), w)
    position = np.tile(np.arange(1, length), count)
    of = np.repeat(np.arange(count), length - 1)
    return _checked(Queries(Batch(*rows), of, position, pairs_x, pairs_y, None))


def _checked(queries: Queries) -> Queries:
    require(queries.contexts > 1, "there is only one context; standard errors over contexts need at least two")
    return queries


def predicts_every_position(model: Any, y: ArrayLike | None = None) -> bool:
    """Whether a model predicts at every position: a decoder's run, or an array with a prediction for each label."""
    if isinstance(model, Run):
        return model.contexts()[2]
    return not callable(model) and np.ndim(model) == 2 and y is not None and np.shape(model) == np.shape(y)


def predicted(name: str, model: Predicts, queries: Queries) -> np.ndarray:
    """The predictions [R] of a run, a function or an array, in float64; `ConfigError` for other shapes, and nan."""
    values: Any
    if isinstance(model, Run):
        values = model.predict(queries.x, queries.y, queries.x_query)
    else:
        values = _called(model, queries) if callable(model) else model
    whole = np.asarray(values, np.float64)
    if queries.x_query is None and whole.shape == queries.y.shape:
        whole = whole[:, 1:].reshape(-1)
    expected = queries.of.shape
    require(whole.shape == expected, f"{name} gives predictions of shape {whole.shape}; it must be {expected}")
    missing = int(np.count_nonzero(~np.isfinite(whole)))
    require(missing == 0, f"{name} gives {missing} predictions that are not finite")
    return whole


def _called(function: Callable[..., Any], queries: Queries) -> Any:
    if queries.x_query is not None:
        return function(queries.x, queries.y, queries.x_query)
    each = [np.asarray(function(batch.x, batch.y, batch.x_query)) for batch in queries.cut()]
    count = queries.contexts
    fits = all(found.shape == (count,) for found in each)
    require(fits, f"a function must give {count} predictions, one per context")
    return np.stack(each, axis=1).reshape(-1)
