"""The parameters of the record with the least evaluation loss, kept beside those of the last step."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from icl_lab.store import layout
from icl_lab.store.atomic import write_bytes, write_safetensors
from icl_lab.store.params import Params, flattened, nested
from icl_lab.store.readers import StoreError, expecting, read_safetensors, reading


class Best(NamedTuple):
    """The step and the evaluation loss of the best record, and the parameters there."""

    step: int
    eval_loss: float
    params: Params


def write(run: Path, best: Best) -> None:
    """Writes the best parameters so far."""
    facts = {"step": best.step, "eval_loss": best.eval_loss}
    write_safetensors(run / layout.BEST_PARAMS, flattened(best.params), facts)


def read(run: Path) -> Best:
    """The best parameters of a run; `StoreError` if it kept none."""
    path = run / layout.BEST_PARAMS
    if not path.exists():
        raise StoreError(f"{run} has no parameters of its best record; --keep_best keeps them")
    flat, facts = read_safetensors(path)
    with expecting(path, "the parameters of a run's best record"):
        return Best(int(facts["step"]), float(facts["eval_loss"]), nested(flat))


def facts(run: Path) -> Mapping[str, Any]:
    """What a summary says of them."""
    best = read(run)
    return {"step": best.step, "eval_loss": best.eval_loss}


def copy(source: Path, run: Path) -> None:
    """Gives a run that goes on from another that one's best parameters."""
    path = source / layout.BEST_PARAMS
    with reading(path):
        content = path.read_bytes()
    write_bytes(run / layout.BEST_PARAMS, content)
