"""Draws of an estimate for other libraries: xarray and ArviZ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from icl_lab.lab.environment import extra

POSTERIOR = ("excess", "distance", "slope", "observed")  # of every draw
CHAIN, DRAW, CHECK = "chain", "draw", "check"


def to_xarray(traces: Mapping[str, np.ndarray], burn_in: int, row: Mapping[str, Any]) -> Any:
    """An `xarray.Dataset` of the traces after the burn-in, with the row of the estimate as its attributes."""
    xarray = extra("xarray")
    count = traces["excess"].shape[1]
    arrays = {}
    for name, values in traces.items():
        every = -(-count // values.shape[1])
        kept = values[:, -(-burn_in // every) :]
        axis = DRAW if kept.shape[1] == count - burn_in and name in (*POSTERIOR, "losses") else CHECK
        more = [f"{name}_{number}" for number in range(kept.ndim - 2)]
        arrays[name] = ((CHAIN, axis, *more), kept)
    attributes = {
        name: str(value) if isinstance(value, bool) or value is None else value for name, value in row.items()
    }
    return xarray.Dataset(arrays, attrs=attributes)


def to_arviz(traces: Mapping[str, np.ndarray], burn_in: int) -> Any:
    """ArviZ's InferenceData: excess, distance and slope, and what was observed, of every draw."""
    arviz = extra("arviz")
    posterior = {name: values[:, burn_in:] for name, values in traces.items() if name in POSTERIOR}
    return arviz.from_dict({"posterior": posterior}) if _takes_groups(arviz) else arviz.from_dict(posterior=posterior)


def _takes_groups(arviz: Any) -> bool:
    """Whether this version of ArviZ has groups in one dictionary, as it has from version 1 on."""
    return not str(arviz.__version__).startswith("0.")
