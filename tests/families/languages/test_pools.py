import re
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from icl_lab.families.languages.data import LanguageData
from icl_lab.families.languages.named import Language, members, random_languages
from icl_lab.families.languages.pools import (
    LEAST_STRINGS,
    Pool,
    Pools,
    alphabet,
    distinct_strings,
    pools_of,
    training_languages,
    unseen_languages,
)
from icl_lab.families.languages.sampling import Sampler
from icl_lab.families.languages.split import in_test_set
from icl_lab.src.checks import ConfigError
from tests.families.languages.derivatives import every, matches, strings_of, texts_of
from tests.families.languages.derivatives import members as members_of

DATA = LanguageData(max_length=12, pool_size=512)
SMALL = replace(DATA, max_length=8, pool_size=256, unseen_languages=())
NEGATIVES = ("random_hash", "random_abc", "other_language", "near_miss", "mixed")


def texts(pool: Pool) -> set[str]:
    return set(texts_of(pool.strings, "abc"))


def is_one_sentence(error: object) -> bool:
    words = str(error)
    return bool(words) and "\n" not in words and ". " not in words and not words.endswith(".")


# What is in them


@pytest.mark.parametrize("negatives", NEGATIVES)
def test_no_string_is_trained_on_and_tested(negatives: str) -> None:
    pools = pools_of(replace(DATA, negatives=negatives))
    trained, tested, unseen = map(texts, (pools.train, pools.test, pools.unseen))
    assert not trained & tested
    assert not trained & unseen
    for pool, own in ((pools.train, trained), (pools.test, tested), (pools.unseen, unseen)):
        assert len(own) == len(pool.strings) > 40  # each once
        np.testing.assert_array_equal(np.unique(pool.positives), sorted(set(pool.positives.ravel())))
        used = np.union1d(pool.positives, pool.negatives)
        np.testing.assert_array_equal(used, np.arange(len(pool.strings)))


@pytest.mark.parametrize("negatives", NEGATIVES)
def test_positives_are_members_and_negatives_are_none(negatives: str) -> None:
    data = replace(DATA, negatives=negatives)
    pools = pools_of(data)
    for pool, expressions in (
        (pools.train, data.languages),
        (pools.test, data.languages),
        (pools.unseen, data.unseen_languages),
    ):
        found = np.array(texts_of(pool.strings, "abc"))
        assert pool.positives.shape == pool.negatives.shape == (3, 512)
        for language, expression in enumerate(expressions):
            for draws, label in ((pool.positives, True), (pool.negatives, False)):
                assert {matches(expression, text) for text in found[draws[language]]} == {label}


def test_all_members_are_in_one_of_the_two() -> None:
    """Of each length about as many are drawn, 102 of 1 to 10 members; a fifth of the 55 is tested."""
    pools = pools_of(LanguageData(languages=("a*bc*", "(abc?)*"), unseen_languages=(), max_length=10, pool_size=1024))
    trained, tested = (
        set(np.array(texts_of(pool.strings, "abc"))[pool.positives[0]]) for pool in (pools.train, pools.test)
    )
    assert trained | tested == set(members_of("a*bc*", "abc", 10))
    assert abs(len(tested) - 0.2 * 55) < 4 * np.sqrt(0.16 * 55)


def test_members_of_the_unseen_set_are_of_another_language_in_their_labels() -> None:
    """With one unseen language alone the negatives are members of those of training."""
    pools = pools_of(replace(DATA, unseen_languages=("c*ba*",)))
    found = np.array(texts_of(pools.unseen.strings, "abc"))
    assert all(re.fullmatch("c*ba*", text) for text in found[pools.unseen.positives[0]])
    negatives = set(found[pools.unseen.negatives[0]])
    assert all(any(matches(other, text) for other in DATA.languages) for text in negatives)
    assert not any(matches("c*ba*", text) for text in negatives)


def test_there_may_be_no_unseen_set() -> None:
    pools = pools_of(SMALL)
    assert (pools.unseen, pools.unseen_languages) == (None, [])
    assert [language.name for language in pools.languages] == [*SMALL.languages]


# The test set


