"""Attention maps of a run on the first tasks of its evaluation batch, all rows of every layer: maps, means, summary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from icl_lab.analysis.loaded_run import LoadedRun
from icl_lab.store import layout
from icl_lab.store.atomic import write_json, write_npy, write_npz


def batch_mean(maps: np.ndarray) -> np.ndarray:
    """Mean over tasks: [B, H, R, C] -> [H, R, C]."""
    mean: np.ndarray = np.asarray(maps, np.float64).mean(axis=0)
    return mean.astype(np.float32)


def head_summary(maps: np.ndarray) -> dict[str, float]:
    """Statistics of one head's maps [B, R, C].

    mean, mean_abs: mean (absolute) weight. std_over_tasks: standard deviation of a weight over tasks, averaged over
    weights. heaviest_share: share of a row's absolute weight in its heaviest column, averaged over rows.
    """
    absolute = np.abs(maps.astype(np.float64))
    share = absolute.max(axis=-1) / np.maximum(absolute.sum(axis=-1), np.finfo(np.float64).tiny)
    return {
        "mean": float(maps.mean(dtype=np.float64)),
        "mean_abs": float(absolute.mean()),
        "std_over_tasks": float(maps.astype(np.float64).std(axis=0).mean()),
        "heaviest_share": float(share.mean()),
    }


def summarise(layers: Sequence[np.ndarray], kinds: Sequence[str]) -> dict[str, Any]:
    """The statistics of all layers' maps [B, H, R, C]; `kinds` are the layers' kinds of attention."""
    return {
        "tasks": int(layers[0].shape[0]),
        "layers": [
            {
                "layer": index,
                "kind": kind,
                "rows": int(maps.shape[2]),
                "cols": int(maps.shape[3]),
                "heads": [{"head": head, **head_summary(maps[:, head])} for head in range(maps.shape[1])],
            }
            for index, (maps, kind) in enumerate(zip(layers, kinds, strict=True))
        ],
    }


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
