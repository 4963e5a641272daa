import re
from functools import partial

import numpy as np
import pytest

from icl_lab.families.languages.automata import (
    Automaton,
    accepts,
    check_alphabet,
    complement,
    counts,
    encoded,
    lengths_of,
    minimal,
    random_automaton,
    states_after,
    text_of,
)
from icl_lab.families.languages.data import LanguageData
from icl_lab.families.languages.expressions import of_expression
from icl_lab.families.languages.named import TOMITA, common_alphabet, languages_of
from icl_lab.src.checks import ConfigError
from tests.families.languages.derivatives import every, matches, strings_of

THREE, OTHER_THREE = LanguageData().languages, LanguageData().unseen_languages

STRINGS = partial(strings_of, every("abc", 8), "abc", 8)
TEXTS = every("abc", 8)


def accepted(automaton: Automaton, texts: tuple[str, ...], length: int) -> list[bool]:
    return accepts(automaton, strings_of(texts, automaton.alphabet, length)).tolist()


def is_one_sentence(error: object) -> bool:
    words = str(error)
    return bool(words) and "\n" not in words and ". " not in words and not words.endswith(".")


# Membership


@pytest.fixture(scope="module")
def strings() -> np.ndarray:
    return STRINGS()


def runs(text: str) -> list[str]:
    return [match.group() for match in re.finditer("a+|b+", text)]


def has_odd_run_of_a_after_odd_run_of_b(text: str) -> bool:
    odd = [run[0] for run in runs(text) if len(run) % 2]
    return "b" in odd and "a" in odd[odd.index("b") :]


