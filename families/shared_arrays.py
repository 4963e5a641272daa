"""Arrays that runs share: those of the family, and parameters of required runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from icl_lab.families.task import shared_of, task_of
from icl_lab.lab.configs.identity import array_hash
from icl_lab.lab.configs.run import RunConfig
from icl_lab.src.train import Shared
from icl_lab.store import rundir
from icl_lab.store.params import read_params
from icl_lab.store.readers import StoreError

FROZEN = "frozen"  # in meta.json: the hashes of arrays of the runs that a run requires


def shared_with(config: RunConfig, run: Path, *others: Path) -> Shared:
    """The shared arrays of a run, and of others of its pack: its family's, and those of the runs that it requires.

    `StoreError` if one of these is missing or unfinished, or its arrays are not those a run began with; `ConfigError`
    if an array of the family is not that of the config.
    """
    if not config.shared and not config.requires:
        return {}
    required = [read_params(path) for path in rundir.find_required(config, run)]
    frozen = {name: np.asarray(array) for name, array in task_of(config).frozen(config, required).items()}
    hashes = {name: array_hash(array) for name, array in frozen.items()}
    for beginning in (run, *others):
        _check_frozen(beginning, hashes)
    arrays: dict[str, Any] = {**shared_of(config), **frozen}
    return {name: jnp.asarray(array) for name, array in arrays.items()}


def arrays_of_model(config: RunConfig, run: Path) -> Shared:
    """The shared arrays that a run's model is made of. The contexts of a file are none of it: the file may be gone."""
    return {} if config.data_file else shared_with(config, run)


def _check_frozen(run: Path, hashes: dict[str, str]) -> None:
    noted = rundir.read_meta(run).get(FROZEN, hashes)
    if noted != hashes:
        name = next(name for name in {*noted, *hashes} if noted.get(name) != hashes.get(name))
        raise StoreError(f"{run} requires runs whose {name} has changed since it began; --overwrite retrains it")


def note_frozen(run: Path, shared: Shared, config: RunConfig) -> None:
    """Notes, with a run that begins, the hashes of the arrays of the runs that it requires."""
    known = {entry.partition(":")[0] for entry in config.shared}
    hashes = {name: array_hash(np.asarray(array)) for name, array in shared.items() if name not in known}
    if hashes:
        rundir.update_meta(run, **{FROZEN: hashes})
