import re
from collections import Counter
from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest
from scipy import stats

from icl_lab.families.languages.automata import lengths_of
from icl_lab.families.languages.data import LanguageData
from icl_lab.families.languages.expressions import of_expression
from icl_lab.families.languages.negatives import MODES, Source, edit
from tests.families.languages.derivatives import every, matches, members, strings_of, texts_of

THREE, OTHER_THREE = LanguageData().languages, LanguageData().unseen_languages

COUNT = 100_000  # negatives of the three languages together
LENGTHS = (1, 20)
LEAST_P = 1e-3  # of a chi-square test, whose seed is fixed


def all_kept(strings: np.ndarray) -> np.ndarray:
    return np.ones(len(strings), bool)


def source_of(expression: str, lengths: tuple[int, int] = LENGTHS, among: tuple[str, ...] = THREE) -> Source:
    others = [of_expression(other, "abc") for other in among if other != expression]
    return Source(of_expression(expression, "abc"), others, *lengths, all_kept, np.random.default_rng(9))


def negatives(mode: str, expression: str, count: int, lengths: tuple[int, int] = LENGTHS) -> list[str]:
    """So many, a pad before a symbol being #."""
    draw, rng, found = MODES[mode](source_of(expression, lengths)), np.random.default_rng(0), []
    while len(found) < count:
        found += texts_of(draw(rng, count), "abc")
    return found[:count]


