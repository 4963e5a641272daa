import re
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from languages.automata import (
    Automaton,
    accepts,
    alphabet_of,
    check_alphabet,
    complement,
    counts,
    encoded,
    lengths_of,
    minimal,
    of_expression,
    random_automaton,
    states_after,
    text_of,
)
from languages.config import LanguageData
from languages.named import TOMITA, common_alphabet, languages_of
from src.checks import ConfigError
from tests.languages.derivatives import every, matches, strings_of

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


@pytest.mark.parametrize(("expression", "count"), [*zip(THREE + OTHER_THREE, 2 * (36, 31, 15), strict=True)])
def test_members_of_the_six_are_those_of_derivatives_and_of_re(
    expression: str, count: int, strings: np.ndarray
) -> None:
    found = accepts(of_expression(expression, "abc"), strings).tolist()
    assert found == [matches(expression, text) for text in TEXTS]
    assert found == [re.fullmatch(expression, text) is not None for text in TEXTS]
    assert sum(found) == count  # 1 + 2 + ... + 8, 1 + 2 + ... + 2^4, and 1, 0, 1, 1, 1, 2, 2, 3, 4


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


@pytest.mark.parametrize(
    "expression",
    ["a{2,3}b", "(a|bc){0,2}", "((a|b)*)&((ab|ba)*)", "(a*b)&(a{2,4}(b|c))", "((a|b)+)&((a|c)?b+)", "a(()|b)c?"],
)
def test_repeats_and_intersections(expression: str, strings: np.ndarray) -> None:
    found = accepts(of_expression(expression, "abc"), strings).tolist()
    assert found == [matches(expression, text) for text in TEXTS]
    assert any(found)


SMALL = st.recursive(
    st.sampled_from("abc"),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda pair: "".join(pair)),
        st.tuples(inner, inner).map(lambda pair: f"({'|'.join(pair)})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{1,2}", "{0,3}"])).map(lambda pair: f"({pair[0]}){pair[1]}"),
    ),
    max_leaves=7,
)


@given(SMALL)
def test_any_expression_agrees_with_re(expression: str) -> None:
    texts = every("abc", 5)
    found = accepted(of_expression(expression, "abc"), texts, 5)
    assert found == [re.fullmatch(expression, text) is not None for text in texts]
    assert found == [matches(expression, text) for text in texts]


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


@pytest.mark.parametrize("same", [("a*bc*", "a*bc*c*|a*b"), ("(a|b)*", "(a*b*)*"), ("(abc?)*", "(ab|abc)*")])
def test_one_language_has_one_minimal_automaton(same: tuple[str, str]) -> None:
    one, other = (of_expression(expression, "abc") for expression in same)
    np.testing.assert_array_equal(one.transitions, other.transitions)
    np.testing.assert_array_equal(one.accepting, other.accepting)


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


@pytest.mark.parametrize("text", ["", "  "])
def test_an_empty_expression_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="a regular expression is empty") as caught:
        of_expression(text, "ab")
    assert is_one_sentence(caught.value)


@pytest.mark.parametrize("text", ["abd", "(a|x)*", "a{2", "[", "a\\"])
def test_a_symbol_outside_the_alphabet_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=f"^{re.escape(repr(text))} is not a regular expression over abc: ") as caught:
        of_expression(text, "abc")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["a(b", "a)", "*a", "a||b", "a|", "(a|)b", "a{3,2}", "&a", "[a-z]b"])
def test_a_malformed_expression_is_refused(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        of_expression(text, "abc")
    assert "\n" not in str(caught.value)


def test_too_many_states_are_refused() -> None:
    with pytest.raises(ConfigError, match="an automaton has 1024 states; the most are 512"):
        of_expression("(a|b)*a(a|b){9}", "ab")


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


@pytest.mark.parametrize(
    ("expressions", "words"),
    [
        (("a*",), "it must have 2 to 26"),
        (("()", "()*"), "there is no symbol in the expressions"),
        (("abcdefghijklm", "nopqrstuvwxyz0"), "has 27 symbols"),
    ],
)
def test_expressions_without_an_alphabet_are_refused(expressions: tuple[str, ...], words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        alphabet_of(expressions)
    assert is_one_sentence(caught.value)


def test_the_alphabet_is_that_of_all_expressions() -> None:
    assert alphabet_of(("(c|a)*", "b? a+", "()")) == "abc"
    assert common_alphabet(("tomita4", "b*cb*")) == "abc"
    assert common_alphabet(("tomita",)) == "ab"
    assert common_alphabet(("random",)) == "abc"
    assert common_alphabet(("a*b",), "bac") == "bac"


def test_the_numbers_of_a_repeat_are_no_symbols() -> None:
    assert alphabet_of(("a{2,3}b",)) == "ab"


def test_a_range_has_the_symbols_between_its_ends() -> None:
    assert alphabet_of(("[a-c]*",)) == "abc"


@pytest.mark.parametrize(
    "text", ["a{600}", "(a{30}){30}", "b{2,9999999999}", "((ab){9}|a){99}", "a{40}&(a|b){40}", "(a|b)*a(a|b){20}"]
)
def test_an_expression_of_too_many_states_is_refused_at_once(text: str) -> None:
    """Its automaton would take all memory before it could be counted."""
    with pytest.raises(ConfigError, match="needs too many states"):
        of_expression(text, "ab")


@pytest.mark.parametrize(("text", "states"), [("(a|b){100}", 102), ("a{20}&[ab]{20}", 22), ("(a|b)*a(a|b){7}", 256)])
def test_an_expression_of_many_states_has_them(text: str, states: int) -> None:
    assert len(of_expression(text, "ab").transitions) == states
