"""Regular expressions: their one reading, which is that of `re.fullmatch`, and the minimal automata that they have.

What `re` and automata-lib read in two ways (anchors, lazy and possessive repeats, blanks, names of classes) is refused
in a sentence. Beyond `re` there is `&`, intersection. The automata are left to automata-lib, but for repeats of no
times, of which its parser makes one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from icl_lab.families.languages.automata import MOST_STATES, Automaton, automata_lib, check_alphabet, numbered
from icl_lab.src.checks import ConfigError, require

MOST_SUBSETS = 4096  # sets of states that a search for the deterministic automaton may meet, before it is minimal
MOST_TOKENS = 2048  # four for each state that there may be
MOST_SHOWN = 60  # characters of an expression in a message
TOKEN = re.compile(r"\{[^{}]*\}|\[[^\]]*\]|.", re.S)
SYMBOL, BOUNDS = re.compile(r"[0-9A-Za-z]"), re.compile(r"\{([0-9]*)(?:(,)([0-9]*))?\}")
CLASS, PART = re.compile(r"\[\^?((?:[0-9A-Za-z](?:-[0-9A-Za-z])?)+)\]"), re.compile(r"(.)(?:-(.))?")
SIMPLE_REPEATS, OPERATORS = "*+?", "|&"
REASONS = {
    "^": "it has ^; an expression describes whole strings and has no anchors",
    "$": "it has $; an expression describes whole strings and has no anchors",
    "\\": "it has a backslash; symbols are letters and digits, and classes are written out, as in [0-9]",
    "[": "it has a [ that does not begin a class of letters and digits, as in [ab], [a-c] or [^a]",
    "{": "it has a { that does not begin a repeat, as in {2}, {2,}, {,3} or {2,3}",
}


@lru_cache(maxsize=1024)
def of_expression(text: str, alphabet: str) -> Automaton:
    """The minimal automaton of a regular expression; `ConfigError` if it is none over this alphabet.

    `|` is or, `&` is and, both read from left to right; `*`, `+`, `?`, `{2,3}` repeat; `[ab]` and `[a-c]` are one of
    these symbols, `[^a]` one of the others, `.` any; `()` is the empty string. Note that `(ab[c])*` is `(abc)*`; where
    c may be left out write `(abc?)*`.
    """
    require(bool(text.strip()), "a regular expression is empty; () is the language of the empty string")
    tokens = TOKEN.findall(text)
    require(
        len(tokens) <= MOST_TOKENS, f"{shortened(text)} is too long; the maximum is {MOST_TOKENS} symbols and signs"
    )
    reason = _wrong(tokens, alphabet)
    require(reason is None, f"{shortened(text)} is not a regular expression over {alphabet}: {reason}")
    require(_size(tokens) <= MOST_STATES, f"{shortened(text)} needs too many states; the maximum is {MOST_STATES}")
    dfa, nfa, errors = automata_lib()
    try:
        made = nfa.from_regex(_without_repeats_of_none(tokens), input_symbols=set(alphabet))
    except errors as error:
        raise ConfigError(
            f"{shortened(text)} is not a regular expression over {alphabet}: {_sentence(error)}"
        ) from None
    fits = _subsets(made, alphabet) <= MOST_SUBSETS
    require(fits, f"{shortened(text)} needs too many states when made deterministic")
    return numbered(dfa.from_nfa(made, minify=True), alphabet)


def shortened(text: str) -> str:
    """An expression as it is named in a message."""
    return repr(text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}...")


# --- what an expression may be ---


def alphabet_of(expressions: tuple[str, ...]) -> str:
    """The symbols in regular expressions, in order; `ConfigError` for too many, and where there are none."""
    tokens = [token for text in expressions for token in TOKEN.findall(text)]
    symbols = {symbol for token in tokens for symbol in symbols_of(token)}
    require(bool(symbols), f"there is no symbol in the expressions {', '.join(map(repr, expressions))}")
    return check_alphabet("".join(sorted(symbols)))


def symbols_of(token: str) -> str:
    """The symbols that a token names: itself, or those in a class, its ranges written out."""
    match = CLASS.fullmatch(token)
    if not match:
        return token if SYMBOL.fullmatch(token) else ""
    parts = PART.findall(match[1])
    named = "".join("".join(map(chr, range(ord(first), ord(last or first) + 1))) for first, last in parts)
    return "".join(SYMBOL.findall(named))


def _wrong(tokens: Sequence[str], alphabet: str) -> str | None:
    """Why tokens are no expression over an alphabet, in words that complete a sentence; None where they are one."""
    before, depth = "", 0
    for token in tokens:
        depth += (token == "(") - (token == ")")
        if depth < 0:
            return "it has a ) that closes nothing"
        reason = _wrong_alone(token, alphabet) or _wrong_behind(token, before)
        if reason:
            return reason
        before = token
    if depth:
        return "it has a ( that is never closed"
    return _wrong_behind("", before)


def _wrong_alone(token: str, alphabet: str) -> str | None:
    match = CLASS.fullmatch(token)
    if match and any(last and not _is_range(first, last) for first, last in PART.findall(match[1])):
        return f"{token} has a range that is not of small letters, capitals or digits in their order"
    missing = [symbol for symbol in symbols_of(token) if symbol not in alphabet]
    if missing:
        return f"{missing[0]} is not a symbol of the alphabet"
    bounds = BOUNDS.fullmatch(token)
    if bounds and not (bounds[1] or bounds[2]):
        return REASONS["{"]
    if bounds and bounds[3] and _number(bounds[1]) > _number(bounds[3]):
        return f"{token} has its bounds in the wrong order"
    if match or bounds or SYMBOL.fullmatch(token) or token in ("(", ")", ".", *SIMPLE_REPEATS, *OPERATORS):
        return None
    if token.isspace():
        return "it has a blank, which is not a symbol; write each expression as one word"
    return REASONS.get(token[0], f"it has {token!r}; symbols are letters and digits")


def _is_range(first: str, last: str) -> bool:
    kinds = (str.isdigit, str.islower, str.isupper)
    return first <= last and any(kind(first) and kind(last) for kind in kinds)


def _wrong_behind(token: str, before: str) -> str | None:
    """Why a token may not stand behind another; nothing, before the first and behind the last, is an empty token."""
    nothing_before = before in ("", "(", *OPERATORS)
    if is_repeat(token) and is_repeat(before):
        return f"it has {token} behind {before}, which is ambiguous; write a repeat of a repeat as in (a+)?"
    if is_repeat(token) and nothing_before:
        return f"it has {token} with nothing before it to repeat"
    if token in ("", ")", *OPERATORS) and nothing_before and before + token != "()":
        return "a side of | or & is empty; the empty string is ()"
    return None


def is_repeat(token: str) -> bool:
    """Whether a token repeats what stands before it."""
    return token.startswith("{") or token in tuple(SIMPLE_REPEATS)


def _number(digits: str) -> int:
    """A number of a repeat, 0 where it is left out, to seven digits: more than any automaton has states."""
    return int(digits.lstrip("0")[:7] or 0)


def _bounds(token: str) -> tuple[int, int]:
    """The numbers of a repeat in braces, the first again where there is one."""
    least, comma, most = (part or "" for part in BOUNDS.fullmatch(token).groups())  # type: ignore[union-attr]
    return _number(least), _number(most if comma else least)


# --- what automata-lib is given ---


def _without_repeats_of_none(tokens: Sequence[str]) -> str:
    """The expression with () for what is repeated no times, of which automata-lib's parser makes once."""
    written: list[str] = []
    opened: list[int] = []
    begins = 0  # where what a repeat would be of begins
    for token in tokens:
        if token.startswith("{") and max(_bounds(token)) == 0 and not token.endswith(",}"):
            written[begins:] = ["()"]
            continue
        if token == "(":
            opened.append(len(written))
        elif not is_repeat(token):
            begins = opened.pop() if token == ")" else len(written)
        written.append(token)
    return "".join(written)


