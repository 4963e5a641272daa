"""Attention maps of a run on the first tasks of its analysis batch, all rows of every layer."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from icl_lab.analysis.loaded_run import LoadedRun
from icl_lab.analysis.measures.attention_summary import batch_mean, summarise
from icl_lab.store import layout
from icl_lab.store.atomic import write_json, write_npy, write_npz


def capture(loaded: LoadedRun, num_tasks: int) -> list[np.ndarray]:
    """Maps [B', H, R, C] of each layer: rows are queries, columns the context's tokens as keys."""
    batch = jax.tree.map(lambda leaf: jnp.asarray(leaf[:num_tasks]), loaded.batch)
    trace = jax.jit(loaded.model.trace)(loaded.params, batch)
    return [np.asarray(maps) for maps in trace.attention]


def write(loaded: LoadedRun, num_tasks: int) -> None:
    """Writes each layer's maps, each head's batch mean, and the summary."""
    layers = capture(loaded, num_tasks)
    for layer, maps in enumerate(layers):
        write_npz(layout.attention_layer(loaded.run, layer), {"data": maps})
        for head, mean in enumerate(batch_mean(maps)):
            write_npy(layout.attention_head(loaded.run, layer, head), mean)
    kinds = [loaded.config.model.kind(layer) for layer in range(len(layers))]
    write_json(loaded.run / layout.ATTENTION_SUMMARY, summarise(layers, kinds))
