"""Contexts of one's own as a batch, from arrays in memory."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from icl_lab.families.own_data import of_arrays, take
from icl_lab.src.batch import Batch
from icl_lab.src.checks import require


def batch_from_arrays(
    x: ArrayLike,
    y: ArrayLike,
    x_query: ArrayLike | None = None,
    y_query: ArrayLike | None = None,
    w: ArrayLike | None = None,
    sequences: bool = False,
) -> Batch:
    """A batch of one query a context, float32: x [B, N, D], y [B, N], x_query [B, D], y_query [B], w [B, D].

    Without x_query the last pair of each context is its query. With `sequences` every pair is one, as decoders have
    them, and x_query is the last. A query without a label has nan, a context without a task 0: no model sees them.
    `ConfigError` says which array has another shape, or values that cannot be used.
    """
    unlabelled = x_query is not None and y_query is None
    count = np.shape(x)[0] if np.ndim(x) else 0
    data = of_arrays(x, y, x_query=x_query, y_query=np.zeros(count) if unlabelled else y_query, w=w)
    alone = data.lengths[0] == 1 and x_query is None and not sequences
    require(not alone, "each context has only one pair; as its last pair is the query, it needs at least two")
    batch = take(data, sequences=sequences).batch
    if not unlabelled:
        return batch
    labels = np.array(batch.y_query)
    labels[..., -1 if sequences else slice(None)] = np.nan
    return batch._replace(y_query=labels)  # type: ignore[arg-type]  # NumPy's arrays, where the type says JAX's
