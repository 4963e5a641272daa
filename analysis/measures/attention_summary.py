"""Batch means and summary statistics of captured attention maps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


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
