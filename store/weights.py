"""Parameters that a training starts from, and where they come from: a finished run, a file, or arrays of one's own."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from icl_lab.lab.configs.identity import DIGITS, array_hash
from icl_lab.lab.flag_types import whole
from icl_lab.src.checks import ConfigError, require
from icl_lab.store import best_params, layout, rundir, snapshots
from icl_lab.store.atomic import write_safetensors
from icl_lab.store.params import Params, flattened, nested, read_params_and_facts
from icl_lab.store.readers import LARGEST_NUMBER, StoreError, read_safetensors

MOST_NAMED = 8  # arrays, or steps, in a message
BEST = "best"  # in the place of a step: the record with the least eval_loss
Given = str | Path | Mapping[str, Any]


class Weights(NamedTuple):
    """Parameters that a training starts from.

    source: what they are in the id of the run: ID@STEP:HASH of a run's, weights:HASH of others. origin: where they were
    found, for meta.json.
    """

    params: Params
    source: str
    origin: Mapping[str, Any]


def weights_of(given: Given) -> Weights:
    """The parameters of RUN[@STEP], of a safetensors file, or arrays by `module/name` or by module and name.

    `StoreError` for a run that is not done or has no snapshot of that step, and for what is no file of parameters;
    `ConfigError` for arrays that are no finite numbers.
    """
    if isinstance(given, Mapping):
        return _own(_flat(given), "arrays", {})
    path, step = _parted(str(given))
    if path.is_file() and not step:
        arrays, _ = read_safetensors(path)
        return _own(arrays, str(path), {"file": str(path)})
    return _of_run(path, step)


def write_given(run: Path, weights: Weights) -> None:
    """Keeps, with a run that begins, the parameters that it starts from."""
    write_safetensors(run / layout.INITIAL_PARAMS, flattened(weights.params), {"source": weights.source})


def read_given(run: Path) -> Params:
    """The parameters that a run has started from; `StoreError` unless they are those that its config names."""
    path = run / layout.INITIAL_PARAMS
    params, source = nested(read_safetensors(path)[0]), str(rundir.read_config(run).init_from)
    if source.rpartition(":")[2] != params_hash(params):
        raise StoreError(f"{path} has other parameters than {source}, from which the run started")
    return params


def _parted(text: str) -> tuple[Path, str]:
    """The path and the step of RUN[@STEP]; a folder may have an @ in its name."""
    run, at, step = text.rpartition("@")
    return (Path(run), step) if at and not Path(text).exists() else (Path(text), "")


def _own(arrays: Mapping[str, Any], name: str, origin: Mapping[str, Any]) -> Weights:
    params = nested({key: _checked(name, key, value) for key, value in arrays.items()})
    require(bool(params), f"{name} has no parameters")
    return Weights(params, f"weights:{params_hash(params)}", origin)


def _flat(given: Mapping[str, Any]) -> dict[str, Any]:
    """Arrays by `module/name`, of a dictionary of these or of modules."""
    nested_too = {key: value for key, value in given.items() if isinstance(value, Mapping)}
    return {key: value for key, value in given.items() if key not in nested_too} | flattened(nested_too)


def _checked(name: str, key: str, value: Any) -> np.ndarray:
    """An array of parameters in float32; `ConfigError` unless it holds finite numbers."""
    array = np.asarray(value)
    require("/" in key, f"{name} has {key!r}; parameters are named module/name")
    require(array.dtype.kind in "fiu", f"{key} of {name} is of type {array.dtype}; parameters are numbers")
    require(bool((np.abs(array) <= LARGEST_NUMBER).all()), f"{key} of {name} has values that are not finite")
    return np.array(array, np.float32)


def _of_run(run: Path, step: str) -> Weights:
    """The parameters that a finished run ended with, had at a step, or at its best record."""
    config = rundir.read_config(run)
    if (status := rundir.read_status(run)) != "done":
        raise StoreError(f"{run} is {status}; --init_from takes the parameters of a run that is done")
    final, facts = read_params_and_facts(run)
    last = int(facts.get("step", config.training.steps))
    if step == BEST:
        at, _, params = best_params.read(run)
    else:
        at = _step(step) if step else last
        params = final if at == last else _snapshot(run, at)
    identity = rundir.stored_id(run)
    origin = {"run": str(run), "step": at, "config_id": identity, "model": config.name}
    return Weights(params, f"{identity}@{at}:{params_hash(params)}", origin)


def _step(text: str) -> int:
    try:
        return whole(text)
    except ValueError:
        raise ConfigError(f"--init_from is RUN@STEP or RUN@{BEST}; {text!r} is not a step") from None


def _snapshot(run: Path, at: int) -> Params:
    there = snapshots.steps(run) if (run / layout.SNAPSHOTS).exists() else []
    if at not in there:
        nearest = sorted(sorted(there, key=lambda step: abs(step - at))[:MOST_NAMED])
        have = f"those nearest to it are of steps {', '.join(map(str, nearest))}" if there else "it has none"
        raise StoreError(f"{run} has no snapshot of step {at}: {have} (--config.snapshots=true keeps them)")
    return next(params for step, params in snapshots.read(run) if step == at)


def params_hash(params: Params) -> str:
    """The hash of the names, shapes and values of parameters."""
    text = "\n".join(f"{name} {array_hash(array)}" for name, array in sorted(flattened(params).items()))
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


def check_shapes(weights: Weights, shapes: Mapping[str, tuple[int, ...]], model: str) -> None:
    """`ConfigError` that lists which parameters do not fit a model, given the shapes of its own."""
    there = {name: value.shape for name, value in flattened(weights.params).items()}
    wrong = [f"{name} is not there" for name in shapes if name not in there]
    wrong += [f"{name} is unknown" for name in there if name not in shapes]
    wrong += [
        f"{name} is {list(there[name])}, not {list(shape)}"
        for name, shape in shapes.items()
        if there.get(name, shape) != shape
    ]
    more = f", and {len(wrong) - MOST_NAMED} more" if len(wrong) > MOST_NAMED else ""
    require(not wrong, f"these parameters do not fit the model {model}: {', '.join(wrong[:MOST_NAMED])}{more}")
