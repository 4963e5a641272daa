"""The pools of a config as codes: one fit on the training pool, applied to the strings of every set."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np

from icl_lab.families.languages import codes
from icl_lab.families.languages.automata import Automaton
from icl_lab.families.languages.cache import cached
from icl_lab.families.languages.data import CodeConfig, LanguageData
from icl_lab.families.languages.pools import Pool, Pools, alphabet, pools_of
from icl_lab.src.checks import require


class Coded(NamedTuple):
    """Codes [S, D] of the strings of each pool; those of the unseen set are empty without one."""

    train: np.ndarray
    test: np.ndarray
    unseen: np.ndarray


@lru_cache(maxsize=16)
def coded_pools(data: LanguageData, code: CodeConfig) -> Coded:
    """The codes of a config's strings, of every kind but an autoencoder's. `ConfigError` for a dimension it lacks."""
    kept = f"codes {replace(data, num_pairs=1, positive_share=0.5)} {code}"
    return cached(kept, lambda: _made(data, code), Coded._asdict, partial(_read, data))


def _read(data: LanguageData, arrays: Mapping[str, np.ndarray]) -> Coded:
    """The codes of these arrays; raises for those that are not of a config's strings."""
    coded, pools = Coded(**arrays), pools_of(data)
    counts = [0 if pool is None else len(pool.strings) for pool in (pools.train, pools.test, pools.unseen)]
    width = coded.train.shape[1]
    right = [part.shape for part in coded] == [(count, width) for count in counts]
    require(right and all(part.dtype == coded.train.dtype for part in coded), "they are no codes of these strings")
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
    placed = codes.aligned(strings, pad, data.alignment) if kind in codes.ALIGNED else strings
    return codes.FEATURES[kind](placed, pad, automata)


def code_with(features: Callable[[np.ndarray], np.ndarray], pools: Pools, code: CodeConfig) -> Coded:
    """The codes of all pools by these features, scaled as the training pool asks."""
    trained = features(pools.train.strings)
    if code.kind == "learned":  # which are scaled by the model
        return Coded(trained, features(pools.test.strings), _unseen(features, pools, trained.shape[1]))
    affine = codes.fit(trained, frequencies(pools.train), code.dim, code.scale, code.kind)

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
