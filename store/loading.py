"""Loads a finished run: `config, params, batch = store.load("runs/lsa1")`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from icl_lab.lab.configs.registry import family_of
from icl_lab.lab.configs.run import RunConfig
from icl_lab.store import layout
from icl_lab.store.params import NO_PICKLES, read_params
from icl_lab.store.readers import StoreError, check_arrays, read_npz
from icl_lab.store.rundir import read_config


class Run(NamedTuple):
    """A finished run: config, trained parameters and analysis batch, as NumPy arrays."""

    config: RunConfig
    params: dict[str, dict[str, np.ndarray]]
    batch: Any


def load(run: str | Path, allow_pickle: bool = False) -> Run:
    """Loads a finished run; `StoreError` says what is missing or broken.

    The batch is checked against the config. The parameters are not, since that takes the model (see
    `analysis.load_run`). `allow_pickle=True` is refused: params.pkl is written and never read.
    """
    if allow_pickle:
        raise StoreError(NO_PICKLES)
    path = Path(run)
    config = read_config(path)
    params = read_params(path)
    family = family_of(config)
    arrays = read_npz(path / layout.ANALYSIS_BATCH, family.batch._fields)
    check_arrays(path / layout.ANALYSIS_BATCH, arrays, family.batch_shapes(config), family.batch_types)
    return Run(config, params, family.batch(**arrays))
