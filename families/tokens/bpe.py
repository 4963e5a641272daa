"""Byte-pair encoding of text, by characters: which pieces are symbols, and text as their numbers and back.

Text is cut into words with the space before them, marks and white space; within these the most frequent pair of symbols
becomes a symbol of its own, again and again. Sennrich et al. 2016 (arXiv 1508.07909), Sec. 3.2. The first symbols are
the characters of the text, so what has others cannot be encoded.
"""

from __future__ import annotations

import heapq
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from icl_lab.src.checks import ConfigError, require

PIECES = re.compile(r" ?\w+| ?[^\w\s]+|\s+")  # every character is in one of them
FEWEST, MOST = 256, 5000  # symbols

Pair = tuple[int, int]


class Vocabulary(NamedTuple):
    """The symbols, characters first; merges: the pair that each further symbol is made of, in the order of making."""

    symbols: tuple[str, ...]
    merges: tuple[Pair, ...]

    @classmethod
    def of(cls, letters: Iterable[str], merges: Sequence[Pair]) -> Vocabulary:
        """The vocabulary of these characters, and of a symbol for each pair of earlier ones."""
        symbols = list(letters)
        for one, two in merges:
            symbols.append(symbols[one] + symbols[two])
        return cls(tuple(symbols), tuple(merges))

    @property
    def letters(self) -> tuple[str, ...]:
        """The symbols that are characters."""
        return self.symbols[: len(self.symbols) - len(self.merges)]

    def encode(self, text: str) -> np.ndarray:
        """The numbers [T] of a text's symbols; `ConfigError` for a character that is none of them."""
        numbers = {symbol: number for number, symbol in enumerate(self.letters)}
        unknown = sorted(set(text) - set(numbers))
        require(
            not unknown,
            f"{unknown[0]!r} does not occur in the text that the vocabulary was made from" if unknown else "",
        )
        ranks = {pair: rank for rank, pair in enumerate(self.merges)}
        known: dict[str, list[int]] = {}
        found: list[int] = []
        for piece in PIECES.findall(text):
            if piece not in known:
                known[piece] = self._merged([numbers[letter] for letter in piece], ranks)
            found += known[piece]
        return np.array(found, np.int32)

    def _merged(self, symbols: list[int], ranks: Mapping[Pair, int]) -> list[int]:
        """A piece's symbols after all merges, the earliest ones first."""
        none, characters = len(ranks), len(self.symbols) - len(self.merges)
        while len(symbols) > 1:
            rank = min(ranks.get(pair, none) for pair in pairwise(symbols))
            if rank == none:
                break
            symbols = _with(symbols, self.merges[rank], characters + rank)
        return symbols

    def decode(self, numbers: Iterable[int]) -> str:
        """The text of these symbols."""
        return "".join(self.symbols[number] for number in numbers)


def vocabulary_of(text: str, size: int, others: str = "") -> Vocabulary:
    """The vocabulary of a text, which knows the characters of others too; `ConfigError` for too few distinct pieces."""
    require(FEWEST <= size <= MOST, f"num_symbols is {size}; the vocabulary of a text has {FEWEST} to {MOST} pieces")
    letters = sorted({*text, *others})
    require(len(letters) > 1, "all characters of the text are the same; a model needs two to tell apart")
    if len(letters) > size:
        raise ConfigError(
            f"num_symbols is {size}, but the text has {len(letters)} distinct characters; raise num_symbols"
        )
    numbers = {letter: number for number, letter in enumerate(letters)}
    words = [
        _Word([numbers[letter] for letter in piece], count) for piece, count in Counter(PIECES.findall(text)).items()
    ]
    merges, pairs = list[Pair](), _Pairs(words)
    while len(letters) + len(merges) < size:
        pair = pairs.most_frequent()
        if pair is None:
            raise ConfigError(
                f"num_symbols is {size}, but the text has only {len(letters) + len(merges)} distinct pieces"
            )
        pairs.merge(pair, len(letters) + len(merges))
        merges.append(pair)
    return Vocabulary.of(letters, merges)


class _Word(NamedTuple):
    """A piece of text as symbols, which merges shorten, and how often it comes."""

    symbols: list[int]
    times: int


class _Pairs:
    """How often each pair of symbols comes in words, kept while pairs are merged."""

    def __init__(self, words: Sequence[_Word]):
        self.words = words
        self.counts: Counter[Pair] = Counter()
        self.places: defaultdict[Pair, set[int]] = defaultdict(set)
        for place, word in enumerate(words):
            self._add(place, word, 1)
        self.heap = [(-count, pair) for pair, count in self.counts.items()]
        heapq.heapify(self.heap)

    def most_frequent(self) -> Pair | None:
        """The pair that comes most often, of several the first in order; None where no word has two symbols."""
        while self.heap:
            count, pair = self.heap[0]
            if -count == self.counts[pair] and count < 0:
                return pair
            heapq.heappop(self.heap)  # it has changed since
        return None

    def merge(self, pair: Pair, symbol: int) -> None:
        """Makes a symbol of a pair in all words."""
        changed: set[Pair] = set()
        for place in sorted(self.places[pair]):
            word = self.words[place]
            changed |= self._add(place, word, -1)
            word.symbols[:] = _with(word.symbols, pair, symbol)
            changed |= self._add(place, word, 1)
        for other in changed:
            if self.counts[other] > 0:
                heapq.heappush(self.heap, (-self.counts[other], other))

    def _add(self, place: int, word: _Word, sign: int) -> set[Pair]:
        found = list(pairwise(word.symbols))
        for pair in found:
            self.counts[pair] += sign * word.times
            (self.places[pair].add if sign > 0 else self.places[pair].discard)(place)
        return set(found)


def _with(symbols: Sequence[int], pair: Pair, symbol: int) -> list[int]:
    """Symbols in which each pair, from the left, is one symbol."""
    found: list[int] = []
    place = 0
    while place < len(symbols):
        here = place + 1 < len(symbols) and (symbols[place], symbols[place + 1]) == pair
        found.append(symbol if here else symbols[place])
        place += 1 + here
    return found
