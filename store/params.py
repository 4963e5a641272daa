"""A run's parameters, nested dictionaries as flat arrays named `module/name`; and a finished run with them."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from icl_lab.lab.configs.registry import family_of
from icl_lab.lab.configs.run import RunConfig
from icl_lab.store import layout
from icl_lab.store.atomic import write_bytes, write_safetensors
from icl_lab.store.readers import check_arrays, read_npz, read_safetensors
from icl_lab.store.rundir import read_config

Params = dict[str, dict[str, np.ndarray]]


def write_params(run: Path, params: Mapping[str, Mapping[str, Any]], metadata: Mapping[str, Any]) -> None:
    """Writes a run's parameters as safetensors, and as a pickle of NumPy arrays."""
    arrays = {module: {name: np.asarray(value) for name, value in leaf.items()} for module, leaf in params.items()}
    write_safetensors(run / layout.PARAMS, flattened(arrays), metadata)
    write_bytes(run / layout.PARAMS_PICKLE, pickle.dumps(arrays, protocol=4))


def read_params(run: Path) -> Params:
    """A run's parameters, from safetensors."""
    return read_params_and_facts(run)[0]


def read_params_and_facts(run: Path) -> tuple[Params, Mapping[str, Any]]:
    """The same, with what the file says of them: `step` and `config_id`."""
    flat, facts = read_safetensors(run / layout.PARAMS)
    return nested(flat), facts


def flattened(params: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The leaves by `module/name`."""
    return {f"{module}/{name}": value for module, leaf in params.items() for name, value in leaf.items()}


def nested(flat: Mapping[str, np.ndarray]) -> Params:
    """The inverse of `flattened`."""
    params: Params = {}
    for key, value in flat.items():
        module, _, name = key.rpartition("/")
        params.setdefault(module, {})[name] = value
    return params


class Run(NamedTuple):
    """A finished run: config, trained parameters and analysis batch, as NumPy arrays."""

    config: RunConfig
    params: dict[str, dict[str, np.ndarray]]
    batch: Any


def load(run: str | Path) -> Run:
    """Loads a finished run; `StoreError` says what is missing or broken.

    The batch is checked against the config. The parameters are not, since that takes the model (see
    `analysis.load_run`). params.pkl is written and never read, since a pickle can run anything.
    """
    path = Path(run)
    config = read_config(path)
    params = read_params(path)
    family = family_of(config)
    arrays = read_npz(path / layout.ANALYSIS_BATCH, family.batch._fields)
    check_arrays(path / layout.ANALYSIS_BATCH, arrays, config.batch_shapes(), family.batch_types)
    return Run(config, params, family.batch(**arrays))