@pytest.mark.parametrize("share", [0.1, 0.2, 0.5])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_share_of_the_test_set(share: float, seed: int) -> None:
    """Of strings of up to 20, and of all short ones, which differ in little."""
    (big,) = training_languages(replace(DATA, languages=("(a|b|c)*b(a|b|c)*",), max_length=20, min_length=8))
    drawn = np.unique(Sampler(big.automaton, 8, 20).draw(np.random.default_rng(0), 40_000), axis=0)
    short = strings_of(every("abc", 8), "abc", 20)
    for strings in (drawn, short):
        found = in_test_set(strings, share, seed).mean()
        assert abs(found - share) < 4 * np.sqrt(share * (1 - share) / len(strings))


def test_the_share_is_of_every_length_and_first_symbol() -> None:
    """So a hash that sees parts of a string alone would be found out."""
    strings = strings_of(every("abc", 9, 9), "abc", 12)
    found = in_test_set(strings, 0.2, 0)
    for place in range(9):
        for symbol in range(3):
            part = found[strings[:, place] == symbol]
            assert abs(part.mean() - 0.2) < 4 * np.sqrt(0.16 / len(part))
    # and neighbours, which differ in the last symbol, are as independent as any: 3 of 3 with the chance 1/125
    together = found.reshape(-1, 3).all(axis=1)
    assert abs(together.mean() - 0.008) < 4 * np.sqrt(0.008 / len(together))


def test_a_larger_test_set_has_the_smaller_one() -> None:
    strings = strings_of(every("abc", 7), "abc", 7)
    small, large = (in_test_set(strings, share, 3) for share in (0.1, 0.4))
    assert not (small & ~large).any()
    assert (in_test_set(strings, 0.4, 4) != large).mean() > 0.4  # of two seeds: 2 x .4 x .6 of the strings


# Few strings

FEW = ("a*", "b*", "(ab)*", "(ba)*", "(abc?)*", "a*bc*", "(a|b)c{0,5}", "a{3,12}|c", "(a|b|c)(bb)*", "c(a|b){2}c*")


@settings(max_examples=15)
@given(
    languages=st.lists(st.sampled_from(FEW), min_size=1, max_size=3, unique=True).map(tuple),
    unseen=st.sampled_from([(), ("c*ba*",), ("(ca)*", "(ac)*")]),
    negatives=st.sampled_from(NEGATIVES),
    share=st.sampled_from([0.05, 0.2, 0.9]),
    seed=st.integers(0, 999),
)
@example(("a*", "b*"), (), "other_language", 0.2, 143)  # by the hash alone 0 of 20 members of b* are tested
@example(("(ab)*", "(ba)*"), (), "other_language", 0.2, 0)
def test_each_set_has_strings_of_each_language_and_label_or_the_sentence_says_what_helps(
    languages: tuple[str, ...], unseen: tuple[str, ...], negatives: str, share: float, seed: int
) -> None:
    data = LanguageData(
        languages=languages, unseen_languages=unseen, alphabet="abc", negatives=negatives, test_share=share,
        pool_seed=seed, pool_size=128,
    )  # fmt: skip
    try:
        pools = pools_of(data)
    except ConfigError as error:
        said = str(error)
    else:
        for counts in distinct_strings(pools).values():
            assert min(counts["members"] + counts["non_members"]) >= LEAST_STRINGS
        trained = texts(pools.train)
        assert not trained & texts(pools.test)
        assert not (pools.unseen and trained & texts(pools.unseen))
        return
    assert is_one_sentence(said)
    assert "--" in said


@pytest.mark.parametrize(
    ("values", "helps"),
    [
        ({"languages": ("(ab)*", "c*"), "max_length": 8}, {"max_length": 16}),
        ({"languages": ("a*bc*",)}, {"negatives": "random_abc"}),
        ({"languages": ("(ab|c)*", "(ab)+c*"), "max_length": 12}, {"negatives": "near_miss"}),
        ({"languages": ("(a|b|c)*",), "negatives": "random_abc"}, {"alphabet": "abcd"}),
        ({"unseen_languages": ("((b|c)a)*",), "test_share": 0.001, "pool_size": 16}, {"test_share": 0.2}),
    ],
)
def test_the_flag_that_the_sentence_names_helps(values: dict[str, Any], helps: dict[str, Any]) -> None:
    data = replace(LanguageData(unseen_languages=(), pool_size=128), **values)
    with pytest.raises(ConfigError) as caught:
        pools_of(data)
    said = str(caught.value)
    for name, value in helps.items():
        assert re.search(rf"--(config\.)?{name}\b", said), said
        assert f"--{name} {value}" in said or name != "max_length"
    pools_of(replace(data, **helps))


