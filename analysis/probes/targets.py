"""What linear probes look for: quantities of a context, as a row of tokens can know them.

A row sees some pairs: in a stack all of the context's, in a decoder those up to its own place. With these X, y

    w                         the context's task
    gradient                  X^T y, the first step of gradient descent from 0 over its step size
    least_squares             the weights of least squares, of minimum norm
    gd                        w_k, after k steps of gradient descent from 0: k layers, unless steps are given
    residual                  y_i - w_k.x_i: of the row's own pair, or of all that it sees where none is its own
    noise_mask                whether the pair was corrupted, of the same pairs
    y_query                   the label of the row's query, and predictions of it:
    least_squares_prediction  least squares' w.x_query
    gd_prediction             w_k.x_query

In a layer of linear attention, rows hold products with their own input. A constructed layer's query row has
-c x_query.X^T y: `gd_prediction` is linear in it, and the vector X^T y is not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from icl_lab.analysis.probes.scores import CONSTANT, varying
from icl_lab.src.batch import Batch

WEIGHTS = ("w", "gradient", "least_squares", "gd")
MASK = "noise_mask"
PAIRS = ("residual", MASK)
PREDICTIONS = ("y_query", "least_squares_prediction", "gd_prediction")
TARGETS = (*WEIGHTS, *PAIRS, *PREDICTIONS)
BY_STEPS = ("gd", "residual", "gd_prediction")
NO_PAIRS, NO_QUERY = "the row sees no complete pair", "the row is not a query's"


class Row(NamedTuple):
    """A row of tokens: how many pairs it sees with their labels, which pair is its own, and which query."""

    seen: int
    own: int | None = None
    query: int | None = None


class Target(NamedTuple):
    """A target by its name and, where it depends on them, the steps of gradient descent."""

    name: str
    steps: int | None = None


@dataclass(frozen=True, eq=False)
class Contexts:
    """B contexts in float64, of a step size of gradient descent; weights are kept once they are computed."""

    batch: Batch
    step_size: float
    corrupted: np.ndarray | None = None  # bool [B, N]
    kept: dict[tuple[str, int, int], np.ndarray] = field(default_factory=dict)

    def weights(self, name: str, seen: int, steps: int) -> np.ndarray:
        """Weights [B, D] of the first `seen` pairs."""
        key = (name, seen, steps if name == "gd" else 0)
        if key not in self.kept:
            x, y = (np.asarray(part, np.float64)[:, :seen] for part in (self.batch.x, self.batch.y))
            self.kept[key] = self._weights(name, x, y, steps)
        return self.kept[key]

    def _weights(self, name: str, x: np.ndarray, y: np.ndarray, steps: int) -> np.ndarray:
        if name == "gradient":
            return np.asarray(np.einsum("bnd,bn->bd", x, y))
        if name == "least_squares":
            return np.asarray(np.einsum("bdn,bn->bd", np.linalg.pinv(x), y))
        w = np.zeros((len(x), x.shape[2]))
        for _ in range(steps):
            w = w + self.step_size * np.einsum("bnd,bn->bd", x, y - np.einsum("bnd,bd->bn", x, w))
        return w

    def query(self, row: Row) -> tuple[np.ndarray, np.ndarray]:
        """The input [B, D] and the label [B] of a row's query."""
        x, y = (np.asarray(part, np.float64) for part in (self.batch.x_query, self.batch.y_query))
        return (x, y) if y.ndim == 1 else (x[:, row.query], y[:, row.query])

    def tokens(self, row: Row) -> np.ndarray:
        """All numbers of the tokens that a row sees, its own among them: [B, F]."""
        x, y = (np.asarray(part, np.float64)[:, : row.seen] for part in (self.batch.x, self.batch.y))
        parts = [x.reshape(len(x), -1), y]
        return np.concatenate(parts if row.query is None else [*parts, self.query(row)[0]], axis=1)

    def target(self, target: Target, row: Row) -> np.ndarray | str:
        """A target [B, C] at a row, or why it has none there."""
        values = self._target(target, row)
        if isinstance(values, np.ndarray) and not varying(values).any():
            return CONSTANT
        return values

    def _target(self, target: Target, row: Row) -> np.ndarray | str:
        name, steps = target.name, target.steps or 0
        if name == "w":
            return np.asarray(self.batch.w, np.float64)
        if name in PREDICTIONS and row.query is None:
            return NO_QUERY
        if name == "y_query":
            return self.query(row)[1][:, None]
        if row.seen == 0:
            return NO_PAIRS
        if name in PREDICTIONS:
            weights = self.weights(name.removesuffix("_prediction"), row.seen, steps)
            return np.asarray(np.einsum("bd,bd->b", weights, self.query(row)[0]))[:, None]
        return self._of_pairs(name, row, steps) if name in PAIRS else self.weights(name, row.seen, steps)

    def _of_pairs(self, name: str, row: Row, steps: int) -> np.ndarray:
        own = slice(row.seen) if row.own is None else slice(row.own, row.own + 1)
        if name == MASK:
            assert self.corrupted is not None
            return self.corrupted[:, own]
        x, y = (np.asarray(part, np.float64)[:, own] for part in (self.batch.x, self.batch.y))
        return np.asarray(y - np.einsum("bnd,bd->bn", x, self.weights("gd", row.seen, steps)))


def predicts_every_pair(batch: Batch) -> bool:
    """Whether each pair is a query, as of a decoder."""
    return batch.x_query.shape == batch.x.shape and np.array_equal(batch.x_query, batch.x)


def rows_of(batch: Batch, count: int) -> list[Row]:
    """What each of so many rows of tokens is, by the shapes of a batch and, of a decoder's, its queries being x."""
    pairs, queries = batch.x.shape[1], 1 if batch.x_query.ndim == 2 else batch.x_query.shape[1]
    if count == 2 * pairs and predicts_every_pair(batch):
        halves = ((Row(pair, None, pair), Row(pair + 1, pair, None)) for pair in range(pairs))
        return [row for both in halves for row in both]
    before = count - queries
    of_a_pair = before // pairs if before % pairs == 0 else 0
    owners = [row // of_a_pair if of_a_pair else None for row in range(before)]
    return [*(Row(pairs, own) for own in owners), *(Row(pairs, None, query) for query in range(queries))]


def asked(names: Sequence[str], steps: Sequence[int]) -> list[Target]:
    """The targets of these names, those that depend on steps at each number of them."""
    each = [[Target(name, k) for k in steps] if name in BY_STEPS else [Target(name)] for name in names]
    return [target for part in each for target in part]


def parted(targets: Mapping[Target, np.ndarray]) -> list[dict[Target, np.ndarray]]:
    """Targets that are numbers, and those that are flags: each kind is fitted together."""
    kinds = [{t: v for t, v in targets.items() if (v.dtype == bool) == flags} for flags in (False, True)]
    return [kind for kind in kinds if kind]
