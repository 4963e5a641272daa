"""Helpers for captured attention maps: batch means and what a reader wants to know of each head."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def batch_mean(maps: np.ndarray) -> np.ndarray:
    """Mean over tasks: [B, H, R, C] -> [H, R, C]."""
    mean: np.ndarray = np.asarray(maps, np.float64).mean(axis=0)
    return mean.astype(np.float32)


def head_summary(maps: np.ndarray) -> dict[str, float]:
    """One head's maps [B, R, C] in numbers.

    mean and mean absolute weight; std over tasks of a weight, averaged; the share of the absolute weight of a row that
    its heaviest column holds.
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
    """A summary of all layers' maps [B, H, R, C], whose kinds of attention are given."""
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