def _size(tokens: Sequence[str]) -> int:
    """At most how many states a regular expression needs, as large as a product of its parts: repeats unroll."""
    # per bracket: size before the last operator, operator, sizes after it, last size
    frames: list[list[Any]] = [[0, "|", 0, 0]]
    for token in tokens:
        before, operator, parts, last = frames[-1]
        if token == "(":
            frames.append([0, "|", 0, 0])
        elif token == ")":
            frames.pop()
            frames[-1][2:] = frames[-1][2] + frames[-1][3], _joined(before, operator, parts + last)
        elif token in OPERATORS:
            frames[-1] = [_joined(before, operator, parts + last), token, 0, 0]
        elif token.startswith("{"):
            frames[-1][3] = last * max(1, *_bounds(token))
        elif token not in SIMPLE_REPEATS:
            frames[-1][2:] = parts + last, 1
    before, operator, parts, last = frames[0]
    return _joined(before, operator, parts + last)


def _joined(one: int, operator: str, other: int) -> int:
    return one + other if operator == "|" or not one else (one + 1) * (other + 1)


def _subsets(nfa: Any, alphabet: str) -> int:
    """How many sets of states its deterministic automaton has; counting stops above `MOST_SUBSETS`."""
    number = {state: bit for bit, state in enumerate(nfa.states)}

    def mask(states: Any) -> int:
        return sum(1 << number[state] for state in states)

    moves = {symbol: [0] * len(number) for symbol in (*alphabet, "")}
    for state, targets in nfa.transitions.items():
        for symbol, reached in targets.items():
            moves[symbol][number[state]] = mask(reached)

    def reached_from(states: int, symbol: str) -> int:
        union = 0
        while states:
            bit = states & -states
            union |= moves[symbol][bit.bit_length() - 1]
            states ^= bit
        return union

    def closed(states: int) -> int:
        new = states
        while new:
            new = reached_from(new, "") & ~states
            states |= new
        return states

    first = closed(mask([nfa.initial_state]))
    seen, left = {first}, [first]
    while left and len(seen) <= MOST_SUBSETS:
        states = left.pop()
        for symbol in alphabet:
            target = closed(reached_from(states, symbol))
            if target not in seen:
                seen.add(target)
                left.append(target)
    return len(seen)


def _sentence(reason: Exception) -> str:
    return " ".join(str(reason).split()) or type(reason).__name__
