"""Codes of strings: features, then their centre, directions and scale, all taken from the training pool.

    one_hot    every place's symbol, or pad, one-hot
    raw_index  every place's symbol as a number, pads too: the published code's input
    bigrams    counts of neighbouring symbols, the string's ends being a symbol of their own
    states     the state in which the automaton of each training language ends, one-hot

`raw` is the features themselves, `centred` their first principal components, `whitened` these with variance 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np

from icl_lab.families.cache import cached
from icl_lab.families.languages.automata import Automaton, lengths_of, states_after
from icl_lab.families.languages.data import CodeConfig, LanguageData
from icl_lab.families.languages.pools import Pool, Pools, alphabet, pools_of
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


# --- the pools of a config as codes: one fit on the training pool, applied to the strings of every set ---


class Coded(NamedTuple):
    """Codes [S, D] of the strings of each pool; those of the unseen set are empty without one."""

    train: np.ndarray
    test: np.ndarray
    unseen: np.ndarray


@lru_cache(maxsize=16)
def coded_pools(data: LanguageData, code: CodeConfig) -> Coded:
    """The codes of a config's strings, of every kind but an autoencoder's. `ConfigError` for a dimension it lacks."""
    kept = f"codes {replace(data, num_pairs=1, positive_share=0.5)} {code}"
    return cached("languages", kept, lambda: _made(data, code), Coded._asdict, partial(_read, data))


def _read(data: LanguageData, arrays: Mapping[str, np.ndarray]) -> Coded:
    """The codes of these arrays; raises for those that are not of a config's strings."""
    coded, pools = Coded(**arrays), pools_of(data)
    counts = [0 if pool is None else len(pool.strings) for pool in (pools.train, pools.test, pools.unseen)]
    width = coded.train.shape[1]
    right = [part.shape for part in coded] == [(count, width) for count in counts]
    require(right and all(part.dtype == coded.train.dtype for part in coded), "they are not codes of these strings")
    require(all(np.isfinite(part).all() for part in coded), "they are not finite")
    return coded


def _made(data: LanguageData, code: CodeConfig) -> Coded:
    pools, pad = pools_of(data), len(alphabet(data))
    automata = tuple(language.automaton for language in pools.languages)
    kind = "one_hot" if code.kind == "learned" else code.kind

    def features(strings: np.ndarray) -> np.ndarray:
        return features_of(strings, kind, data, automata, pad)

    return code_with(features, pools, code)


def features_of(
    strings: np.ndarray, kind: str, data: LanguageData, automata: tuple[Automaton, ...], pad: int
) -> np.ndarray:
    """The features [S, F] of strings."""
    placed = aligned(strings, pad, data.alignment) if kind in ALIGNED else strings
    return FEATURES[kind](placed, pad, automata)


def code_with(features: Callable[[np.ndarray], np.ndarray], pools: Pools, code: CodeConfig) -> Coded:
    """The codes of all pools by these features, scaled as the training pool asks."""
    trained = features(pools.train.strings)
    if code.kind == "learned":  # which are scaled by the model
        return Coded(trained, features(pools.test.strings), _unseen(features, pools, trained.shape[1]))
    affine = fit(trained, frequencies(pools.train), code.dim, code.scale, code.kind)

    def coded(strings: np.ndarray) -> np.ndarray:
        vectors = affine(features(strings))
        ones = np.ones((len(vectors), int(code.constant)), np.float32)
        return np.concatenate([vectors, ones], axis=1)

    width = code.dim + int(code.constant)
    return Coded(coded(pools.train.strings), coded(pools.test.strings), _unseen(coded, pools, width))


def _unseen(coded: Callable[[np.ndarray], np.ndarray], pools: Pools, width: int) -> np.ndarray:
    return coded(pools.unseen.strings) if pools.unseen else np.zeros((0, width), np.float32)


def frequencies(pool: Pool) -> np.ndarray:
    """How often each string [S] stands among a pool's draws."""
    draws = np.concatenate([pool.positives.ravel(), pool.negatives.ravel()])
    return np.bincount(draws, minlength=len(pool.strings)).astype(np.float64)
