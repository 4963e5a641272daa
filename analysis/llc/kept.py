"""Estimates of checkpoints in a folder, each with the digest of what it is of, so that a killed call goes on."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from icl_lab.analysis.llc.derivatives import Slopes
from icl_lab.analysis.llc.estimate import Estimate
from icl_lab.analysis.llc.mask import names_of
from icl_lab.analysis.llc.prediction import Prediction
from icl_lab.analysis.llc.settings import Settings
from icl_lab.store.atomic import write_bytes
from icl_lab.store.readers import StoreError

FACTS, DIGEST = "facts", "digest"
OTHER = "move it away, and the same call estimates it again"


def digest(params: Any, data: Any, settings: Mapping[str, Any]) -> str:
    """SHA-256 of the parameters, the data and the settings that an estimate is of."""
    found = hashlib.sha256()
    for name, tree in (("params", params), ("data", data), ("settings", dict(settings))):
        found.update(name.encode())
        for leaf_name, leaf in zip(names_of(tree), jax.tree.leaves(tree), strict=True):
            found.update(f" {leaf_name}".encode())
            if isinstance(leaf, (jax.Array, np.ndarray, np.generic)):
                array = np.ascontiguousarray(leaf)
                found.update(f" {array.dtype} {array.shape} ".encode() + array.tobytes())
            else:
                found.update(f" {_told(leaf)}".encode())
    return found.hexdigest()


def _told(leaf: Any) -> str:
    """A leaf that is no array, in words that are the same in every process: a function by its name."""
    return str(getattr(leaf, "__qualname__", type(leaf).__qualname__) if callable(leaf) else leaf)


def path_of(folder: Path, step: int) -> Path:
    """Where a step's estimate is."""
    return folder / f"llc_step_{step:08d}.npz"


def read(folder: Path, step: int, of: str) -> Estimate | None:
    """The stored estimate of a step, None if there is none; `StoreError` if the file is of something else."""
    path = path_of(folder, step)
    if not path.exists():
        return None
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as arrays:
            facts = json.loads(arrays[FACTS].tobytes())
            traces = {name: arrays[name] for name in arrays.files if name != FACTS}
        was = facts.pop(DIGEST)
        estimate = _estimate(facts, traces)
    except (ValueError, KeyError, TypeError, AttributeError, OSError, EOFError, zipfile.BadZipFile, zlib.error):
        raise StoreError(f"{path} is not a stored estimate; {OTHER}") from None
    if was != of:
        raise StoreError(f"{path} is an estimate of other parameters, data or settings; {OTHER}")
    return estimate


def write(folder: Path, step: int, of: str, estimate: Estimate) -> None:
    """Stores an estimate, whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    values = {name: getattr(estimate, name) for name in estimate.__dataclass_fields__ if name != "traces"}
    facts = {DIGEST: of} | values | {"settings": vars(estimate.settings)}
    facts |= {"slopes": estimate.slopes._asdict()}
    facts |= {"prediction": None if estimate.prediction is None else estimate.prediction._asdict()}
    buffer = io.BytesIO()
    told = np.frombuffer(json.dumps(facts).encode(), np.uint8)
    np.savez(buffer, allow_pickle=False, **{FACTS: told}, **estimate.traces)
    write_bytes(path_of(folder, step), buffer.getvalue())


def _estimate(facts: dict[str, Any], traces: dict[str, np.ndarray]) -> Estimate:
    prediction = facts["prediction"]
    made = {
        "settings": Settings(**facts["settings"]),
        "slopes": Slopes(**facts["slopes"]),
        "prediction": None if prediction is None else Prediction(**prediction),
        "reasons": tuple(facts["reasons"]),
        "descent": tuple(facts["descent"]),
        "measured": None if facts["measured"] is None else tuple(facts["measured"]),
    }
    return Estimate(**facts | made, traces=traces)
