"""Members of a language: uniform by length, then uniform among the members of that length. Exact, without rejection."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np

from icl_lab.families.languages.automata import Automaton, counts

FEW = 64  # strings below which symbols one by one are faster than arrays


class Sampler:
    """Draws members of lengths from `min_length` to `max_length`.

    A length is uniform among those that have members; a member of it is drawn symbol by symbol, each with the share of
    the completions that begin with it, which are counted exactly.
    """

    def __init__(self, automaton: Automaton, min_length: int, max_length: int):
        self.automaton, self.max_length = automaton, max_length
        self.completions = counts(automaton, max_length)
        self.lengths = [length for length in range(min_length, max_length + 1) if self.completions[length][0] > 0]

    @property
    def total(self) -> int:
        """How many members there are of these lengths."""
        return sum(self.completions[length][0] for length in self.lengths)

    @cached_property
    def cumulative(self) -> np.ndarray:
        """[max_length + 1, S, A]: the chance of a symbol or an earlier one, with so many symbols to go from a state."""
        states, symbols = self.automaton.transitions.shape
        shares = np.zeros((self.max_length + 1, states, symbols))
        for left in range(1, self.max_length + 1):
            for state, targets in enumerate(self.automaton.transitions.tolist()):
                completions = [self.completions[left - 1][target] for target in targets]
                total = sum(completions)
                shares[left, state] = [count / total if total else 0.0 for count in completions]
        return np.cumsum(shares, axis=2)

    @cached_property
    def _cumulative_lists(self) -> list[list[list[float]]]:
        lists: list[list[list[float]]] = self.cumulative.tolist()
        return lists

    @cached_property
    def _transition_lists(self) -> list[list[int]]:
        lists: list[list[int]] = self.automaton.transitions.tolist()
        return lists

    def draw(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Members [count, max_length], padded."""
        return self.of_lengths(rng, rng.choice(np.array(self.lengths), size=count))

    def of_lengths(self, rng: np.random.Generator, lengths: np.ndarray) -> np.ndarray:
        """A member of each of these lengths [count], which must have some: [count, max_length]."""
        if (count := len(lengths)) < FEW:
            return self._of_few(rng, lengths.tolist())
        left = lengths.copy()
        cumulative, transitions = self.cumulative, self.automaton.transitions
        strings = np.full((count, self.max_length), self.automaton.pad, np.uint8)
        state = np.zeros(count, np.int64)
        for place in range(self.max_length):
            (going,) = (left > 0).nonzero()
            if not len(going):
                break
            before = state[going]
            chances = cumulative[left[going], before]
            # scaled by the total, which rounding may leave below 1
            drawn = rng.random(len(going))[:, None] * chances[:, -1:]
            symbol = (chances > drawn).argmax(axis=1)
            strings[going, place] = symbol
            state[going] = transitions[before, symbol]
            left[going] -= 1
        return strings

    def _of_few(self, rng: np.random.Generator, lengths: Sequence[int]) -> np.ndarray:
        """The same members, to the last symbol, one symbol after another: faster than arrays of a few numbers."""
        strings = np.full((len(lengths), self.max_length), self.automaton.pad, np.uint8)
        draws, states = iter(rng.random(sum(lengths)).tolist()), [0] * len(lengths)
        for place in range(max(lengths, default=0)):
            for row, length in enumerate(lengths):
                if place < length:
                    chances = self._cumulative_lists[length - place][states[row]]
                    strings[row, place] = symbol = bisect_right(chances, next(draws) * chances[-1])
                    states[row] = self._transition_lists[states[row]][symbol]
        return strings


class SplitSampler:
    """Draws members of one part of all strings: uniform by length, then among the members of that length in the part.

    kept(strings) [B, L] -> [B] says which strings are of the part. Lengths with no member in it, as far as `PROBES`
    draws tell, are left out.
    """

    PROBES = 256

    def __init__(self, sampler: Sampler, kept: Callable[[np.ndarray], np.ndarray], rng: np.random.Generator):
        self.sampler, self.kept = sampler, kept
        probed = np.repeat(np.array(sampler.lengths, np.int64), self.PROBES)
        there = kept(sampler.of_lengths(rng, probed)).reshape(-1, self.PROBES).any(axis=1)
        self.lengths = np.array(sampler.lengths, np.int64)[there]

    def draw(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Members [count, max_length] of the part; none at all where it has none."""
        strings = np.empty((count if len(self.lengths) else 0, self.sampler.max_length), np.uint8)
        if not len(self.lengths):
            return strings
        lengths, pending = rng.choice(self.lengths, size=count), np.arange(count)
        while len(pending):
            strings[pending] = self.sampler.of_lengths(rng, lengths[pending])
            pending = pending[~self.kept(strings[pending])]
        return strings
