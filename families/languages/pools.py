"""Pools of labelled strings: what contexts are drawn from, built once and kept in a cache by what they depend on.

A string belongs to the training or to the test set (`families.languages.split`), whatever its label and language: no
string of the test set is ever trained on. Each set has at least `LEAST_STRINGS` of a language and a label.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np

from icl_lab.families.cache import cached
from icl_lab.families.languages.automata import Automaton, agree
from icl_lab.families.languages.data import LanguageData
from icl_lab.families.languages.named import RANDOM, Language, check_different, common_alphabet, expand, languages_of
from icl_lab.families.languages.negatives import MODES, NEED_OTHERS, Draw, Source
from icl_lab.families.languages.sampling import Sampler
from icl_lab.families.languages.split import Split, stratified
from icl_lab.src.checks import ConfigError, require

SETS = ("train", "test", "unseen")  # trained languages; their test strings; other languages, test strings
TRIES = 400  # rounds of drawing until a pool is full
LEAST_STRINGS = (
    2  # distinct ones of a language and a label in each set: the most that leaves the study's pools as they are
)
SUPPORT_DRAWS = 8192  # that find all strings of a group that has few


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
    """The languages that are only tested on, none of which agrees with one that is trained on at the asked lengths."""
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
    kept = f"pools {replace(data, num_pairs=1, positive_share=0.5)}"
    return cached("languages", kept, lambda: _made(data), _written, partial(_read, data))


def distinct_strings(pools: Pools) -> dict[str, dict[str, list[int]]]:
    """How many distinct members and non-members of each language a set has, the languages in their order."""

    def numbers(draws: np.ndarray) -> list[int]:
        return [len(np.unique(row)) for row in draws]

    sets = {name: pool for name, pool in zip(SETS, pools[:3], strict=True) if pool is not None}
    return {
        name: {"members": numbers(pool.positives), "non_members": numbers(pool.negatives)}
        for name, pool in sets.items()
    }


def _made(data: LanguageData) -> Pools:
    trained, unseen = training_languages(data), unseen_languages(data)
    require(
        data.negatives not in NEED_OTHERS or len(trained) > 1,
        f"negatives {data.negatives} are members of another training language, and there is only one; choose other "
        "negatives, such as --negatives random_abc",
    )
    (train, test), split = _pools(data, trained, (0, 1), Split(data.test_share, data.pool_seed))
    if not unseen:
        return Pools(train, test, None, trained, unseen)
    (others,), _ = _pools(data, unseen, (2,), split, trained, frozenset(map(np.ndarray.tobytes, train.strings)))
    return Pools(train, test, others, trained, unseen)


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


def _read(data: LanguageData, arrays: Mapping[str, np.ndarray]) -> Pools:
    """What `_written` made arrays of; raises for arrays that are not of such pools."""
    languages, unseen_languages = (_read_languages(arrays, name) for name in ("languages", "unseen_languages"))
    train, test = (_read_pool(data, arrays, name, len(languages)) for name in SETS[:2])
    unseen = _read_pool(data, arrays, "unseen", len(unseen_languages)) if unseen_languages else None
    pools = Pools(train, test, unseen, languages, unseen_languages)
    require(_written(pools).keys() == arrays.keys(), "some arrays belong to no pool or language")
    return pools


def _read_pool(data: LanguageData, arrays: Mapping[str, np.ndarray], name: str, count: int) -> Pool:
    pool, draws = Pool(*(arrays[f"{name}.{part}"] for part in Pool._fields)), (count, data.pool_size)
    rows = [(np.uint8, len(pool.strings), data.max_length), (np.int32, *draws), (np.int32, *draws)]
    index = np.stack(pool[1:])
    right = [(part.dtype, *part.shape) for part in pool] == rows and 0 <= index.min() <= index.max() < len(pool.strings)
    require(count > 0 and right, f"{name} is not a pool of these languages")
    return pool


def _read_languages(arrays: Mapping[str, np.ndarray], name: str) -> list[Language]:
    languages: list[Language] = []
    while f"{name}.{len(languages)}.words" in arrays:
        words, *parts = (arrays[f"{name}.{len(languages)}.{part}"] for part in ("words", "transitions", "accepting"))
        automaton = Automaton(str(words[1]), *parts)
        states = len(automaton.accepting)
        inside = bool(((automaton.transitions >= 0) & (automaton.transitions < states)).all())
        right = automaton.transitions.shape == (states, automaton.pad) and automaton.accepting.dtype == bool
        require(states > 0 and inside and right, f"{name} has an entry that is not an automaton")
        languages.append(Language(str(words[0]), automaton))
    return languages


class _Group(NamedTuple):
    """The strings of a language and a label in a set: `draw` gives some, `words` says what they are."""

    language: Automaton
    others: list[Automaton]
    label: bool
    words: str

    def draw(self, data: LanguageData, kept: Callable[[np.ndarray], np.ndarray], rng: np.random.Generator) -> Draw:
        """Draws its strings that are `kept`."""
        source = Source(self.language, self.others, data.min_length, data.max_length, kept, rng)
        return source.members_of(self.language, kept).draw if self.label else MODES[data.negatives](source)


def _groups(data: LanguageData, languages: Sequence[Language], spare: Sequence[Language]) -> list[_Group]:
    """Members of each language, then non-members; `spare` has other languages where there is but one."""
    groups = []
    for label in (True, False):
        for language in languages:
            others = [other.automaton for other in languages if other is not language]
            words = f"{'members' if label else f'non-members ({data.negatives})'} of {language.name}"
            groups.append(_Group(language.automaton, others or [other.automaton for other in spare], label, words))
    return groups


def _pools(
    data: LanguageData,
    languages: Sequence[Language],
    numbers: Sequence[int],
    split: Split,
    spare: Sequence[Language] = (),
    trained: frozenset[bytes] | None = None,
) -> tuple[list[Pool], Split]:
    """The pools of sets, by their numbers in `SETS`, and the split, which is stratified where a group has too few."""
    groups, least = _groups(data, languages, spare), min(LEAST_STRINGS, data.pool_size)
    drawn = {number: _drawn(data, groups, number, split) for number in numbers}
    if any(_are_few(strings, data, least) for rows in drawn.values() for strings in rows):
        split = stratified(split, _supports(data, groups), least, trained)
        drawn = {number: _drawn(data, groups, number, split) for number in numbers}
    for number, rows in drawn.items():
        for group, strings in zip(groups, rows, strict=True):
            if _are_few(strings, data, least):
                raise ConfigError(_too_few(data, group, number, len(np.unique(strings, axis=0)), least))
    return [_pool(rows) for rows in drawn.values()], split


def _drawn(data: LanguageData, groups: Sequence[_Group], number: int, split: Split) -> list[np.ndarray]:
    """`pool_size` draws for each group of a set, by its number in `SETS`; fewer where there is next to nothing."""
    rng = np.random.default_rng([data.pool_seed, 2, number])

    def kept(strings: np.ndarray) -> np.ndarray:
        return np.asarray(split.tests(strings) == (number > 0))

    return [_filled(rng, group.draw(data, kept, rng), data.pool_size) for group in groups]


def _supports(data: LanguageData, groups: Sequence[_Group]) -> list[np.ndarray]:
    """Distinct strings of each group, of either set: all of a group that has few."""
    rng = np.random.default_rng([data.pool_seed, 3])
    draws = (group.draw(data, lambda strings: np.ones(len(strings), bool), rng) for group in groups)
    return [np.unique(_filled(rng, draw, SUPPORT_DRAWS), axis=0) for draw in draws]


def _filled(rng: np.random.Generator, draw: Draw, count: int) -> np.ndarray:
    """So many draws; fewer where there is next to nothing to draw."""
    draws: list[np.ndarray] = []
    for attempt in range(TRIES):
        draws.append(draw(rng, count))
        have = sum(map(len, draws))
        if have >= count or (attempt == 3 and have == 0):
            break
    return np.concatenate(draws)[:count]


def _are_few(strings: np.ndarray, data: LanguageData, least: int) -> bool:
    return len(strings) < data.pool_size or len(np.unique(strings, axis=0)) < least


def _pool(rows: Sequence[np.ndarray]) -> Pool:
    strings, inverse = np.unique(np.concatenate(rows), axis=0, return_inverse=True)
    index = inverse.reshape(2, len(rows) // 2, -1).astype(np.int32)
    return Pool(strings, index[0], index[1])


def _too_few(data: LanguageData, group: _Group, number: int, have: int, least: int) -> str:
    other = [] if group.label else ["other --negatives"]
    other += ["other --unseen_languages"] if number == SETS.index("unseen") else []
    return (
        f"there are too few {group.words} of length {data.min_length} to {data.max_length} among the strings of the "
        f"{'test' if number else 'training'} set: {have}, where {least} are needed; allow "
        f"{', '.join([*other, 'more lengths (--max_length)'])} or another share of tests (--config.test_share)"
    )
