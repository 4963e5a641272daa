"""Codes of strings: features, then their centre, directions and scale, all taken from the training pool.

    one_hot    every place's symbol, or pad, one-hot
    raw_index  every place's symbol as a number, pads too: the published code's input
    bigrams    counts of neighbouring symbols, the string's ends being a symbol of their own
    states     the state in which the automaton of each training language ends, one-hot

`raw` is the features themselves, `centred` their first principal components, `whitened` these with variance 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from icl_lab.families.languages.automata import Automaton, lengths_of, states_after
from icl_lab.src.checks import ConfigError, require

LEAST_VARIANCE = 1e-9  # of a direction, over the largest: below it there is none


class Affine(NamedTuple):
    """codes = (features - centre) @ directions: centre [F], directions [F, D]."""

    centre: np.ndarray
    directions: np.ndarray

    def __call__(self, features: np.ndarray) -> np.ndarray:
        """The codes [S, D] of features [S, F], float32."""
        return np.asarray((features - self.centre) @ self.directions, np.float32)


def aligned(strings: np.ndarray, pad: int, alignment: str) -> np.ndarray:
    """Strings [S, L] with their pads behind (left) or before them (right)."""
    if alignment == "left":
        return strings
    shift = strings.shape[1] - lengths_of(strings, pad)
    columns = (np.arange(strings.shape[1])[None] - shift[:, None]) % strings.shape[1]
    return np.asarray(np.take_along_axis(strings, columns, axis=1))


def one_hot(strings: np.ndarray, pad: int, automata: Sequence[Automaton] = ()) -> np.ndarray:
    """[S, L (A + 1)]."""
    return np.asarray(np.eye(pad + 1, dtype=np.float32)[strings].reshape(len(strings), -1))


def raw_index(strings: np.ndarray, pad: int, automata: Sequence[Automaton] = ()) -> np.ndarray:
    """[S, L]."""
    return strings.astype(np.float32)


def bigrams(strings: np.ndarray, pad: int, automata: Sequence[Automaton] = ()) -> np.ndarray:
    """[S, (A + 1)^2 - 1]: two pads that are neighbours are not counted."""
    ends = np.full((len(strings), 1), pad, strings.dtype)
    around = np.concatenate([ends, strings, ends], axis=1).astype(np.int64)
    pairs = around[:, :-1] * (pad + 1) + around[:, 1:]
    kinds = (pad + 1) ** 2
    counted = np.bincount((np.arange(len(strings))[:, None] * kinds + pairs).ravel(), minlength=len(strings) * kinds)
    return counted.reshape(len(strings), kinds)[:, :-1].astype(np.float32)


def states(strings: np.ndarray, pad: int, automata: Sequence[Automaton] = ()) -> np.ndarray:
    """[S, sum of the numbers of states]; zeros where a pad stands before a symbol."""
    parts = []
    for automaton in automata:
        ended = states_after(automaton, strings)
        parts.append((ended[:, None] == np.arange(len(automaton.transitions))[None]).astype(np.float32))
    return np.concatenate(parts, axis=1)


FEATURES: dict[str, Callable[..., np.ndarray]] = {
    "one_hot": one_hot,
    "raw_index": raw_index,
    "bigrams": bigrams,
    "states": states,
}
ALIGNED = ("one_hot", "raw_index")  # the others do not depend on where the pads are


def fit(features: np.ndarray, weights: np.ndarray, dim: int, scale: str, name: str) -> Affine:
    """What makes codes of `dim` channels of features [S, F], strings counted as often as `weights` [S] says.

    `ConfigError` where they have another number of channels (raw) or fewer directions.
    """
    width = features.shape[1]
    if scale == "raw":
        require(dim == width, f"a raw code of {name} has {width} channels, not {dim}; set --code_dim {width}")
        return Affine(np.zeros(width), np.eye(width))
    shares = (weights / weights.sum())[:, None]
    wide = features.astype(np.float64)
    centre = (shares * wide).sum(axis=0)
    centred = wide - centre
    values, vectors = np.linalg.eigh((shares * centred).T @ centred)
    values, vectors = values[::-1], vectors[:, ::-1]
    rank = int(np.sum(values > LEAST_VARIANCE * values[0])) if values[0] > 0 else 0
    if dim > rank:
        helps = f"; set --code_dim {rank} or less" if rank else ""
        raise ConfigError(f"the {name} of these strings vary in {rank} directions, fewer than code_dim {dim}{helps}")
    vectors = vectors[:, :dim] * np.sign(vectors[np.argmax(np.abs(vectors[:, :dim]), axis=0), np.arange(dim)])
    lengths = np.sqrt(values[:dim]) if scale == "whitened" else np.ones(dim)
    return Affine(centre, vectors / lengths)