@pytest.mark.parametrize("mode", MODES)
def test_no_negative_is_a_member(mode: str) -> None:
    for expression in THREE:
        found = negatives(mode, expression, COUNT // 3 + 1)
        assert not [text for text in found if re.fullmatch(expression, text)]
        distinct = set(found)
        assert not [text for text in distinct if matches(expression, text)]
        assert len(distinct) > 100
        least = 0 if mode == "random_hash" else LENGTHS[0]  # which may be pads alone
        assert {len(text) for text in distinct} <= set(range(least, LENGTHS[1] + 1))
        assert any("#" in text for text in distinct) == (mode == "random_hash")


# Near misses


def edits(text: str) -> Iterator[str]:
    """What one symbol replaced, left out or put in makes of a text, the text itself left out."""
    for place in range(len(text) + 1):
        for symbol in "abc":
            yield text[:place] + symbol + text[place:]
            if place < len(text) and text[place] != symbol:
                yield text[:place] + symbol + text[place + 1 :]
        if place < len(text):
            yield text[:place] + text[place + 1 :]


@pytest.mark.parametrize("expression", THREE + OTHER_THREE)
def test_a_near_miss_is_one_edit_from_a_member(expression: str) -> None:
    """What one edit makes of a member, one edit makes a member again."""
    for text in set(negatives("near_miss", expression, 300)):
        assert any(re.fullmatch(expression, near) for near in edits(text) if LENGTHS[0] <= len(near) <= LENGTHS[1])
        assert not re.fullmatch(expression, text)


def test_every_near_miss_is_met() -> None:
    """Of a*bc* of up to 4 symbols: all texts that an edit of such a member makes, and that are none."""
    own = members("a*bc*", "abc", 4, 1)
    possible = {near for text in own for near in edits(text) if 1 <= len(near) <= 4} - set(own)
    assert set(negatives("near_miss", "a*bc*", 20_000, (1, 4))) == possible


def edited(texts: list[str], lengths: tuple[int, int]) -> list[str]:
    return texts_of(edit(strings_of(texts, "abc", lengths[1]), 3, lengths, np.random.default_rng(2)), "abc")


def test_an_edit_is_uniform_in_its_place_and_symbol() -> None:
    """Of abc: three letters to leave out, three symbols at four places to put in, two others at three to replace."""
    found = Counter(edited(["abc"] * 60_000, (1, 4)))
    shorter = {text: found[text] for text in ("bc", "ac", "ab")}
    longer = Counter(text for place in range(4) for text in ["abc"[:place] + s + "abc"[place:] for s in "abc"])
    replaced = [found[text] for text in edits("abc") if len(text) == 3]
    assert set(found) - {"abc"} == set(edits("abc"))
    assert stats.chisquare([*shorter.values()]).pvalue > LEAST_P
    share = sum(found[text] for text in longer)
    expected = [share * ways / 12 for ways in longer.values()]
    assert stats.chisquare([found[text] for text in longer], expected).pvalue > LEAST_P
    assert len(replaced) == 6
    assert stats.chisquare(replaced).pvalue > LEAST_P
    # a third of all edits each, within 4 standard errors
    for kind in (shorter.values(), [share]):
        assert abs(sum(kind) / 60_000 - 1 / 3) < 4 * np.sqrt(2 / 9 / 60_000)


def test_an_edit_changes_the_string() -> None:
    assert "abc" not in edited(["abc"] * 1000, (1, 4))


def test_an_edit_that_would_leave_the_lengths_leaves_the_string() -> None:
    lengths = (2, 4)
    shortest, longest = edited(["ab"] * 2000, lengths), edited(["abca"] * 2000, lengths)
    assert {len(text) for text in shortest} == {2, 3}
    assert {len(text) for text in longest} == {3, 4}
    # a third cannot be, and of the third that replaces a symbol a third may put its own: at least 1/3 stay
    for found, text in ((shortest, "ab"), (longest, "abca")):
        assert found.count(text) / 2000 > 1 / 3 - 4 * np.sqrt(2 / 9 / 2000)
    assert {len(text) for text in edited([""] * 300, (0, 4))} == {0, 1}  # where there is nothing to replace


# Members of other languages


@pytest.mark.parametrize("expression", THREE)
def test_members_of_other_languages_are_members_of_them(expression: str) -> None:
    """Each of the two in half of the draws, up to strings of both; all members are met but the language's own."""
    others = [other for other in THREE if other != expression]
    found = negatives("other_language", expression, 20_000, (1, 8))
    assert all(any(matches(other, text) for other in others) for text in set(found))
    possible = {text for other in others for text in members(other, "abc", 8, 1)} - {*members(expression, "abc", 8, 1)}
    assert set(found) == possible
    chances = dict.fromkeys(possible, 0.0)
    for other in others:
        own = [text for text in members(other, "abc", 8, 1) if text in possible]
        by_length = Counter(map(len, own))
        for text in own:
            chances[text] += 0.5 / len(by_length) / by_length[len(text)]
    counted = Counter(found)
    expected = [len(found) * chance for chance in chances.values()]
    assert stats.chisquare([counted[text] for text in chances], expected).pvalue > LEAST_P


def test_without_strings_of_its_own_another_language_gives_nothing() -> None:
    """All members of (ab)+ are members of (ab|c)*."""
    source = source_of("(ab|c)*", among=("(ab)+",))
    for mode in ("other_language", "mixed"):
        assert len(MODES[mode](source)(np.random.default_rng(0), 100)) == 0


def test_half_of_the_mixed_are_of_other_languages() -> None:
    """Near misses of ((a|b)c)* are almost never members of a*bc* or (abc?)*: what is, is the other half."""
    expression, others = "((a|b)c)*", ("a*bc*", "(abc?)*")
    lengths = (12, 20)

    def share(mode: str) -> float:
        found = negatives(mode, expression, 4000, lengths)
        return sum(any(re.fullmatch(other, text) for other in others) for text in found) / 4000

    assert share("other_language") == 1
    assert share("near_miss") < 0.01
    # 4 standard errors, and what near misses add
    assert abs(share("mixed") - 0.5) < 4 * 0.5 / np.sqrt(4000) + 0.01


# Random strings


def test_random_strings_are_uniform_by_length_among_non_members() -> None:
    for expression in THREE:
        texts = [text for text in every("abc", 5, 1) if not matches(expression, text)]
        by_length = Counter(map(len, texts))
        found = Counter(negatives("random_abc", expression, 40_000, (1, 5)))
        assert set(found) == set(texts)
        expected = [40_000 / len(by_length) / by_length[len(text)] for text in texts]
        assert stats.chisquare([found[text] for text in texts], expected).pvalue > LEAST_P


def test_as_published_most_strings_have_a_pad_before_a_symbol() -> None:
    """A string of n drawn places has none with the chance sum_k (3/4)^k (1/4)^(n - k): .22 on average, less members."""
    lengths = range(LENGTHS[0], LENGTHS[1] + 1)
    for expression in THREE:
        own = Counter(len(text) for text in members(expression, "abc", 8))
        without, removed = 0.0, 0.0
        for n in lengths:
            without += sum(0.75**k * 0.25 ** (n - k) for k in range(n + 1)) / len(lengths)
            removed += sum(own[k] * 0.25**n for k in range(min(n, 8) + 1)) / len(lengths)  # longer ones: below 1e-4
        expected = (1 - without) / (1 - removed)
        found = negatives("random_hash", expression, COUNT // 3)
        share = sum("#" in text for text in found) / len(found)
        assert abs(share - expected) < 4 * np.sqrt(expected * (1 - expected) / len(found)) + 1e-4
        assert abs(share - 0.78) < 0.04  # members that are taken out move it from .784 to .82 at most


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("lengths", [(1, 8), (2, 8), (5, 8), (8, 8)])
def test_no_mode_gives_fewer_symbols_than_the_least_length(mode: str, lengths: tuple[int, int]) -> None:
    """But random_hash at a least length of 1, which is as published: a string of pads alone is among them."""
    texts = [text for expression in THREE[:2] for text in negatives(mode, expression, 2000, lengths)]
    sizes = [len(text.replace("#", "")) for text in texts]
    assert max(sizes) <= lengths[1]
    assert min(sizes) == (0 if (mode, lengths[0]) == ("random_hash", 1) else lengths[0])


def test_a_least_length_conditions_the_published_strings_on_their_symbols() -> None:
    """Given the number of places, all texts over a, b, c and # with enough symbols have the same chance."""
    found = Counter(negatives("random_hash", "a*bc*", 60_000, (2, 4)))
    chances: Counter[str] = Counter()
    for places in (2, 3, 4):
        texts = [text for text in map("".join, product("abc#", repeat=places)) if len(text.replace("#", "")) >= 2]
        for text in texts:
            chances[text.rstrip("#")] += 1 / len(texts)
    chances = Counter({text: chance for text, chance in chances.items() if not re.fullmatch("a*bc*", text)})
    assert set(found) <= set(chances)
    expected = [60_000 * chance / chances.total() for chance in chances.values()]
    assert stats.chisquare([found[text] for text in chances], expected).pvalue > LEAST_P


@pytest.mark.parametrize("mode", MODES)
def test_negatives_are_of_their_part(mode: str) -> None:
    """The part has the strings whose symbols make an even number."""

    def even(strings: np.ndarray) -> np.ndarray:
        return strings.astype(int).sum(axis=1) % 2 == 0

    draw = MODES[mode](source_of("a*bc*")._replace(kept=even))
    found = draw(np.random.default_rng(0), 1000)
    assert len(found) > 100
    assert even(found).all()
    assert lengths_of(found, 3).max() == 20
