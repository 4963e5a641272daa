"""Pools of labelled strings: what contexts are drawn from, built once and kept in a cache by what they depend on.

A string belongs to the training or to the test set by a hash of it, whatever its label and language: no string of the
test set is ever trained on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from languages.automata import Automaton, agree
from languages.cache import cached
from languages.config import LanguageData
from languages.named import RANDOM, Language, check_different, common_alphabet, expand, languages_of
from languages.negatives import MODES, NEED_OTHERS, Draw, Source
from languages.sampling import Sampler
from src.checks import ConfigError, require

SETS = ("train", "test", "unseen")  # trained languages; their test strings; other languages, test strings
TRIES = 400  # rounds of drawing until a pool is full
HASH_SEED = 20_221_214  # of the hash by which strings are divided


class Pool(NamedTuple):
    """Distinct strings [S, L], and the draws from them: positives and negatives [M, P], rows of `strings`.

    A string stands among a language's draws as often as it was drawn.
    """

    strings: np.ndarray
    positives: np.ndarray
    negatives: np.ndarray


class Pools(NamedTuple):
    """The pools of a config, and the languages of training and of the unseen set (empty without one)."""

    train: Pool
    test: Pool
    unseen: Pool | None
    languages: list[Language]
    unseen_languages: list[Language]


def alphabet(data: LanguageData) -> str:
    """The alphabet of a config's languages."""
    return common_alphabet((*data.languages, *data.unseen_languages), data.alphabet)


def training_languages(data: LanguageData) -> list[Language]:
    """The languages of training."""
    lengths, seed = (data.min_length, data.max_length), data.pool_seed
    return languages_of(data.languages, alphabet(data), lengths, data.num_languages, data.num_states, (seed, 0))


def unseen_languages(data: LanguageData) -> list[Language]:
    """The languages that are tested on alone, none of which agrees with one that is trained on at the asked lengths."""
    lengths, trained = (data.min_length, data.max_length), training_languages(data)
    sizes = [Sampler(language.automaton, *lengths).total for language in trained]

    def known(language: Language) -> bool:
        size = Sampler(language.automaton, *lengths).total
        alike = [other for other, its in zip(trained, sizes, strict=True) if its == size]
        return any(agree(language.automaton, other.automaton, lengths) for other in alike)

    languages: list[Language] = []
    for name in expand(data.unseen_languages):
        if name == RANDOM:  # enough that as many are left as are asked for
            more, stream = data.num_unseen + len(trained), (data.pool_seed, 1)
            drawn = languages_of((RANDOM,), alphabet(data), lengths, more, data.num_states, stream)
            languages += [language for language in drawn if not known(language)][: data.num_unseen]
            continue
        (language,) = languages_of((name,), alphabet(data), lengths)
        require(not known(language), f"the unseen language {name} is one of those trained on")
        languages.append(language)
    check_different(languages, lengths)
    return languages


@lru_cache(maxsize=16)
def pools_of(data: LanguageData) -> Pools:
    """The pools of a config; the same for equal ones. `ConfigError` for what cannot fill them."""
    arrays = cached(f"pools {replace(data, num_pairs=1, positive_share=0.5)}", lambda: _written(_made(data)))
    languages, unseen_languages = (_read_languages(arrays, name) for name in ("languages", "unseen_languages"))
    unseen = _read_pool(arrays, "unseen") if unseen_languages else None
    train, test = (_read_pool(arrays, name) for name in SETS[:2])
    return Pools(train, test, unseen, languages, unseen_languages)


def _made(data: LanguageData) -> Pools:
    trained, unseen = training_languages(data), unseen_languages(data)
    require(
        data.negatives not in NEED_OTHERS or len(trained) > 1,
        f"negatives {data.negatives} are members of another training language, of which there is none",
    )
    train, test = (_pool(data, trained, number) for number in (0, 1))
    return Pools(train, test, _pool(data, unseen, 2, trained) if unseen else None, trained, unseen)