def test_the_third_language_as_published_says_what_was_meant() -> None:
    """In the paper [c] may be left out; as a class it is c."""
    data = LanguageData(languages=("a*bc*", "((a|b)c)*", "(ab[c])*"), unseen_languages=(), pool_size=128)
    with pytest.raises(ConfigError) as caught:
        pools_of(data)
    assert str(caught.value) == (
        "the language (ab[c])* has 6 members of length 1 to 20; at least 8 are needed: --max_length 24 gives enough; "
        "[c] is the same as c: for an optional c write (abc?)*"
    )
    counts = distinct_strings(pools_of(replace(data, max_length=24)))  # (abc)*, of 8 members
    assert [counts[name]["members"][2] for name in ("train", "test")] == [6, 2]
    pools_of(replace(data, languages=("a*bc*", "((a|b)c)*", "(abc?)*")))


def test_distinct_strings_are_those_that_were_drawn() -> None:
    pools = pools_of(SMALL)
    counts = distinct_strings(pools)
    assert list(counts) == ["train", "test"]
    for pool, of_set in zip((pools.train, pools.test), counts.values(), strict=True):
        for draws, name in ((pool.positives, "members"), (pool.negatives, "non_members")):
            found = np.array(texts_of(pool.strings, "abc"))
            assert of_set[name] == [len(set(found[row])) for row in draws]


# Seeds


def arrays(pools: Pools) -> list[np.ndarray]:
    return [part for pool in (pools.train, pools.test, pools.unseen) if pool is not None for part in pool]


def test_pools_are_of_their_seed() -> None:
    one = arrays(pools_of(DATA))
    pools_of.cache_clear()
    again = arrays(pools_of(replace(DATA)))
    for first, second in zip(one, again, strict=True):
        assert first is not second
        np.testing.assert_array_equal(first, second)
    other = pools_of(replace(DATA, pool_seed=1))
    assert texts(other.train) & texts(pools_of(DATA).test)  # what is tested differs too
    assert not texts(other.train) & texts(other.test)


def test_the_training_pool_does_not_depend_on_what_else_is_tested() -> None:
    one, other = (pools_of(replace(DATA, unseen_languages=names)) for names in (("c*ba*",), ()))
    for first, second in zip((*one.train, *one.test), (*other.train, *other.test), strict=True):
        np.testing.assert_array_equal(first, second)


def keys(languages: list[Language]) -> list[tuple[str, str]]:
    return [(str(own.automaton.transitions.tolist()), str(own.automaton.accepting.tolist())) for own in languages]


def test_random_languages_are_nested_in_their_number() -> None:
    drawn = partial(random_languages, "abc", (1, 12), num_states=5)
    many = drawn(count=30, stream=(0, 0))
    assert keys(drawn(count=4, stream=(0, 0))) == keys(many)[:4]
    assert [language.name for language in many] == [f"random{number}" for number in range(30)]
    assert len(set(keys(many))) == 30
    assert keys(drawn(count=30, stream=(1, 0))) != keys(many)


def test_random_languages_are_different_and_have_members_and_others() -> None:
    found = random_languages("ab", (1, 8), 25, 4, (0, 0))
    all_texts = every("ab", 8)  # with the empty string, in which alone two may differ
    inside = members(found, strings_of(all_texts, "ab", 8))
    assert len(np.unique(inside, axis=0)) == 25
    sizes = np.array([len(text) for text in all_texts])
    for own in inside:
        for part in (own, ~own):
            assert part[1:].sum() >= 8
            assert len(np.unique(sizes[1:][part[1:]])) >= 4


