"""Entropy, variability and masses of constructed heads, and which rows count."""

import numpy as np
import pytest
from scipy.stats import entropy

from icl_lab.analysis.development.attention_patterns import (
    Kind,
    are_causal,
    are_distributions,
    entropies,
    patterns,
    rows_of,
    variabilities,
)

RNG = np.random.default_rng(0)
CAUSAL, LAST = Kind(True, True, False), Kind(True, True, True)
PAIRS = Kind(False, False, False)
SIZE = 6  # tokens x, y, x, y, x, y


def causal_maps(contexts: int, heads: int, size: int = SIZE) -> np.ndarray:
    """Random causal attention."""
    weights = np.tril(RNG.uniform(0.1, 1, (contexts, heads, size, size)))
    return weights / weights.sum(axis=-1, keepdims=True)


def previous_token_head() -> np.ndarray:
    """A head [1, 1, R, T] that looks at the token before, the first at itself."""
    maps = np.eye(SIZE, k=-1)
    maps[0, 0] = 1
    return maps[None, None]


def uniform_head() -> np.ndarray:
    """A head that looks at all visible tokens alike."""
    maps = np.tril(np.ones((SIZE, SIZE)))
    return (maps / maps.sum(axis=1, keepdims=True))[None, None]


@pytest.mark.usefixtures("x64")
def test_entropy_is_scipys_and_in_shares_of_all_visible() -> None:
    maps, visible = causal_maps(3, 2), rows_of(SIZE, SIZE, CAUSAL).visible
    expected = entropy(maps, base=2, axis=-1).mean(axis=0)[:, 1:] / np.log2(np.arange(2, SIZE + 1))
    np.testing.assert_allclose(entropies(maps, visible)[:, 1:], expected, rtol=1e-10)
    np.testing.assert_array_equal(entropies(maps, visible)[:, 0], 0)


@pytest.mark.usefixtures("x64")
def test_a_head_that_looks_alike_has_all_entropy_and_a_previous_token_head_none() -> None:
    even, before = (patterns(maps, CAUSAL) for maps in (uniform_head(), previous_token_head()))
    assert even["entropy"] == pytest.approx(1)
    assert before["entropy"] == pytest.approx(0, abs=1e-12)
    assert before["previous"] == pytest.approx(1)
    assert before["self"] == pytest.approx(0)
    assert even["self"] == pytest.approx(np.mean([1 / 2, 1 / 3, 1 / 4, 1 / 5]))  # rows 2 to 5: the last y is not read
    assert before["inputs"] == pytest.approx(1 / 2)  # y, x, y, x look at x, y, x, y


@pytest.mark.usefixtures("x64")
def test_mass_on_inputs_and_entropies_of_each_kind_of_row() -> None:
    maps = previous_token_head()
    maps[0, 0, [2, 4]] = 0
    maps[0, 0, 2, [0, 2]] = 0.5  # inputs look at inputs alone
    maps[0, 0, 4, [0, 2, 4]] = 1 / 3
    found = patterns(maps, CAUSAL)
    assert found["inputs"] == pytest.approx(1)
    assert found["entropy_y"] == pytest.approx(0, abs=1e-12)
    assert found["entropy_x"] == pytest.approx(np.mean([1 / np.log2(3), np.log2(3) / np.log2(5)]))
    assert patterns(maps, LAST)["entropy"] == found["entropy_x"]


@pytest.mark.usefixtures("x64")
def test_variability_is_zero_for_one_pattern_and_half_for_two_that_share_nothing() -> None:
    same = np.repeat(uniform_head(), 4, axis=0)
    np.testing.assert_allclose(variabilities(same), 0, atol=1e-15)
    two = np.zeros((2, 1, 1, 4))
    two[0, 0, 0, 0] = two[1, 0, 0, 3] = 1
    np.testing.assert_allclose(variabilities(two), 0.5)
    maps = causal_maps(5, 2)
    apart = [[np.abs(maps[:, h, r] - maps[:, h, r].mean(0)).sum(1).mean() / 2 for r in range(SIZE)] for h in (0, 1)]
    np.testing.assert_allclose(variabilities(maps), apart, rtol=1e-10)


def test_rows_that_count() -> None:
    assert rows_of(SIZE, SIZE, CAUSAL).measured.tolist() == [False, True, True, True, True, False]
    assert rows_of(SIZE, SIZE, LAST).measured.tolist() == [False, False, True, False, True, False]
    assert rows_of(4, 3, PAIRS).measured.all()
    assert rows_of(4, 3, PAIRS._replace(last=True)).measured.tolist() == [False, False, False, True]
    assert rows_of(4, 3, PAIRS).visible.all()


def test_pairs_have_no_inputs_and_a_last_layer_no_selves() -> None:
    maps = RNG.dirichlet(np.ones(3), (5, 2, 4))
    assert set(patterns(maps, PAIRS)) == {"entropy", "variability", "self", "previous"}
    last = patterns(maps, PAIRS._replace(last=True))
    assert set(last) == {"entropy", "variability", "previous"}
    np.testing.assert_allclose(last["previous"], maps[:, :, 3, 2].mean(axis=0), rtol=1e-5)


def test_what_is_a_distribution_and_what_is_causal() -> None:
    maps = causal_maps(2, 1)
    assert are_distributions(maps)
    assert are_causal(maps)
    assert not are_distributions(2 * maps)
    assert not are_distributions(np.array([[1.5, -0.5]]))
    assert not are_causal(np.ones((1, 1, 3, 3)) / 3)
    assert not are_causal(np.eye(4)[None, None, :, :3])
