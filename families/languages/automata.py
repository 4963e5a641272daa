"""Deterministic automata: made of regular expressions or at random, and what they say of arrays of strings.

A string is a row of symbols (uint8, an index into the alphabet), then pads, the number after the last symbol. Regular
expressions and minimal automata are left to automata-lib; operations on many strings at once are here.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from icl_lab.src.checks import require

MOST_SYMBOLS = 26
MOST_STATES = 512


class Automaton(NamedTuple):
    """A complete deterministic automaton, which begins in state 0.

    transitions [S, A]: the state after a symbol; accepting [S]: whether a string that ends there is a member.
    """

    alphabet: str
    transitions: np.ndarray
    accepting: np.ndarray

    @property
    def pad(self) -> int:
        """The number that stands for no symbol."""
        return len(self.alphabet)


def minimal(automaton: Automaton) -> Automaton:
    """The minimal automaton of the same language, its states numbered in the order in which a search finds them."""
    dfa, _, _ = automata_lib()
    states = range(len(automaton.transitions))
    moves = {
        state: dict(zip(automaton.alphabet, map(int, automaton.transitions[state]), strict=True)) for state in states
    }
    accepting = {state for state in states if automaton.accepting[state]}
    made = dfa(
        states=set(states),
        input_symbols=set(automaton.alphabet),
        transitions=moves,
        initial_state=0,
        final_states=accepting,
    )
    return numbered(made.minify(), automaton.alphabet)


def random_automaton(rng: np.random.Generator, num_states: int, alphabet: str) -> Automaton:
    """The minimal one of `num_states` states with uniform transitions, each accepting with probability 1/2."""
    transitions = rng.integers(num_states, size=(num_states, len(alphabet)))
    return minimal(Automaton(alphabet, transitions, rng.random(num_states) < 0.5))


def complement(automaton: Automaton) -> Automaton:
    """The automaton of the strings that are no members."""
    return automaton._replace(accepting=~automaton.accepting)


def check_alphabet(alphabet: str) -> str:
    """The alphabet; `ConfigError` unless it is of 2 to 26 different letters or digits."""
    require(
        2 <= len(alphabet) <= MOST_SYMBOLS,
        f"the alphabet {alphabet!r} has {len(alphabet)} symbols; it must have 2 to {MOST_SYMBOLS}",
    )
    wrong = [symbol for symbol in alphabet if not (symbol.isascii() and symbol.isalnum())]
    require(not wrong, f"the alphabet {alphabet!r} has {''.join(wrong[:1])!r}; symbols are letters and digits")
    require(len(set(alphabet)) == len(alphabet), f"the alphabet {alphabet!r} has a symbol twice")
    return alphabet


# --- many strings at once ---


def lengths_of(strings: np.ndarray, pad: int) -> np.ndarray:
    """The places [B] up to the last symbol of strings [B, L]."""
    there = strings != pad
    return np.where(there.any(axis=1), strings.shape[1] - np.argmax(there[:, ::-1], axis=1), 0)


def states_after(automaton: Automaton, strings: np.ndarray) -> np.ndarray:
    """The state [B] after strings [B, L]; -1 where a pad stands before a symbol, which no word of the alphabet has."""
    state, ended = np.zeros(len(strings), np.int64), np.zeros(len(strings), bool)
    for column in strings.T:
        is_pad = column == automaton.pad
        state = np.where(ended & ~is_pad, -1, state)
        moved = automaton.transitions[np.maximum(state, 0), np.where(is_pad, 0, column)]
        state = np.where(is_pad | (state < 0), state, moved)
        ended |= is_pad
    return state


def accepts(automaton: Automaton, strings: np.ndarray) -> np.ndarray:
    """Whether strings [B, L] are members [B]. One with a pad before a symbol is not."""
    state = states_after(automaton, strings)
    return np.asarray((state >= 0) & automaton.accepting[np.maximum(state, 0)])


def counts(automaton: Automaton, max_length: int) -> list[list[int]]:
    """How many strings of each length lead from each state to an accepting one: [max_length + 1][S], exact."""
    by_length = [[int(accepting) for accepting in automaton.accepting]]
    for _ in range(max_length):
        last = by_length[-1]
        by_length.append([sum(last[target] for target in row) for row in automaton.transitions.tolist()])
    return by_length


def agree(one: Automaton, other: Automaton, lengths: tuple[int, int]) -> bool:
    """Whether two languages over one alphabet have the same members of these lengths."""
    states = len(other.transitions)
    pairs = one.transitions[:, None] * states + other.transitions[None]
    differ = one.accepting[:, None] != other.accepting[None]
    both = Automaton(one.alphabet, pairs.reshape(-1, len(one.alphabet)), differ.ravel())
    reached = np.zeros(len(both.accepting), bool)
    reached[0] = True
    for length in range(lengths[1] + 1):
        if length >= lengths[0] and (reached & both.accepting).any():
            return False
        targets = both.transitions[reached].ravel()
        reached = np.zeros_like(reached)
        reached[targets] = True
    return True


def text_of(string: np.ndarray, alphabet: str, pad: str = "") -> str:
    """A string [L] as text."""
    return "".join(alphabet[symbol] if symbol < len(alphabet) else pad for symbol in string)


def encoded(texts: list[str], alphabet: str, length: int) -> np.ndarray:
    """Texts as strings [B, length], padded."""
    strings = np.full((len(texts), length), len(alphabet), np.uint8)
    for row, text in zip(strings, texts, strict=True):
        row[: len(text)] = [alphabet.index(symbol) for symbol in text]
    return strings


# --- automata-lib ---


def automata_lib() -> tuple[Any, Any, tuple[type[Exception], ...]]:
    """DFA, NFA and the errors of automata-lib, which takes a moment to import."""
    from automata.base.exceptions import AutomatonException, RegexException
    from automata.fa.dfa import DFA
    from automata.fa.nfa import NFA

    return DFA, NFA, (AutomatonException, RegexException)


def numbered(dfa: Any, alphabet: str) -> Automaton:
    """With states numbered in the order in which a breadth-first search finds them, and a sink where moves lack."""
    numbers, order = {dfa.initial_state: 0}, [dfa.initial_state]
    moves: list[list[int]] = []
    sink = -1
    for state in order:  # grows on the way
        row = []
        for symbol in alphabet:
            target = dfa.transitions.get(state, {}).get(symbol)
            if target is None:
                row.append(sink)
                continue
            if target not in numbers:
                numbers[target] = len(order)
                order.append(target)
            row.append(numbers[target])
        moves.append(row)
    accepting = [state in dfa.final_states for state in order]
    if any(sink in row for row in moves):
        moves = [[target if target != sink else len(order) for target in row] for row in moves]
        moves.append([len(order)] * len(alphabet))
        accepting.append(False)
    require(len(moves) <= MOST_STATES, f"an automaton has {len(moves)} states; the maximum is {MOST_STATES}")
    return Automaton(alphabet, np.array(moves, np.int64), np.array(accepting, bool))