def _written(pools: Pools) -> dict[str, np.ndarray]:
    """Pools as arrays, each language as three: its name and alphabet, transitions, and accepting states."""
    arrays: dict[str, np.ndarray] = {}
    for name, pool in zip(SETS, pools[:3], strict=True):
        arrays |= {f"{name}.{part}": array for part, array in pool._asdict().items()} if pool else {}
    for name in ("languages", "unseen_languages"):
        for number, language in enumerate(getattr(pools, name)):
            automaton, place = language.automaton, f"{name}.{number}"
            arrays[f"{place}.words"] = np.array([language.name, automaton.alphabet])
            arrays |= {f"{place}.transitions": automaton.transitions, f"{place}.accepting": automaton.accepting}
    return arrays


def _read_pool(arrays: Mapping[str, np.ndarray], name: str) -> Pool:
    return Pool(*(arrays[f"{name}.{part}"] for part in Pool._fields))


def _read_languages(arrays: Mapping[str, np.ndarray], name: str) -> list[Language]:
    languages: list[Language] = []
    while f"{name}.{len(languages)}.words" in arrays:
        words, *parts = (arrays[f"{name}.{len(languages)}.{part}"] for part in ("words", "transitions", "accepting"))
        languages.append(Language(str(words[0]), Automaton(str(words[1]), *parts)))
    return languages


def _pool(data: LanguageData, languages: Sequence[Language], number: int, spare: Sequence[Language] = ()) -> Pool:
    """The pool of a set, by its number in `SETS`; `spare` has other languages where the set has but one."""
    rng = np.random.default_rng([data.pool_seed, 2, number])
    automata = [language.automaton for language in languages]

    def kept(strings: np.ndarray) -> np.ndarray:
        return np.asarray(in_test_set(strings, data.test_share, data.pool_seed) == (number > 0))

    rows: list[np.ndarray] = []
    for label in (True, False):
        for language in languages:
            automaton = language.automaton
            others = [other for other in automata if other is not automaton] or [other.automaton for other in spare]
            source = Source(automaton, others, data.min_length, data.max_length, kept, rng)
            draw = MODES[data.negatives](source) if not label else source.members_of(automaton, kept).draw
            words = f"{'members' if label else f'non-members ({data.negatives})'} of {language.name}"
            rows.append(_filled(rng, draw, data, SETS[number], words))
    strings, inverse = np.unique(np.concatenate(rows), axis=0, return_inverse=True)
    index = inverse.reshape(2, len(languages), data.pool_size).astype(np.int32)
    return Pool(strings, index[0], index[1])


def _filled(rng: np.random.Generator, draw: Draw, data: LanguageData, which: str, words: str) -> np.ndarray:
    """`pool_size` draws; `ConfigError` where there is next to nothing to draw."""
    draws: list[np.ndarray] = []
    for attempt in range(TRIES):
        draws.append(draw(rng, data.pool_size))
        have = sum(map(len, draws))
        if have >= data.pool_size:
            return np.concatenate(draws)[: data.pool_size]
        if attempt == 3 and have == 0:
            break
    where = "training" if which == "train" else "test"
    raise ConfigError(
        f"there are too few {words} of length {data.min_length} to {data.max_length} among the strings of the {where} "
        "set; allow other lengths"
    )


def in_test_set(strings: np.ndarray, share: float, seed: int) -> np.ndarray:
    """Which strings [B, L] are of the test set, a share of all that there are, by a hash that a seed chooses: [B]."""
    factors = np.random.default_rng([HASH_SEED, seed]).integers(
        1, 2**63, size=strings.shape[1], dtype=np.uint64
    ) | np.uint64(1)
    with np.errstate(over="ignore"):
        mixed = ((strings.astype(np.uint64) + np.uint64(1)) * factors).sum(axis=1, dtype=np.uint64)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):  # splitmix64's last steps
            mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    mixed ^= mixed >> np.uint64(31)
    return np.asarray(mixed < np.uint64(int(share * 2**64)))
