"""Reads and writes parameters: nested dictionaries as flat arrays named `module/name`."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from icl_lab.store import layout
from icl_lab.store.atomic import write_bytes, write_safetensors
from icl_lab.store.readers import read_safetensors

Params = dict[str, dict[str, np.ndarray]]

NO_PICKLES = (
    f"{layout.PARAMS_PICKLE} is not read, because a pickle can run anything: "
    f"use {layout.PARAMS}, which every run writes and which holds the same parameters"
)


def write_params(run: Path, params: Mapping[str, Mapping[str, Any]], metadata: Mapping[str, Any]) -> None:
    """Writes a run's parameters as safetensors, and as a pickle of NumPy arrays."""
    arrays = {module: {name: np.asarray(value) for name, value in leaf.items()} for module, leaf in params.items()}
    write_safetensors(run / layout.PARAMS, flattened(arrays), metadata)
    write_bytes(run / layout.PARAMS_PICKLE, pickle.dumps(arrays, protocol=4))


def read_params(run: Path) -> Params:
    """A run's parameters, from safetensors."""
    flat, _ = read_safetensors(run / layout.PARAMS)
    return nested(flat)


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
