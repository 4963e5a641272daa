"""A run as a value: `config, params, batch = store.load("runs/lsa1")`."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from src.batch import Batch
from src.config import RunConfig
from store import layout
from store.params import read_params
from store.readers import read_npz
from store.rundir import read_config


class Run(NamedTuple):
    """A finished run: its config, its trained parameters and its analysis batch, all as NumPy arrays."""

    config: RunConfig
    params: dict[str, dict[str, np.ndarray]]
    batch: Batch


def load(run: str | Path) -> Run:
    """Loads a finished run; `StoreError` says what is missing or broken."""
    path = Path(run)
    config = read_config(path)
    return Run(config, read_params(path), Batch(**read_npz(path / layout.ANALYSIS_BATCH, Batch._fields)))
