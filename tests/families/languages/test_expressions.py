"""Regular expressions: what they mean, compared with `re` and with derivatives, and what is refused."""

import re

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from icl_lab.families.languages.automata import accepts
from icl_lab.families.languages.data import LanguageData
from icl_lab.families.languages.expressions import alphabet_of, of_expression
from icl_lab.families.languages.named import common_alphabet
from icl_lab.src.checks import ConfigError
from icl_lab.src.words import words_of
from tests.families.languages.derivatives import every, matches, strings_of
from tests.families.languages.test_automata import accepted, is_one_sentence

THREE, OTHER_THREE = LanguageData().languages, LanguageData().unseen_languages

TEXTS = every("abc", 8)


@pytest.fixture(scope="module")
def strings() -> np.ndarray:
    return strings_of(TEXTS, "abc", 8)


@pytest.mark.parametrize(("expression", "count"), [*zip(THREE + OTHER_THREE, 2 * (36, 31, 15), strict=True)])
def test_members_of_the_six_are_those_of_derivatives_and_of_re(
    expression: str, count: int, strings: np.ndarray
) -> None:
    found = accepts(of_expression(expression, "abc"), strings).tolist()
    assert found == [matches(expression, text) for text in TEXTS]
    assert found == [re.fullmatch(expression, text) is not None for text in TEXTS]
    assert sum(found) == count  # 1 + 2 + ... + 8, 1 + 2 + ... + 2^4, and 1, 0, 1, 1, 1, 2, 2, 3, 4


@pytest.mark.parametrize(
    "expression",
    ["a{2,3}b", "(a|bc){0,2}", "((a|b)*)&((ab|ba)*)", "(a*b)&(a{2,4}(b|c))", "((a|b)+)&((a|c)?b+)", "a(()|b)c?"],
)
def test_repeats_and_intersections(expression: str, strings: np.ndarray) -> None:
    found = accepts(of_expression(expression, "abc"), strings).tolist()
    assert found == [matches(expression, text) for text in TEXTS]
    assert any(found)


REPEATS = ["*", "+", "?", "{0}", "{2}", "{1,}", "{,2}", "{0,0}", "{0,3}", "{1,2}", "{00}", "{,}"]


@st.composite
def expressions(draw: st.DrawFn, depth: int = 3) -> str:
    """Expressions in the syntax that `re` has too: sides of |, each of repeated symbols, classes and brackets."""
    sides = []
    for _ in range(draw(st.integers(1, 2))):
        parts = []
        for _ in range(draw(st.integers(1, 3))):
            inner = draw(st.sampled_from(["a", "b", "c", ".", "[ab]", "[a-c]", "[^b]", "[^a-c]", "()", "in brackets"]))
            if inner == "in brackets":
                inner = f"({draw(expressions(depth - 1))})" if depth else "(a|bc)"
            parts.append(inner + draw(st.sampled_from(["", *REPEATS])))
        sides.append("".join(parts))
    return "|".join(sides)


def agrees_with_re(expression: str) -> bool:
    texts = every("abc", 5)
    found = accepted(of_expression(expression, "abc"), texts, 5)
    return found == [re.fullmatch(expression, text) is not None for text in texts]


@given(expressions())
@example("a{0}b")
@example("(a|b){0}c")
@example(".{0}a")
@example("((ab){0}|c{,0}){2}")
@example("(a{0})*b")
def test_any_expression_agrees_with_re(expression: str) -> None:
    try:
        assert agrees_with_re(expression)
    except ConfigError as error:
        assert "needs too many states" in str(error)  # noqa: PT017
    # on the command line it is the same, but for (), which is no words at all there
    assert words_of(expression) == ((expression,) if expression != "()" else ())


