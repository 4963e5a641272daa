"""Nested parameter dictionaries as flat named arrays: `module/name`."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from store import layout
from store.atomic import write_bytes, write_safetensors
from store.readers import read_safetensors


def write_params(run: Path, params: Mapping[str, Mapping[str, Any]], metadata: Mapping[str, Any]) -> None:
    """Writes a run's parameters: as safetensors, and as a pickle of NumPy arrays for those who expect one."""
    arrays = {module: {name: np.asarray(value) for name, value in leaf.items()} for module, leaf in params.items()}
    flat = {f"{module}/{name}": value for module, leaf in arrays.items() for name, value in leaf.items()}
    write_safetensors(run / layout.PARAMS, flat, metadata)
    write_bytes(run / layout.PARAMS_PICKLE, pickle.dumps(arrays, protocol=4))


def read_params(run: Path) -> dict[str, dict[str, np.ndarray]]:
    """A run's parameters, from safetensors."""
    flat, _ = read_safetensors(run / layout.PARAMS)
    nested: dict[str, dict[str, np.ndarray]] = {}
    for key, value in flat.items():
        module, _, name = key.rpartition("/")
        nested.setdefault(module, {})[name] = value
    return nested
