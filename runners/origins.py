"""What a run is made of besides its config: arrays that it shares with others, and runs that it builds on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from configs.identity import array_hash
from configs.run import RunConfig
from families.experiment import experiment_of, shared_of
from src.train import Shared
from store import rundir
from store.params import read_params
from store.readers import StoreError

FROZEN = "frozen"  # in meta.json: the hashes of arrays of the runs that a run requires


def shared_with(config: RunConfig, runs: Sequence[Path]) -> Shared:
    """The shared arrays of a pack of runs: their family's, and those of the runs that they require.

    `StoreError` if a run that is required is missing or unfinished, or its arrays are not those a run began with.
    """
    if not config.shared and not config.requires:
        return {}
    required = [read_params(rundir.find(identity, runs[0])) for identity in config.requires]
    frozen = {name: np.asarray(array) for name, array in experiment_of(config).frozen(config, required).items()}
    hashes = {name: array_hash(array) for name, array in frozen.items()}
    for run in runs:
        _check_frozen(run, hashes)
    arrays: dict[str, Any] = {**shared_of(config), **frozen}
    return {name: jnp.asarray(array) for name, array in arrays.items()}


def _check_frozen(run: Path, hashes: dict[str, str]) -> None:
    """Notes the hashes with a run that begins; `StoreError` if one that goes on began with others."""
    noted = rundir.read_meta(run).get(FROZEN)
    if noted is None:
        rundir.update_meta(run, **{FROZEN: hashes})
    elif noted != hashes:
        name = next(name for name in {*noted, *hashes} if noted.get(name) != hashes.get(name))
        raise StoreError(f"{run} began with another {name} of the runs that it requires; --overwrite trains it anew")
