"""Non-members of a language, by mode: what a string that is not in it looks like.

A mode draws strings of one part, training or test, that its language does not have: accidental members are drawn again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import comb
from typing import NamedTuple

import numpy as np

from icl_lab.families.languages.automata import Automaton, accepts, complement, lengths_of
from icl_lab.families.languages.sampling import Sampler, SplitSampler

Draw = Callable[[np.random.Generator, int], np.ndarray]  # strings [at most that many, L]
INSERT, KINDS_OF_EDIT = 1, 3  # replace a symbol, put one in, leave one out
MIXED = ("other_language", "near_miss")  # half of each
NEED_OTHERS = ("other_language", "mixed")


class Source(NamedTuple):
    """What non-members are made of: the language, the other languages, the lengths, and the part of all strings.

    kept(strings) [B, L] -> [B]: which are of the part; rng: for what is tried once, before anything is drawn.
    """

    automaton: Automaton
    others: Sequence[Automaton]
    min_length: int
    max_length: int
    kept: Callable[[np.ndarray], np.ndarray]
    rng: np.random.Generator

    def non_members(self, strings: np.ndarray) -> np.ndarray:
        """Which strings [B, L] are of the part and not of the language: [B]."""
        return np.asarray(self.kept(strings) & ~accepts(self.automaton, strings))

    def members_of(self, automaton: Automaton, kept: Callable[[np.ndarray], np.ndarray]) -> SplitSampler:
        """A sampler of the strings of an automaton that are `kept`."""
        return SplitSampler(Sampler(automaton, self.min_length, self.max_length), kept, self.rng)


def random_hash(source: Source) -> Draw:
    """Symbols and pads alike, each with the same chance, in a number of places that is uniform; as published.

    Most have a pad before a symbol, which no member has. Where the least length is above 1 there are at least so many
    symbols among them.
    """
    pad, most = source.automaton.pad, source.max_length
    scatter = _scattered if source.min_length > 1 else _anything

    def draw(rng: np.random.Generator, count: int) -> np.ndarray:
        strings = scatter(rng, count, pad, source.min_length, most)
        return np.asarray(strings[source.non_members(strings)])

    return draw


def _anything(rng: np.random.Generator, count: int, pad: int, least: int, most: int) -> np.ndarray:
    """Symbols and pads in the first `least` to `most` places, and pads behind."""
    strings = rng.integers(pad + 1, size=(count, most)).astype(np.uint8)
    ends = rng.integers(least, most + 1, size=count)
    strings[np.arange(most)[None] >= ends[:, None]] = pad
    return strings


def _scattered(rng: np.random.Generator, count: int, pad: int, least: int, most: int) -> np.ndarray:
    """The same, given that there are at least `least` symbols: k of n places with the weight C(n, k) pad^k."""
    weights = np.array(
        [[comb(n, k) * float(pad) ** k * (k >= least) for k in range(most + 1)] for n in range(most + 1)]
    )
    chances = np.cumsum(weights, axis=1)
    ends = rng.integers(least, most + 1, size=count)
    symbols = (chances[ends] <= rng.random((count, 1)) * chances[ends, -1:]).sum(axis=1)
    order = rng.random((count, most)) + (np.arange(most)[None] >= ends[:, None])  # places behind the end come last
    filled = order.argsort(axis=1).argsort(axis=1) < symbols[:, None]
    return np.where(filled, rng.integers(pad, size=(count, most)), pad).astype(np.uint8)


def random_abc(source: Source) -> Draw:
    """A length that is uniform among those with non-members, then uniform among the non-members of that length."""
    return source.members_of(complement(source.automaton), source.kept).draw


def other_language(source: Source) -> Draw:
    """Members of another language, each of the others with the same chance, by length and then string as positives."""
    samplers = [source.members_of(other, source.non_members) for other in source.others]
    usable = [sampler for sampler in samplers if len(sampler.lengths)]

    def draw(rng: np.random.Generator, count: int) -> np.ndarray:
        if not usable:
            return np.empty((0, source.max_length), np.uint8)
        chosen = rng.integers(len(usable), size=count)
        strings = np.empty((count, source.max_length), np.uint8)
        for number, sampler in enumerate(usable):
            rows = np.flatnonzero(chosen == number)
            strings[rows] = sampler.draw(rng, len(rows))
        return strings

    return draw


def near_miss(source: Source) -> Draw:
    """Members after one edit: a symbol replaced by another, put in or left out, each with the same chance.

    Where the length does not allow it the string stays, a member, and is drawn again.
    """
    sampler = Sampler(source.automaton, source.min_length, source.max_length)

    def draw(rng: np.random.Generator, count: int) -> np.ndarray:
        strings = sampler.draw(rng, count)
        edited = edit(strings, source.automaton.pad, (source.min_length, source.max_length), rng)
        return np.asarray(edited[source.non_members(edited)])

    return draw


def edit(strings: np.ndarray, pad: int, lengths: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
    """Strings [B, L] after one edit each; as they were where it would leave the lengths."""
    count, places = strings.shape
    size, kind = lengths_of(strings, pad), np.asarray(rng.integers(KINDS_OF_EDIT, size=count))
    symbol, step = (rng.integers(low, pad, size=(count, 1)) for low in (0, 1))
    other = np.where(strings == pad, pad, (strings + step) % pad)  # any but the symbol that is there
    place = (rng.random(count) * (size + (kind == INSERT))).astype(np.int64)[:, None]
    column, pads = np.arange(places)[None], np.full((count, 1), pad, np.uint8)
    behind = np.concatenate([pads, strings[:, :-1]], axis=1)  # what stands one place before
    ahead = np.concatenate([strings[:, 1:], pads], axis=1)
    edited = np.choose(
        kind[:, None],
        [
            np.where(column == place, other, strings),
            np.where(column == place, symbol, np.where(column > place, behind, strings)),
            np.where(column >= place, ahead, strings),
        ],
    )
    allowed = np.choose(kind, [size > 0, size < lengths[1], size > lengths[0]])
    return np.where(allowed[:, None], edited, strings).astype(np.uint8)


def mixed(source: Source) -> Draw:
    """Half members of another language, half near misses."""
    draws = [MODES[mode](source) for mode in MIXED]

    def draw(rng: np.random.Generator, count: int) -> np.ndarray:
        parts = [_exactly(drawn, rng, count) for drawn in draws]
        if min(map(len, parts)) < count:
            return np.empty((0, source.max_length), np.uint8)
        return np.where(rng.random((count, 1)) < 0.5, *parts)

    return draw


def _exactly(draw: Draw, rng: np.random.Generator, count: int) -> np.ndarray:
    """So many strings of a draw that may give fewer; fewer where it gives none."""
    draws = [draw(rng, count)]
    while len(draws[-1]) and sum(map(len, draws)) < count:
        draws.append(draw(rng, count))
    return np.concatenate(draws)[:count]


MODES: dict[str, Callable[[Source], Draw]] = {
    "random_hash": random_hash,
    "random_abc": random_abc,
    "other_language": other_language,
    "near_miss": near_miss,
    "mixed": mixed,
}
