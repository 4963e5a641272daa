import re
from collections import Counter

import numpy as np
import pytest
from scipy import stats

from icl_lab.families.languages.expressions import of_expression
from icl_lab.families.languages.sampling import FEW, Sampler, SplitSampler
from tests.families.languages.derivatives import members, texts_of

DRAWS = 30_000
LEAST_P = 1e-3  # of a chi-square test, whose seed is fixed
UNEQUAL = "ab*|c(a|b)*"  # of 2^k and 1 completions
LENGTHS = {"a*bc*": (1, 6), "((a|b)c)*": (1, 8), "(abc?)*": (1, 9), UNEQUAL: (1, 6), "a{2,3}b|(cc)*": (0, 6)}


def sampler_of(expression: str, lengths: tuple[int, int]) -> Sampler:
    return Sampler(of_expression(expression, "abc"), *lengths)


def drawn(sampler: Sampler | SplitSampler, seed: int = 0, count: int = DRAWS) -> Counter[str]:
    return Counter(texts_of(sampler.draw(np.random.default_rng(seed), count), "abc"))


def p_of(found: Counter[str], texts: list[str]) -> float:
    """The chance of counts so uneven if lengths, and then texts of a length, are uniform."""
    by_length = Counter(map(len, texts))
    expected = [found.total() / len(by_length) / by_length[len(text)] for text in texts]
    assert min(expected) > 50  # where counts are as good as normal
    return float(stats.chisquare([found[text] for text in texts], expected).pvalue)


@pytest.mark.parametrize("expression", LENGTHS)
def test_lengths_and_then_members_are_uniform(expression: str) -> None:
    lengths = LENGTHS[expression]
    texts = members(expression, "abc", lengths[1], lengths[0])
    sampler = sampler_of(expression, lengths)
    found = drawn(sampler)
    assert set(found) == set(texts)
    assert sampler.total == len(texts)
    assert sampler.lengths == sorted(set(map(len, texts)))
    assert p_of(found, texts) > LEAST_P


def test_the_test_sees_draws_that_are_uniform_in_the_symbol_instead() -> None:
    """Of ab*|c(a|b)* half of the texts of a length would begin with a, which one text of 2^k + 1 does."""
    texts = members(UNEQUAL, "abc", 4, 4)
    found = Counter(dict.fromkeys(texts, 3000 // len(texts)))
    found["abbb"] += 200
    assert p_of(found, texts) < 1e-6


def test_a_member_of_every_length_that_is_asked_for() -> None:
    asked = np.repeat([20, 1, 2, 19, 7], 200)
    found = texts_of(sampler_of("a*bc*", (1, 20)).of_lengths(np.random.default_rng(0), asked), "abc")
    assert [len(text) for text in found] == asked.tolist()
    assert all(re.fullmatch("a*bc*", text) for text in found)


def test_members_of_64_symbols() -> None:
    """Of which there are too many for a float to tell, all the same each symbol has its share."""
    found = sampler_of("(a|b|c)*", (64, 64)).draw(np.random.default_rng(0), 2000)
    counted = np.bincount(found.ravel(), minlength=3)
    assert counted.sum() == 64 * 2000
    assert len(counted) == 3
    assert stats.chisquare(counted).pvalue > LEAST_P


def test_draws_are_of_the_seed() -> None:
    sampler = sampler_of("((a|b)c)*", (1, 12))
    one, again, other = (sampler.draw(np.random.default_rng(seed), 50) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, again)
    assert (one != other).any()


@pytest.mark.parametrize("count", [0, 1, 2, FEW - 1])
def test_a_few_are_those_that_arrays_give(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """And they leave the generator where arrays leave it."""
    sampler = Sampler(of_expression("(a|bc)*c?", "abc"), 1, 12)
    lengths = np.random.default_rng(count).choice(np.array(sampler.lengths), size=count)
    found = []
    for few in (FEW, 0):
        monkeypatch.setattr("icl_lab.families.languages.sampling.FEW", few)
        rng = np.random.default_rng(3)
        found.append((sampler.of_lengths(rng, lengths), rng.random()))
    (strings, after), (by_arrays, after_arrays) = found
    np.testing.assert_array_equal(strings, by_arrays)
    assert after == after_arrays


def test_lengths_without_members_are_left_out() -> None:
    assert sampler_of("((a|b)c)*", (1, 7)).lengths == [2, 4, 6]
    assert sampler_of("(abc?)*", (0, 5)).lengths == [0, 2, 3, 4, 5]
    empty = sampler_of("a{2,3}", (4, 9))
    assert (empty.lengths, empty.total) == ([], 0)


# A part of all strings


def kept(strings: np.ndarray) -> np.ndarray:
    """About 2 of 5, by the places of the symbols, but none of five symbols."""
    numbers = (strings.astype(int) * np.arange(1, strings.shape[1] + 1)).sum(axis=1)
    return (numbers % 5 < 2) & ((strings < 3).sum(axis=1) != 5)


@pytest.mark.parametrize("expression", ["a*bc*", "(abc?)*", UNEQUAL])
def test_a_part_has_its_own_members_uniform_within_lengths(expression: str) -> None:
    lengths = LENGTHS[expression]
    sampler = sampler_of(expression, lengths)
    rows = {text: row for row, text in zip(*with_texts(sampler), strict=True)}
    texts = [text for text in members(expression, "abc", lengths[1], lengths[0]) if kept(rows[text][None])[0]]
    assert 3 < len(texts) < 0.7 * len(rows)
    part = SplitSampler(sampler, kept, np.random.default_rng(1))
    assert part.lengths.tolist() == sorted(set(map(len, texts)))
    assert 5 not in part.lengths
    found = drawn(part)
    assert set(found) == set(texts)
    assert found.total() == DRAWS
    assert p_of(found, texts) > LEAST_P


def with_texts(sampler: Sampler) -> tuple[np.ndarray, list[str]]:
    """All members, as a draw that is long enough to have each."""
    strings = np.unique(sampler.draw(np.random.default_rng(5), DRAWS), axis=0)
    return strings, texts_of(strings, "abc")


def test_a_part_without_members_gives_none() -> None:
    sampler = sampler_of("a*bc*", (1, 6))
    for of in (sampler, sampler_of("a{2,3}", (4, 9))):
        part = SplitSampler(of, lambda strings: np.zeros(len(strings), bool), np.random.default_rng(0))
        assert part.lengths.tolist() == []
        assert len(part.draw(np.random.default_rng(0), 10)) == 0


def test_two_parts_share_no_string_and_have_all() -> None:
    sampler = sampler_of("a*bc*", (1, 6))
    one = SplitSampler(sampler, kept, np.random.default_rng(0))
    other = SplitSampler(sampler, lambda strings: ~kept(strings), np.random.default_rng(0))
    first, second = set(drawn(one)), set(drawn(other))
    assert not first & second
    assert first | second == set(members("a*bc*", "abc", 6))
