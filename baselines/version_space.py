"""The posterior over a list of languages: those that agree with the labels, each with the same chance."""

from __future__ import annotations

import numpy as np

CHUNK = 1024  # tasks in memory at once


def version_space(members: np.ndarray, strings: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Predictions [B]: the mean label of the query over the languages that fit the context best.

    members [M, S] says which language has which string; strings [B, N + 1] are rows of it, the query last; y [B, N].
    Where no language agrees with all labels, as for one that is not in the list, those with the fewest errors count.
    """
    labels = np.where(members, 1, -1).astype(np.int8)
    predictions = np.empty(len(y))
    for start in range(0, len(y), CHUNK):
        part = slice(start, start + CHUNK)
        seen = labels[:, strings[part, :-1]]  # [M, b, N]
        wrong = (seen != y[None, part]).sum(axis=2)
        best = wrong == wrong.min(axis=0, keepdims=True)
        asked = labels[:, strings[part, -1]].astype(float)
        predictions[part] = (best * asked).sum(axis=0) / best.sum(axis=0)
    return predictions


def any_language(members: np.ndarray, strings: np.ndarray) -> np.ndarray:
    """Predictions [B] without context: 1 where any of the languages has the query, else -1."""
    return np.where(members[:, strings[:, -1]].any(axis=0), 1.0, -1.0)