def test_unseen_random_languages_are_none_of_training() -> None:
    data = replace(SMALL, languages=("random",), num_languages=20, unseen_languages=("random",), num_unseen=10)
    trained, unseen = training_languages(data), unseen_languages(data)
    assert (len(trained), len(unseen)) == (20, 10)
    assert not set(keys(trained)) & set(keys(unseen))
    assert keys(unseen_languages(replace(data, num_unseen=3))) == keys(unseen)[:3]
    assert alphabet(data) == "abc"


# Errors


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"languages": ("ab",), "negatives": "random_abc"}, "the language ab has 1 members of length 1 to 8; at least"),
        ({"languages": ("a*b",), "min_length": 2}, "the language a*b has 7 members of length 2 to 8; at least"),
        ({"languages": ("(a|b|c)*",), "negatives": "random_abc"}, "has no non-members of length 1 to 8 over abc"),
        ({"languages": ("a*bc*",)}, "negatives other_language are members of another training language"),
        ({"languages": ("a*bc*",), "negatives": "mixed"}, "negatives mixed are members of another training language"),
        ({"languages": ("a*bc*", "c*ba*", "a*b(c*)")}, r"a*bc* and a*b(c*) are the same language; name each once"),
        ({"unseen_languages": ("a*b(c*)",)}, r"the unseen language a*b(c*) is one of those trained on"),
        (
            {"languages": ("(ab|c)*", "(ab)+c*"), "max_length": 12},
            "there are too few non-members (other_language) of (ab|c)* of length 1 to 12 among the strings of the "
            "training set",
        ),
        (
            {"languages": ("random",), "num_languages": 5, "num_states": 1},
            "there are only 0 usable random languages of 1 states, not 5; take more states",
        ),
        ({"languages": ("a*bd*",), "alphabet": "abc"}, "'a*bd*' is not a regular expression over abc"),
    ],
)
def test_what_cannot_fill_a_pool_is_refused(values: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(sentence)) as caught:
        pools_of(replace(SMALL, **values))
    assert is_one_sentence(caught.value)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"languages": ()}, "languages is empty"),
        ({"languages": ("random",)}, "num_languages is 0; it must be above 0 with `random`, and 0 without"),
        ({"num_languages": 3}, "num_languages is 3; it must be above 0 with `random`, and 0 without"),
        ({"unseen_languages": ("random",)}, "num_unseen is 0; it must be above 0 with `random`, and 0 without"),
        ({"negatives": "far_miss"}, "negatives is 'far_miss'; it must be one of random_hash, "),
        ({"alignment": "centre"}, "alignment is 'centre'; it must be one of left, right"),
        ({"min_length": 9}, "min_length is 9; it must be at most max_length, 8"),
        ({"max_length": 65}, "max_length is 65; it must be at most 64"),
        ({"test_share": 1.0}, "test_share is 1.0; it must be above 0 and below 1"),
        ({"positive_share": 0.0}, "positive_share is 0.0; it must be above 0 and below 1"),
        ({"pool_size": 4}, "num_pairs is 10; a pool has only 4 strings of a language and a label"),
        ({"min_length": -1}, "min_length is -1; it must be a whole number of at least 0"),
    ],
)
def test_what_no_data_can_be_is_refused(values: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(sentence)) as caught:
        replace(SMALL, **values)
    assert is_one_sentence(caught.value)


def test_an_unseen_language_that_is_named_twice_is_refused() -> None:
    with pytest.raises(ConfigError, match="are the same language; name each once"):
        unseen_languages(replace(SMALL, unseen_languages=("c*ba*", "((b|c)a)*", "c*b(a*)")))


def test_languages_that_differ_at_no_asked_length_are_the_same() -> None:
    same = {"languages": ("(abc?)*", "(abc?)+", "a*bc*")}, {"unseen_languages": ("(abc?)+",)}
    for values in same:
        with pytest.raises(ConfigError):
            pools_of(replace(SMALL, **values))
    found = random_languages("ab", (1, 8), 25, 4, (0, 0))
    inside = members(found, strings_of(every("ab", 8, 1), "ab", 8))
    assert len(np.unique(inside, axis=0)) == 25
