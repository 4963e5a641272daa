import re
from dataclasses import replace

import numpy as np
import pytest

from icl_lab.families.languages import codes
from icl_lab.families.languages.codes import coded_pools, frequencies
from icl_lab.families.languages.data import CodeConfig, LanguageData
from icl_lab.families.languages.expressions import of_expression
from icl_lab.families.languages.pools import Pool, pools_of
from icl_lab.src.checks import ConfigError
from tests.families.languages.derivatives import every, matches, strings_of, texts_of

DATA = LanguageData(max_length=8, pool_size=256, unseen_languages=("c*ba*", "((b|c)a)*"))
AB = ("", "a", "ba", "abb")  # of up to 3 symbols of ab, where a pad is 2


def of_ab(*texts: str) -> np.ndarray:
    return strings_of(texts, "ab", 3)


# Features


def test_one_hot() -> None:
    a, b, pad = [1, 0, 0], [0, 1, 0], [0, 0, 1]
    expected = [pad * 3, a + pad * 2, b + a + pad, a + b * 2]
    np.testing.assert_array_equal(codes.one_hot(of_ab(*AB), 2), expected)


def test_raw_index() -> None:
    found = codes.raw_index(of_ab(*AB, "b#a"), 2)
    np.testing.assert_array_equal(found, [[2, 2, 2], [0, 2, 2], [1, 0, 2], [0, 1, 1], [1, 2, 0]])
    assert found.dtype == np.float32


def test_bigrams() -> None:
    """aa, ab, a#, ba, bb, b#, #a, #b, where # is an end."""
    found = codes.bigrams(of_ab(*AB, "aaa", "b#a"), 2)
    expected = [
        [0, 0, 0, 0, 0, 0, 0, 0],
        [0, 0, 1, 0, 0, 0, 1, 0],
        [0, 0, 1, 1, 0, 0, 0, 1],
        [0, 1, 0, 0, 1, 1, 1, 0],
        [2, 0, 1, 0, 0, 0, 1, 0],
        [0, 0, 1, 0, 0, 1, 1, 1],
    ]
    np.testing.assert_array_equal(found, expected)


def test_bigrams_do_not_depend_on_where_a_string_stands() -> None:
    strings = strings_of(every("abc", 4), "abc", 6)
    moved = np.roll(strings, 2, axis=1)
    np.testing.assert_array_equal(codes.bigrams(strings, 3), codes.bigrams(moved, 3))
    np.testing.assert_array_equal(
        codes.bigrams(strings, 3)[1:].sum(axis=1), [len(text) + 1 for text in every("abc", 4)[1:]]
    )


def test_states() -> None:
    """Of (ab)*: even, after a, lost. Of a*: as many a as there are, or lost. A pad before a symbol: none."""
    automata = [of_expression("(ab)*", "ab"), of_expression("a*", "ab")]
    found = codes.states(of_ab("", "a", "ab", "b", "a#b"), 2, automata)
    assert found.shape == (5, 5)
    even, after, lost = found[0, :3], found[1, :3], found[3, :3]
    np.testing.assert_array_equal(even + after + lost, [1, 1, 1])
    np.testing.assert_array_equal(found[2, :3], even)
    np.testing.assert_array_equal(found[:4, 3:], [[1, 0], [1, 0], [0, 1], [0, 1]])
    np.testing.assert_array_equal(found[4], np.zeros(5))


def test_states_tell_membership() -> None:
    expressions = ("a*bc*", "((a|b)c)*", "(abc?)*")
    automata = [of_expression(expression, "abc") for expression in expressions]
    texts = every("abc", 6)
    found = codes.states(strings_of(texts, "abc", 6), 3, automata)
    np.testing.assert_array_equal(found.sum(axis=1), np.full(len(texts), 3))
    accepting = np.zeros((found.shape[1], 3))
    first = 0
    for number, automaton in enumerate(automata):
        size = len(automaton.accepting)
        accepting[first : first + size, number] = automaton.accepting
        first += size
    expected = [[matches(expression, text) for expression in expressions] for text in texts]
    np.testing.assert_array_equal(found @ accepting, expected)


def test_aligned_right_the_pads_stand_first() -> None:
    strings = strings_of(["", "a", "abc", "abcab", "a#b"], "abc", 5)
    expected = [[3, 3, 3, 3, 3], [3, 3, 3, 3, 0], [3, 3, 0, 1, 2], [0, 1, 2, 0, 1], [3, 3, 0, 3, 1]]
    np.testing.assert_array_equal(codes.aligned(strings, 3, "right"), expected)
    np.testing.assert_array_equal(codes.aligned(strings, 3, "left"), strings)


# Centre, directions and scale


def moments_of(found: np.ndarray, pool: Pool) -> tuple[np.ndarray, np.ndarray]:
    """The mean and covariance of codes, strings counted one by one as often as they stand among the draws."""
    rows = found.astype(np.float64)[np.concatenate([pool.positives.ravel(), pool.negatives.ravel()])]
    return rows.mean(axis=0), np.cov(rows.T, bias=True)


@pytest.mark.parametrize(("kind", "dim"), [("one_hot", 12), ("raw_index", 8), ("bigrams", 8), ("states", 4)])
@pytest.mark.parametrize("alignment", ["left", "right"])
def test_whitened_codes_have_mean_0_and_covariance_1(kind: str, dim: int, alignment: str) -> None:
    data = replace(DATA, alignment=alignment)
    pool = pools_of(data).train
    mean, covariance = moments_of(coded_pools(data, CodeConfig(kind=kind, dim=dim)).train, pool)
    # codes are float32, of size up to 10
    np.testing.assert_allclose(mean, np.zeros(dim), atol=1e-5)
    np.testing.assert_allclose(covariance, np.eye(dim), atol=1e-5)


