"""Languages by name: Tomita's seven, random automata; anything else is an expression."""

from __future__ import annotations

import re

import numpy as np

from icl_lab.families.languages.automata import Automaton, accepts, agree, check_alphabet, random_automaton
from icl_lab.families.languages.data import MOST_LETTERS
from icl_lab.families.languages.expressions import alphabet_of, of_expression
from icl_lab.families.languages.sampling import Sampler
from icl_lab.src.checks import ConfigError, require

# Tomita 1982, over {0, 1}, here {a, b}
TOMITA = {
    "tomita1": "b*",
    "tomita2": "(ba)*",
    "tomita3": "(bb|a)*(b(aa|b)*)?",  # no odd run of a stands anywhere after an odd run of b
    "tomita4": "(b|ab|aab)*(a?|aa)",
    "tomita5": "(aa|bb|(ab|ba)(aa|bb)*(ab|ba))*",
    "tomita6": "(ba|(a|bb)(ab)*(b|aa))*",
    "tomita7": "a*b*a*b*",
}
WORDS = {"tomita": tuple(TOMITA)}
RANDOM = "random"
LEAST_MEMBERS = 8  # and non-members, of the asked lengths
ALONE = re.compile(r"\[([0-9A-Za-z])\](?![*+?{])")  # a class of one symbol, in the paper one that may be left out
TRIES = 200  # random automata drawn for each that is taken


class Language:
    """A language over an alphabet: its name and its automaton."""

    def __init__(self, name: str, automaton: Automaton):
        self.name, self.automaton = name, automaton

    def __repr__(self) -> str:
        return f"Language({self.name!r})"


def expand(names: tuple[str, ...]) -> tuple[str, ...]:
    """The names with words for several, such as tomita, replaced by these."""
    return tuple(name for word in names for name in WORDS.get(word, (word,)))


def common_alphabet(names: tuple[str, ...], given: str = "") -> str:
    """The alphabet given or, without one, that of the expressions; abc where there are none."""
    if given:
        return check_alphabet(given)
    texts = tuple(TOMITA.get(name, name) for name in expand(names) if name != RANDOM)
    return alphabet_of(texts) if texts else "abc"


def languages_of(
    names: tuple[str, ...],
    alphabet: str,
    lengths: tuple[int, int],
    count: int = 0,
    num_states: int = 5,
    stream: tuple[int, int] = (0, 0),
) -> list[Language]:
    """The languages of names; `random` is `count` random automata of a stream of random numbers.

    `ConfigError` for a malformed expression, one without enough members or non-members of the lengths, or twice the
    same language.
    """
    languages = []
    for name in expand(names):
        if name == RANDOM:
            languages += random_languages(alphabet, lengths, count, num_states, stream)
        else:
            languages.append(Language(name, check_size(name, of_expression(TOMITA.get(name, name), alphabet), lengths)))
    check_different(languages, lengths)
    return languages


def check_size(name: str, automaton: Automaton, lengths: tuple[int, int]) -> Automaton:
    """The automaton; `ConfigError` if it has too few members, or non-members, of the lengths."""
    members, strings = sizes(automaton, lengths)
    where = f"of length {lengths[0]} to {lengths[1]}"
    require(
        members >= LEAST_MEMBERS,
        f"the language {name} has {members} members {where}; at least {LEAST_MEMBERS} are needed"
        f"{_more_members(name, automaton, lengths[0])}",
    )
    missing = strings - members
    require(
        missing >= LEAST_MEMBERS,
        f"the language {name} has {missing or 'no'} non-members {where} over {automaton.alphabet}; at least "
        f"{LEAST_MEMBERS} are needed: allow further symbols (--config.alphabet) or more lengths (--max_length)",
    )
    return automaton


def _more_members(name: str, automaton: Automaton, min_length: int) -> str:
    """What gives a language enough members: longer strings, and symbols left out, if [c] was meant as an optional c."""
    lengths = range(min_length, MOST_LETTERS + 1)
    enough = next((most for most in lengths if sizes(automaton, (min_length, most))[0] >= LEAST_MEMBERS), None)
    longer = f"--max_length {enough} gives enough" if enough else f"no --max_length up to {MOST_LETTERS} gives enough"
    alone = ALONE.search(name)
    optional = ALONE.sub(r"\1?", name)
    return f": {longer}" + (
        f"; {alone[0]} is the same as {alone[1]}: for an optional {alone[1]} write {optional}" if alone else ""
    )


def sizes(automaton: Automaton, lengths: tuple[int, int]) -> tuple[int, int]:
    """How many members, and how many strings, there are of the lengths."""
    strings = sum(len(automaton.alphabet) ** length for length in range(lengths[0], lengths[1] + 1))
    return Sampler(automaton, *lengths).total, strings


def random_languages(
    alphabet: str, lengths: tuple[int, int], count: int, num_states: int, stream: tuple[int, int]
) -> list[Language]:
    """`count` different random languages; the first of them are the same however many are asked for.

    Automata with few members or non-members, or with members at fewer than half of the lengths, are drawn again.
    """
    rng = np.random.default_rng([*stream, num_states, len(alphabet)])
    sizes_known: dict[int, list[Automaton]] = {}  # languages that agree have equally many members
    automata: list[Automaton] = []
    for _ in range(TRIES * count):
        if len(automata) == count:
            break
        automaton = random_automaton(rng, num_states, alphabet)
        if _is_usable(automaton, lengths):
            alike = sizes_known.setdefault(Sampler(automaton, *lengths).total, [])
            if not any(agree(automaton, other, lengths) for other in alike):
                alike.append(automaton)
                automata.append(automaton)
    if len(automata) < count:
        raise ConfigError(
            f"there are only {len(automata)} usable random languages of {num_states} states, not {count}; "
            "take more states"
        )
    return [Language(f"random{number}", automaton) for number, automaton in enumerate(automata)]


def _is_usable(automaton: Automaton, lengths: tuple[int, int]) -> bool:
    other = automaton._replace(accepting=~automaton.accepting)
    asked = lengths[1] - lengths[0] + 1
    return all(
        sampler.total >= LEAST_MEMBERS and 2 * len(sampler.lengths) >= asked
        for sampler in (Sampler(one, *lengths) for one in (automaton, other))
    )


def check_different(languages: list[Language], lengths: tuple[int, int]) -> None:
    """`ConfigError` if two languages have the same members of the lengths; random ones are not compared again."""
    listed = [language for language in languages if not language.name.startswith(RANDOM)]
    for number, one in enumerate(listed):
        for other in listed[:number]:
            require(
                not agree(one.automaton, other.automaton, lengths),
                f"{other.name} and {one.name} are the same language; name each once",
            )


def members(languages: list[Language], strings: np.ndarray) -> np.ndarray:
    """Whether each language has each of the strings [S, L]: [M, S]."""
    return np.stack([accepts(language.automaton, strings) for language in languages])
