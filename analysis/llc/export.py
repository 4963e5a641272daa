"""Draws of an estimate for other libraries: xarray and ArviZ."""

from __future__ import annotations

from typing import Any

from icl_lab.analysis.llc.estimate import Estimate
from icl_lab.lab.environment import extra

POSTERIOR = ("excess", "distance", "slope", "observed")  # of every draw
CHAIN, DRAW, CHECK = "chain", "draw", "check"


def to_xarray(estimate: Estimate) -> Any:
    """An `xarray.Dataset` of the traces after the burn-in, with the row of the estimate as its attributes."""
    xarray = extra("xarray")
    draws = estimate.excess.shape[1]
    arrays = {}
    for name, values in estimate.traces.items():
        every = -(-estimate.traces["excess"].shape[1] // values.shape[1])
        kept = values[:, -(-estimate.settings.burn_in // every) :]
        axis = DRAW if kept.shape[1] == draws and name in (*POSTERIOR, "losses") else CHECK
        more = [f"{name}_{number}" for number in range(kept.ndim - 2)]
        arrays[name] = ((CHAIN, axis, *more), kept)
    attributes = {
        name: str(value) if isinstance(value, bool) or value is None else value
        for name, value in estimate.row().items()
    }
    return xarray.Dataset(arrays, attrs=attributes)


def to_arviz(estimate: Estimate) -> Any:
    """ArviZ's InferenceData: excess, distance and slope, and what was observed, of every draw."""
    arviz = extra("arviz")
    burn_in = estimate.settings.burn_in
    posterior = {name: values[:, burn_in:] for name, values in estimate.traces.items() if name in POSTERIOR}
    return arviz.from_dict({"posterior": posterior}) if _takes_groups(arviz) else arviz.from_dict(posterior=posterior)


def _takes_groups(arviz: Any) -> bool:
    """Whether this version of ArviZ has groups in one dictionary, as it has from version 1 on."""
    return not str(arviz.__version__).startswith("0.")