@given(st.text("ab()|*+?{}012,[]^-.$\\ \n#é", max_size=8))
@example("a+?b")
@example("a++b")
@example("a{2}{2}")
@example("^a")
@example("a$")
@example("a^b")
@example("a b")
@example(" a")
@example("a{}b")
@example("[b-a]")
@example("[a^]")
@example("(?:a)b")
@example("\\da")
@example("a\n")
def test_any_text_is_read_as_re_reads_it_or_refused_in_a_sentence(text: str) -> None:
    """So what `re` and automata-lib read in two ways, or one of them cannot read, is no expression here."""
    try:
        assert agrees_with_re(text)
    except ConfigError as error:
        said = str(error).replace(repr(text), "it")
    else:
        return
    assert is_one_sentence(said)


@given(expressions())
def test_an_expression_agrees_with_derivatives(expression: str) -> None:
    """Where the expression is in the syntax of the reference: symbols, and repeats of two numbers."""
    plain = re.sub(r"\[[^]]*\]|\.", "(a|b)", expression)
    for shorter, full in (("{0}", "{0,0}"), ("{00}", "{0,0}"), ("{2}", "{2,2}"), ("{,2}", "{0,2}")):
        plain = plain.replace(shorter, full)
    plain = plain.replace("{1,}", "+").replace("{,}", "*")
    texts = every("abc", 4)
    try:
        found = accepted(of_expression(plain, "abc"), texts, 4)
    except ConfigError as error:
        assert "needs too many states" in str(error)  # noqa: PT017
    else:
        assert found == [matches(plain, text) for text in texts]


@pytest.mark.parametrize("same", [("a*bc*", "a*bc*c*|a*b"), ("(a|b)*", "(a*b*)*"), ("(abc?)*", "(ab|abc)*")])
def test_one_language_has_one_minimal_automaton(same: tuple[str, str]) -> None:
    one, other = (of_expression(expression, "abc") for expression in same)
    np.testing.assert_array_equal(one.transitions, other.transitions)
    np.testing.assert_array_equal(one.accepting, other.accepting)


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
    assert is_one_sentence(caught.value)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a+?b", "it has ? behind +, which is ambiguous; write a repeat of a repeat as in (a+)?"),
        ("a*+", "it has + behind *"),
        ("a{2}{2}", "it has {2} behind {2}"),
        ("^a", "it has ^; an expression describes whole strings and has no anchors"),
        ("a^b", "it has ^; "),
        ("a$", "it has $; an expression describes whole strings and has no anchors"),
        ("a* b", "it has a blank, which is not a symbol; write each expression as one word"),
        (r"\ba", "it has a backslash; symbols are letters and digits"),
        ("a{}b", "it has a { that does not begin a repeat"),
        ("a{1, 2}b", "it has a { that does not begin a repeat"),
        ("[b-a]", "[b-a] has a range that is not of small letters, capitals or digits in their order"),
        ("[A-b]", "[A-b] has a range"),
        ("[a#]", "it has a [ that does not begin a class of letters and digits"),
        ("(?:a)b", "it has ? with nothing before it to repeat"),
        ("a|", "a side of | or & is empty; the empty string is ()"),
        ("(a", "it has a ( that is never closed"),
        ("a)", "it has a ) that closes nothing"),
        ("a#", "it has '#'; symbols are letters and digits"),
        ("ad", "d is not a symbol of the alphabet"),
    ],
)
def test_what_is_read_in_two_ways_is_refused_with_its_reason(text: str, reason: str) -> None:
    with pytest.raises(ConfigError) as caught:
        of_expression(text, "abc")
    assert str(caught.value).startswith(f"{text!r} is not a regular expression over abc: {reason}")
    assert is_one_sentence(caught.value)


def test_an_expression_that_is_too_long_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"' is too long; the maximum is 2048 symbols and signs$"):
        of_expression("()" * 1025, "ab")


def test_too_many_states_are_refused() -> None:
    with pytest.raises(ConfigError, match="an automaton has 1024 states; the maximum is 512"):
        of_expression("(a|b)*a(a|b){9}", "ab")


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