IN_WORDS = {
    "tomita1": lambda text: "a" not in text,
    "tomita2": lambda text: text == "ba" * (len(text) // 2),
    "tomita3": lambda text: not has_odd_run_of_a_after_odd_run_of_b(text),
    "tomita4": lambda text: "aaa" not in text,
    "tomita5": lambda text: text.count("a") % 2 == text.count("b") % 2 == 0,
    "tomita6": lambda text: (text.count("a") - text.count("b")) % 3 == 0,
    "tomita7": lambda text: "".join(run[0] for run in runs(text)) in ("", "a", "b", "ab", "ba", "aba", "bab", "abab"),
}


@pytest.mark.parametrize("name", TOMITA)
def test_tomitas_languages_are_what_their_definitions_say(name: str) -> None:
    texts = every("ab", 9)
    found = accepted(of_expression(TOMITA[name], "ab"), texts, 9)
    assert found == [IN_WORDS[name](text) for text in texts]
    assert found == [matches(TOMITA[name], text) for text in texts]
    assert found == [re.fullmatch(TOMITA[name], text) is not None for text in texts]


def test_tomita_names_all_seven() -> None:
    found = languages_of(("tomita",), "ab", (1, 20))
    assert [language.name for language in found] == [f"tomita{number}" for number in range(1, 8)]
    # the numbers of states of the minimal automata, sinks included, as tables of Tomita's languages have them
    assert [len(language.automaton.transitions) for language in found] == [2, 3, 5, 4, 4, 3, 5]


def test_a_string_with_a_pad_before_a_symbol_is_no_member() -> None:
    """Not even of the language of all strings, nor of the complement of one."""
    inner = ["#a", "a#b", "ab##c", "#", "a##", "abc"]
    for automaton in (of_expression("(a|b|c)*", "abc"), complement(of_expression("abcabc", "abc"))):
        found = accepts(automaton, strings_of(inner, "abc", 6)).tolist()
        assert found == [False, False, False, True, True, True]
        ended = states_after(automaton, strings_of(inner, "abc", 6))
        assert (ended[:3] == -1).all()
        assert (ended[3:] >= 0).all()


# Automata


@pytest.mark.parametrize(
    ("expression", "members"),
    [
        ("a*bc*", 210),  # 1 + 2 + ... + 20
        ("((a|b)c)*", 2046),  # 2 + 4 + ... + 2^10
        ("(abc?)*", 463),  # the Padovan numbers that count sums of twos and threes
    ],
)
def test_members_of_up_to_20_symbols(expression: str, members: int) -> None:
    found = [row[0] for row in counts(of_expression(expression, "abc"), 20)]
    assert sum(found[1:]) == members


@pytest.mark.parametrize("expression", [*THREE, *OTHER_THREE, "(a|b|c)*", "a{2,3}b"])
def test_counts_are_those_of_all_strings_tried(expression: str) -> None:
    automaton = of_expression(expression, "abc")
    found = counts(automaton, 8)
    members = [len(text) for text in TEXTS if matches(expression, text)]
    assert [row[0] for row in found] == [members.count(length) for length in range(9)]


def test_counts_are_exact_where_floats_are_not() -> None:
    assert counts(of_expression("(a|b|c)*", "abc"), 60)[60] == [3**60]


def test_counts_from_other_states() -> None:
    """(ab)* begun after its a: the words b, bab, ...; from its sink there are none."""
    automaton = of_expression("(ab)*", "ab")
    after_a, sink = states_after(automaton, strings_of(["a", "b"], "ab", 1))
    found = np.array(counts(automaton, 6))
    assert found[:, 0].tolist() == [1, 0, 1, 0, 1, 0, 1]
    assert found[:, after_a].tolist() == [0, 1, 0, 1, 0, 1, 0]
    assert not found[:, sink].any()


def test_minimal_merges_states_that_do_the_same_and_drops_those_never_reached() -> None:
    """Even numbers of a, by three states of the one kind, two of the other and one that nothing leads to."""
    transitions = np.array([[1, 2], [4, 3], [3, 4], [0, 1], [1, 0], [5, 5]])
    automaton = Automaton("ab", transitions, np.array([True, False, True, False, True, True]))
    found = minimal(automaton)
    np.testing.assert_array_equal(found.transitions, [[1, 0], [0, 1]])
    np.testing.assert_array_equal(found.accepting, [True, False])
    assert found.alphabet == "ab"


def test_a_language_has_the_numbers_of_states_it_needs() -> None:
    """Of a*bc*: before the b, after it, and never again."""
    automaton = of_expression("a*bc*", "abc")
    np.testing.assert_array_equal(automaton.transitions, [[0, 1, 2], [2, 2, 1], [2, 2, 2]])
    np.testing.assert_array_equal(automaton.accepting, [False, True, False])
    assert automaton.pad == 3


@pytest.mark.parametrize("expression", THREE)
def test_the_complement_has_all_other_strings(expression: str, strings: np.ndarray) -> None:
    automaton = complement(of_expression(expression, "abc"))
    assert accepts(automaton, strings).tolist() == [re.fullmatch(expression, text) is None for text in TEXTS]


def test_random_automata_are_minimal_and_of_the_seed() -> None:
    def drawn(seed: int) -> list[Automaton]:
        rng = np.random.default_rng(seed)
        return [random_automaton(rng, 5, "ab") for _ in range(40)]

    for one, again in zip(drawn(0), drawn(0), strict=True):
        np.testing.assert_array_equal(one.transitions, again.transitions)
        np.testing.assert_array_equal(one.accepting, again.accepting)
        # no two states have the same members among the strings of up to 4 symbols, which part 5 states
        inside = np.array([accepts(started(one, state), ALL_SHORT) for state in range(len(one.transitions))])
        assert len(np.unique(inside, axis=0)) == len(inside) <= 5
    sizes = {len(automaton.transitions) for automaton in drawn(0)}
    assert {1, 5} <= sizes  # all or none accept at times
    assert [automaton.transitions.tolist() for automaton in drawn(0)] != [
        automaton.transitions.tolist() for automaton in drawn(1)
    ]


ALL_SHORT = strings_of(every("ab", 4), "ab", 4)


def started(automaton: Automaton, state: int) -> Automaton:
    """The automaton begun in another state: the two are swapped."""
    order = np.arange(len(automaton.transitions))
    order[[0, state]] = order[[state, 0]]
    return Automaton(automaton.alphabet, order[automaton.transitions[order]], automaton.accepting[order])


# Strings


def test_strings_and_texts() -> None:
    found = encoded(["", "ab", "cab"], "abc", 4)
    np.testing.assert_array_equal(found, [[3, 3, 3, 3], [0, 1, 3, 3], [2, 0, 1, 3]])
    assert found.dtype == np.uint8
    assert [text_of(row, "abc") for row in found] == ["", "ab", "cab"]
    assert text_of(found[1], "abc", "#") == "ab##"


def test_the_length_is_up_to_the_last_symbol() -> None:
    assert lengths_of(strings_of(["", "a", "abca", "a#b", "##c"], "abc", 4), 3).tolist() == [0, 1, 4, 3, 3]


# Errors


@pytest.mark.parametrize(
    ("alphabet", "words"),
    [
        ("abcdefghijklmnopqrstuvwxyz0", "has 27 symbols; it must have 2 to 26"),
        ("a", "it must have 2 to 26"),
        ("", "it must have 2 to 26"),
        ("ab#", "has '#'; symbols are letters and digits"),
        ("ab*", "has '*'; symbols are letters and digits"),
        ("abä", "has 'ä'; symbols are letters and digits"),
        ("aba", "has a symbol twice"),
    ],
)
def test_alphabets_that_are_refused(alphabet: str, words: str) -> None:
    for check in (check_alphabet, partial(common_alphabet, ())):
        if alphabet or check is check_alphabet:
            with pytest.raises(ConfigError, match=re.escape(words)) as caught:
                check(alphabet)
            assert is_one_sentence(caught.value)
