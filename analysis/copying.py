"""Measures how strongly the first layer's output at a token depends on the next token.

python -m analysis.copying --run DIR, of a run on interleaved tokens

Interleaved tokens put a pair into two rows, so one layer must bring them together before another can do gradient
descent: the first layer's rows become sensitive to the token that follows. Von Oswald et al. 2023, Sec. 5, Fig. 5.
Writes copying.json.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from icl_lab.analysis.command import Command
from icl_lab.analysis.loaded_run import LoadedRun, load_run
from icl_lab.src.batch import Batch
from icl_lab.src.checks import ConfigError
from icl_lab.src.config import ModelConfig
from icl_lab.src.data import tokenise
from icl_lab.src.model import Model, Params
from icl_lab.src.units import standardised, units_of
from icl_lab.store import layout
from icl_lab.store.atomic import write_json


def first_layer_gradients(loaded: LoadedRun) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Norms [2N - 1, 2N] of d sum(first layer's row k) / d (data channels of input row j), k and j context rows.

    By suffix of a name: "" is of the channels of x and y, "_x" of those of x alone. Each in two versions: the gradient
    averaged over tasks before the norm is taken, and the norm of each task averaged after. Of a layer that changes
    nothing the norm of a row's gradient towards itself is sqrt(D + 1), of the channels of x alone sqrt(D).
    """
    config = loaded.config
    widths = {"": config.architecture.data_width, "_x": config.data.dim}
    batch = standardised(jax.tree.map(jnp.asarray, loaded.batch), units_of(config.data))
    norms = [
        _row_norms(loaded.model, config.model, tuple(widths.values()), loaded.params, batch, row)
        for row in range(config.architecture.num_rows - 2)
    ]
    of_widths = zip(*norms, strict=True)
    return {
        suffix: (np.asarray([first for first, _ in rows]), np.asarray([after for _, after in rows]))
        for suffix, rows in zip(widths, of_widths, strict=True)
    }


@partial(jax.jit, static_argnums=(0, 1, 2))
def _row_norms(
    model: Model, settings: ModelConfig, widths: tuple[int, ...], params: Params, batch: Batch, row: int | Array
) -> tuple[tuple[Array, Array], ...]:
    """Both versions of the norms [2N] of one row's gradients towards the first channels, of each of these numbers."""

    def first_layer_row(tokens: Array) -> Array:
        seen: list[Array] = []

        def collect(name: str, layer: int | None, value: Array) -> Array:
            if name == "resid_post":
                seen.append(value)
            return value

        model.forward(params, tokens, collect)
        return jnp.sum(jnp.take(seen[0], row, axis=1))

    gradient = jax.grad(first_layer_row)(tokenise(batch, settings))[:, :-1]

    def norms(channels: int) -> tuple[Array, Array]:
        part = gradient[..., :channels]
        averaged_first = jnp.linalg.norm(jnp.mean(part, axis=0), axis=-1)
        return averaged_first, jnp.mean(jnp.linalg.norm(part, axis=-1), axis=0)

    return tuple(norms(channels) for channels in widths)


def own_next_other(norms: np.ndarray) -> dict[str, float]:
    """Means over rows k of the sensitivity to itself, to the following token, and to all but these two.

    As published, "other" is all rows but the row itself: `other_with_next`, the sum over them by 2N - 1, with which
    `next_over_other_with_next` is at most 2N - 1.
    """
    rows, columns = np.indices(norms.shape)
    offset = columns - rows
    own, following = float(norms[offset == 0].mean()), float(norms[offset == 1].mean())
    other = float(norms[(offset != 0) & (offset != 1)].mean())
    published = float(norms[offset != 0].mean())
    return {
        "own": own,
        "next": following,
        "other": other,
        "next_over_other": following / max(other, 1e-12),
        "other_with_next": published,
        "next_over_other_with_next": following / max(published, 1e-12),
    }


def sensitivities(loaded: LoadedRun) -> dict[str, dict[str, float]]:
    """`own_next_other` of all channels of the data, and of those of x alone ("_x"), each in both versions."""
    means: dict[str, dict[str, float]] = {}
    for suffix, (averaged_first, per_task) in first_layer_gradients(loaded).items():
        means[f"averaged_before_norm{suffix}"] = own_next_other(averaged_first)
        means[f"per_task{suffix}"] = own_next_other(per_task)
    return means


def copying(loaded: LoadedRun) -> dict[str, Any]:
    """The sensitivities of the first layer, and those before training; `ConfigError` unless tokens are interleaved."""
    if not loaded.config.model.interleaved:
        raise ConfigError(
            f"copying is defined for interleaved tokens; {loaded.run} has {loaded.config.model.tokens} tokens"
        )
    tasks = int(loaded.batch.y.shape[0])
    return {**sensitivities(loaded), "tasks": tasks, "untrained": sensitivities(loaded.untrained())}


def write(loaded: LoadedRun) -> dict[str, Any]:
    """Writes copying.json."""
    values = copying(loaded)
    write_json(loaded.run / layout.COPYING, values)
    return values


COMMAND = Command(
    "copying",
    "Measures how strongly the first layer's output at a token depends on the next token.",
    lambda run, flags: write(load_run(run)),
)

if __name__ == "__main__":
    COMMAND.launch()
