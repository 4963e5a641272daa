"""A run as a value: `config, params, batch = store.load("runs/lsa1")`."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from src.batch import Batch
from src.config import RunConfig
from store import layout
from store.params import read_params
from store.readers import check_arrays, read_npz
from store.rundir import read_config


class Run(NamedTuple):
    """A finished run: its config, its trained parameters and its analysis batch, all as NumPy arrays."""

    config: RunConfig
    params: dict[str, dict[str, np.ndarray]]
    batch: Batch


def load(run: str | Path, allow_pickle: bool = False) -> Run:
    """Loads a finished run; `StoreError` says what is missing or broken.

    The batch is checked against the config. The parameters are not, for that takes the model: commands check them
    (`analysis.subject.load_subject`).
    With `allow_pickle`, parameters that are there as params.pkl alone are read from it; nothing in it is run.
    """
    path = Path(run)
    config = read_config(path)
    params = read_params(path, allow_pickle)
    arrays = read_npz(path / layout.ANALYSIS_BATCH, Batch._fields)
    check_arrays(path / layout.ANALYSIS_BATCH, arrays, batch_shapes(config))
    return Run(config, params, Batch(**arrays))


def batch_shapes(config: RunConfig) -> dict[str, tuple[int, ...]]:
    """The shapes of a config's analysis batch, by field."""
    tasks, pairs, dim = config.eval_tasks, config.data.num_pairs, config.data.dim
    queries = {"layerwise": (config.data.num_queries,), "diversity": (pairs,)}.get(config.family, ())
    shapes = {"x": (tasks, pairs, dim), "y": (tasks, pairs), "w": (tasks, {"sine": 2}.get(config.family, dim))}
    return shapes | {"x_query": (tasks, *queries, dim), "y_query": (tasks, *queries)}