def test_strings_count_as_often_as_they_are_drawn() -> None:
    pool = pools_of(DATA).train
    found = frequencies(pool)
    assert found.sum() == pool.positives.size + pool.negatives.size
    assert found.min() >= 1
    assert found.max() > 20  # so that it makes a difference: b alone is a twenty-fourth of all
    for row in (0, 7, int(found.argmax())):
        assert found[row] == np.sum(pool.positives == row) + np.sum(pool.negatives == row)
    code = coded_pools(DATA, CodeConfig(dim=6)).train
    assert np.abs(np.cov(code.T, bias=True) - np.eye(6)).max() > 0.1


def test_centred_codes_are_the_principal_components() -> None:
    """Their covariance is that of the features, in its main directions; distances are kept where all are."""
    pool = pools_of(DATA).train
    features = codes.one_hot(pool.strings, 3).astype(np.float64)
    _, of_features = moments_of(features, pool)
    values = np.linalg.eigvalsh(of_features)[::-1]
    mean, covariance = moments_of(coded_pools(DATA, CodeConfig(scale="centred", dim=5)).train, pool)
    np.testing.assert_allclose(mean, np.zeros(5), atol=1e-6)
    np.testing.assert_allclose(covariance, np.diag(values[:5]), atol=1e-6)
    rank = int(np.sum(values > 1e-9))
    full = coded_pools(DATA, CodeConfig(scale="centred", dim=rank)).train
    one, other = (rows[:50, None] - rows[None, 50:100] for rows in (full, features))
    np.testing.assert_allclose((one**2).sum(axis=2), (other**2).sum(axis=2), atol=1e-4)


def test_what_is_tested_is_coded_as_what_is_trained_on() -> None:
    """By the training pool's centre and directions: the same affine map for the strings of every set."""
    data = replace(DATA, negatives="random_abc")
    pools, found = pools_of(data), coded_pools(data, CodeConfig(dim=6))
    features, train = codes.one_hot(pools.train.strings, 3).astype(np.float64), found.train
    ones = np.ones((len(features), 1))
    solution = np.linalg.lstsq(np.hstack([features, ones]), train, rcond=1e-9)[0]
    inside = np.hstack([features, ones])
    np.testing.assert_allclose(inside @ solution, train, atol=1e-4)
    for strings, own in ((pools.test.strings, found.test), (pools.unseen.strings, found.unseen)):
        # strings whose features are combinations of those of training, for which the map is known
        rows = np.hstack([codes.one_hot(strings, 3), np.ones((len(strings), 1))])
        known = np.linalg.norm(rows - rows @ np.linalg.pinv(inside, rcond=1e-9) @ inside, axis=1) < 1e-6
        assert known.sum() > 10
        np.testing.assert_allclose(rows[known] @ solution, own[known], atol=1e-4)


def test_a_constant_stands_behind_the_codes() -> None:
    plain, more = (coded_pools(DATA, CodeConfig(dim=4, constant=constant)) for constant in (False, True))
    for without, behind in zip(plain, more, strict=True):
        np.testing.assert_array_equal(behind, np.hstack([without, np.ones((len(without), 1))]))


def test_raw_codes_are_the_features() -> None:
    found = coded_pools(DATA, CodeConfig("raw_index", "raw", 8))
    np.testing.assert_array_equal(found.test, pools_of(DATA).test.strings)
    again = coded_pools(DATA, CodeConfig("bigrams", "raw", 15)).test
    texts = texts_of(pools_of(DATA).test.strings, "abc")
    np.testing.assert_array_equal(again[:, 1], [len(re.findall("ab", text)) for text in texts])


def test_of_a_learned_code_the_pools_have_the_symbols() -> None:
    found = coded_pools(DATA, CodeConfig("learned"))
    np.testing.assert_array_equal(found.test, codes.one_hot(pools_of(DATA).test.strings, 3))


def test_without_an_unseen_set_its_codes_are_empty() -> None:
    data = replace(DATA, unseen_languages=())
    assert coded_pools(data, CodeConfig(dim=4, constant=True)).unseen.shape == (0, 5)
    assert coded_pools(data, CodeConfig("learned")).unseen.shape == (0, 32)


# Errors


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        (CodeConfig("raw_index", "whitened", 9), "the raw_index of these strings vary in 8 directions, fewer than"),
        (CodeConfig("raw_index", "raw", 7), "a raw code of raw_index has 8 channels, not 7; set --code_dim 8"),
        (CodeConfig("raw_index", "raw", 9), "a raw code of raw_index has 8 channels, not 9; set --code_dim 8"),
        (CodeConfig("bigrams", "raw", 16), "a raw code of bigrams has 15 channels, not 16"),
        # one-hot symbols of a place sum to 1, so that 8 of 32 directions do not vary at least
        (CodeConfig("one_hot", "centred", 25), "the one_hot of these strings vary in "),
    ],
)
def test_a_dimension_that_is_not_there_is_refused(code: CodeConfig, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence) as caught:
        coded_pools(DATA, code)
    assert "\n" not in str(caught.value)


def test_features_that_do_not_vary_have_no_direction() -> None:
    with pytest.raises(ConfigError, match="the states of these strings vary in 0 directions, fewer than code_dim 1"):
        codes.fit(np.ones((5, 3)), np.ones(5), 1, "whitened", "states")
