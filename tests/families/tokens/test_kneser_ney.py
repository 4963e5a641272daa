"""Kneser-Ney against a plain recursion over dictionaries, sums, and caches by hand."""

import math
from collections import Counter, defaultdict

import numpy as np
import pytest

from icl_lab.families.tokens import kneser_ney
from icl_lab.families.tokens.kneser_ney import KneserNey
from icl_lab.src.checks import ConfigError

SYMBOLS = 5
TEXT = np.random.default_rng(0).choice(SYMBOLS, size=400, p=[0.4, 0.3, 0.15, 0.1, 0.05])
WINDOWS = np.random.default_rng(1).choice(SYMBOLS, size=(6, 9))


def plainly(order: int, window: list[int], place: int) -> float:
    """p of the symbol at a place, by the formula as it is written."""
    text = TEXT.tolist()
    counts: dict[int, Counter[tuple[int, ...]]] = {
        order: Counter(tuple(text[at : at + order]) for at in range(len(text) - order + 1))
    }
    for length in range(order - 1, 0, -1):
        counts[length] = Counter(key[1:] for key in counts[length + 1])

    def p(length: int, symbol: int) -> float:
        if length == 0:
            return 1 / SYMBOLS
        if place < length - 1:
            return p(length - 1, symbol)
        history = tuple(window[place - length + 1 : place])
        after: dict[tuple[int, ...], dict[int, int]] = defaultdict(dict)
        for key, count in counts[length].items():
            after[key[:-1]][key[-1]] = count
        frequencies = Counter(counts[length].values())
        discount = frequencies[1] / (frequencies[1] + 2 * frequencies[2]) if frequencies[1] else 0.5
        if history not in after:
            return p(length - 1, symbol)
        total = sum(after[history].values())
        own = max(after[history].get(symbol, 0) - discount, 0) / total
        return own + discount * len(after[history]) / total * p(length - 1, symbol)

    return p(order, window[place])


@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_it_is_the_formula(order: int) -> None:
    found = KneserNey(TEXT, SYMBOLS, order).log_probabilities(WINDOWS)
    wanted = [[math.log(plainly(order, row, place)) for place in range(1, len(row))] for row in WINDOWS.tolist()]
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


@pytest.mark.parametrize("order", [1, 2, 4])
def test_distributions_sum_to_one_and_hold_the_same_numbers(order: int) -> None:
    model = KneserNey(TEXT, SYMBOLS, order)
    every = model.distributions(WINDOWS)
    np.testing.assert_allclose(np.exp(every).sum(axis=-1), 1, rtol=1e-12)
    chosen = np.take_along_axis(every, WINDOWS[:, 1:, None], axis=-1)[..., 0]
    np.testing.assert_allclose(chosen, model.log_probabilities(WINDOWS), rtol=1e-12)


def test_a_higher_order_is_better_on_text_that_has_it() -> None:
    draw = np.random.default_rng(2)
    text = [0, 1]
    for _ in range(20_000):
        text.append((text[-1] + text[-2]) % SYMBOLS if draw.random() < 0.9 else int(draw.integers(SYMBOLS)))
    windows = np.array(text[-4000:]).reshape(-1, 40)
    losses = [-KneserNey(np.array(text[:-4000]), SYMBOLS, n).log_probabilities(windows).mean() for n in (1, 2, 3)]
    assert losses[0] > 1.55  # log 5 is 1.61
    assert losses[1] > 1.4
    # entropy of the rule is .92 log(1/.92) + 4 (.02) log(1/.02) = .39; the first two symbols of 40 lack their history
    assert losses[2] == pytest.approx(0.39, abs=0.06)


def test_caches_say_what_followed_last() -> None:
    window = np.array([[1, 2, 1, 3, 1, 2, 1]])
    assert kneser_ney.cached(window, 1).tolist() == [[-1, -1, 2, -1, 3, 1]]
    assert kneser_ney.cached(window, 2).tolist() == [[-1, -1, -1, -1, -1, 1]]
    said = np.log(np.full((1, 6), 0.2))
    found = np.exp(kneser_ney.mixed(said, window, np.array([0.5, 0.3, 0.2])))
    np.testing.assert_allclose(found, [[0.2, 0.2, 0.14, 0.2, 0.14, 0.6]], rtol=1e-12)


def test_fitted_weights_are_the_best_of_their_kind() -> None:
    draw = np.random.default_rng(3)
    half = draw.choice(SYMBOLS, size=(60, 12))
    windows = np.concatenate([half, half], axis=1)  # what came once comes again
    said = KneserNey(TEXT, SYMBOLS, 2).log_probabilities(windows)
    best = kneser_ney.fitted_weights(said, windows)
    assert best.sum() == pytest.approx(1, abs=1e-12)
    both = (kneser_ney.cached(windows, 1) >= 0) & (kneser_ney.cached(windows, 2) >= 0)

    def loss(weights: np.ndarray) -> float:
        return float(-kneser_ney.mixed(said, windows, weights)[both].mean())

    for change in ([0.02, -0.02, 0], [-0.02, 0, 0.02], [0, 0.02, -0.02]):
        assert loss(best) < loss(best + np.array(change))


def test_too_many_combinations_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"6 symbols, each one of 5000, have 2\^63 combinations or more"):
        KneserNey(TEXT, 5000, 6)


def test_a_symbol_that_the_text_lacks_is_possible_even_if_nothing_comes_once() -> None:
    """Twice "0 1 2": half a count is taken from each of the three, and shared by five symbols."""
    found = KneserNey(np.array([0, 1, 2, 0, 1, 2]), SYMBOLS, 1).distributions(np.array([[0, 4]]))
    np.testing.assert_allclose(np.exp(found[0, 0]), [0.25 + 0.05] * 3 + [0.05] * 2, rtol=1e-12)


def test_caches_that_never_speak_have_no_weight() -> None:
    windows = np.array([[0, 1], [2, 3]])
    said = np.log(np.full((2, 1), 0.2))
    weights = kneser_ney.fitted_weights(said, windows)
    assert weights.tolist() == [1, 0, 0]
    np.testing.assert_allclose(kneser_ney.mixed(said, windows, weights), said, rtol=1e-12)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_a_symbol_that_never_came_has_a_probability(order: int) -> None:
    model = KneserNey(np.tile(np.arange(3, dtype=np.int32), 50), 4, order)
    found = np.exp(model.distributions(np.array([[0, 1, 2, 0, 3, 1]])))
    assert (found > 0).all()
    np.testing.assert_allclose(found.sum(axis=-1), 1)
