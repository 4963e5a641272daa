"""Compares a run at every snapshot of its training with gradient descent and GD++.

python -m analysis.over_training --run DIR, of a run trained with --config.snapshots=true
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
from jax.tree_util import Partial

from icl_lab.analysis.command import Command
from icl_lab.analysis.copying import first_layer_gradients, own_next_other
from icl_lab.analysis.loaded_run import ComparedRun, baselines_of, load_compared
from icl_lab.baselines.comparison import compare
from icl_lab.store import layout
from icl_lab.store.atomic import write_csv

COMPARED = {"loss": "gd_loss", **{name: name for name in ("preds_diff", "model_diff", "model_cos")}}
COPIED = ("own", "next", "other", "other_with_next")


def descents_of(loaded: ComparedRun) -> dict[str, Partial | str]:
    """Gradient descent, and GD++ with the best rates where a run has several linear layers.

    An undefined baseline is replaced by the reason: GD++ is fitted in closed form, which needs the inputs' variance.
    """
    several = loaded.gd.steps > 1 and loaded.config.model.tokens == "concatenated"
    return baselines_of(loaded, ("gd", "gd_plus_plus") if several else ("gd",))


def over_training(loaded: ComparedRun) -> list[dict[str, Any]]:
    """A row for each snapshot: step, tf_loss, and for each baseline its loss and the values of `comparison.compare`.

    Of interleaved tokens also the first layer's sensitivities to its own, the next and other tokens, averaged over
    tasks before the norm as in the paper's Fig. 5, in all channels of the data and in those of x alone ("_x").
    """
    parts: list[Callable[[ComparedRun], Mapping[str, Any]]] = [
        partial(_compared, name, other) for name, other in descents_of(loaded).items()
    ]
    if loaded.config.model.interleaved:
        parts.append(_copied)
    return [
        {"step": step} | {name: value for part in parts for name, value in part(checkpoint).items()}
        for step, checkpoint in loaded.checkpoints()
    ]


def _compared(name: str, other: Partial | str, checkpoint: ComparedRun) -> dict[str, Any]:
    if isinstance(other, str):
        return dict.fromkeys(f"{name}_{key}" for key in COMPARED) | {f"{name}_reason": other}
    values = _compare(checkpoint.predict, other, checkpoint.batch)
    return {"tf_loss": float(values["tf_loss"])} | {f"{name}_{key}": float(values[of]) for key, of in COMPARED.items()}


_compare = jax.jit(compare)


def _copied(checkpoint: ComparedRun) -> dict[str, float]:
    means: dict[str, float] = {}
    for suffix, (averaged_first, _) in first_layer_gradients(checkpoint).items():
        values = own_next_other(averaged_first)
        means |= {f"{name}{suffix}": values[name] for name in COPIED}
    return means


def write(loaded: ComparedRun) -> list[dict[str, Any]]:
    """Writes over_training.csv."""
    rows = over_training(loaded)
    write_csv(loaded.run / layout.OVER_TRAINING, rows)
    return rows


COMMAND = Command(
    "over_training",
    "Compares a run at every snapshot of its training with gradient descent and, if it has several layers, with GD++.",
    lambda run, flags: write(load_compared(run)),
)

if __name__ == "__main__":
    COMMAND.launch()
