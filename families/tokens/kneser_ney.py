"""Interpolated Kneser-Ney: what counts of up to n symbols predict, the opponent of a model of text.

    p_n(w | h) = max(c(h w) - D_n, 0) / C(h) + D_n N(h) / C(h) p_{n-1}(w | h'),        p_0 = 1 / V

h are the n - 1 symbols before, h' without the first of them, C(h) the sum of c(h .) and N(h) how many symbols follow h.
c counts occurrences at the highest order, below it how many different symbols stand before; D = n_1 / (n_1 + 2 n_2) is
one discount for each order, and 1/2 where nothing comes once: with 0 a symbol that the text lacks would be impossible.
Where h has never come, p_n is p_{n-1}. Chen and Goodman 1999, Eq. 21 to 24.

A symbol's history ends where its window begins.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from icl_lab.src.checks import require

MOST_KEYS = 2**63  # numbers of n symbols in one whole number
UNDEFINED = 0.5  # the discount where nothing comes once


class Order(NamedTuple):
    """The counts of n symbols by their sorted numbers, those of their first n - 1 symbols, and the discount."""

    keys: np.ndarray
    counts: np.ndarray
    histories: np.ndarray
    totals: np.ndarray
    followed: np.ndarray
    discount: float

    def interpolated(self, keys: np.ndarray, shorter: np.ndarray, num_symbols: int) -> np.ndarray:
        """p_n of these n symbols, from p_{n-1} of the last n - 1 of them."""
        place = np.minimum(np.searchsorted(self.histories, keys // num_symbols), len(self.histories) - 1)
        known = self.histories[place] == keys // num_symbols
        own = np.maximum(_looked_up(self.keys, self.counts, keys) - self.discount, 0) / self.totals[place]
        left = self.discount * self.followed[place] / self.totals[place]
        return np.where(known, own + left * shorter, shorter)


class KneserNey:
    """The model of a text of symbols [T] below V, of orders 1 to n."""

    def __init__(self, symbols: np.ndarray, num_symbols: int, order: int):
        require(
            num_symbols**order < MOST_KEYS,
            f"{order} symbols, each one of {num_symbols}, have 2^63 combinations or more",
        )
        self.num_symbols, self.order = num_symbols, order
        keys, counts = np.unique(_windows_keys(symbols[None].astype(np.int64), num_symbols, order), return_counts=True)
        self.orders = [_order(keys, counts, num_symbols)]
        for length in range(order - 1, 0, -1):
            keys, counts = np.unique(keys % num_symbols**length, return_counts=True)
            self.orders.insert(0, _order(keys, counts, num_symbols))

    def log_probabilities(self, windows: np.ndarray) -> np.ndarray:
        """log p(x_t) [B, T - 1] of x_2 .. x_T of windows [B, T]."""
        windows = windows.astype(np.int64)
        found = np.full((windows.shape[0], windows.shape[1] - 1), 1 / self.num_symbols)
        for length, counted in enumerate(self.orders, start=1):
            first = max(length - 1, 1)  # the earliest place that has so many symbols before it
            keys = _windows_keys(windows, self.num_symbols, length)[:, first - length + 1 :]
            found[:, first - 1 :] = counted.interpolated(keys, found[:, first - 1 :], self.num_symbols)
        return np.log(found)

    def distributions(self, windows: np.ndarray) -> np.ndarray:
        """log p(w) [B, T - 1, V] of every symbol w in the place of x_2 .. x_T."""
        windows, every = windows.astype(np.int64), np.arange(self.num_symbols)
        found = np.full((windows.shape[0], windows.shape[1] - 1, self.num_symbols), 1 / self.num_symbols)
        for length, counted in enumerate(self.orders, start=1):
            first = max(length - 1, 1)
            last = _windows_keys(windows, self.num_symbols, length)[:, first - length + 1 :]
            keys = last[..., None] // self.num_symbols * self.num_symbols + every
            found[:, first - 1 :] = counted.interpolated(keys, found[:, first - 1 :], self.num_symbols)
        return np.log(found)


def _order(keys: np.ndarray, counts: np.ndarray, num_symbols: int) -> Order:
    histories, first = np.unique(keys // num_symbols, return_index=True)
    once, twice = np.count_nonzero(counts == 1), np.count_nonzero(counts == 2)
    discount = once / (once + 2 * twice) if once else UNDEFINED
    followed = np.diff(np.append(first, len(keys)))
    return Order(keys, counts, histories, np.add.reduceat(counts, first), followed, discount)


def _looked_up(keys: np.ndarray, values: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    found: np.ndarray = np.where(keys[place] == wanted, values[place], 0)
    return found


def _windows_keys(windows: np.ndarray, num_symbols: int, length: int) -> np.ndarray:
    """[B, T - length + 1]."""
    count = windows.shape[1] - length + 1
    found = np.zeros((windows.shape[0], max(count, 0)), np.int64)
    for place in range(length):
        found = found * num_symbols + windows[:, place : place + count]
    return found


# --- what the window itself says ---


def cached(windows: np.ndarray, length: int) -> np.ndarray:
    """[B, T - 1]: the symbol that followed the last `length` symbols when they came last in the window, or -1.

    Of x_2 .. x_T, from the symbols before each.
    """
    size, total = windows.shape
    found = np.full((size, total - 1), -1, np.int64)
    for row, window in enumerate(windows.tolist()):
        latest: dict[tuple[int, ...], int] = {}
        for place in range(length - 1, total - 1):
            history = tuple(window[place - length + 1 : place + 1])
            found[row, place] = latest.get(history, -1)
            latest[history] = window[place + 1]
    return found


def mixed(log_probability: np.ndarray, windows: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """log p [B, T - 1] of a model and of caches of 1, 2, ... symbols with weights [1 + caches], which sum to 1.

    A cache that says nothing leaves its weight to the model.
    """
    following = windows[:, 1:]
    found, left = np.zeros(log_probability.shape), np.ones(log_probability.shape)
    for length, weight in enumerate(weights[1:], start=1):
        said = cached(windows, length)
        found += weight * (said == following)
        left -= weight * (said >= 0)
    mixture: np.ndarray = np.log(found + left * np.exp(log_probability))
    return mixture


def fitted_weights(log_probability: np.ndarray, windows: np.ndarray, caches: int = 2, rounds: int = 200) -> np.ndarray:
    """The weights with the least loss at the places of windows where all caches speak, by expectation-maximisation.

    Where they never do, caches have no weight.
    """
    following = windows[:, 1:]
    said = np.stack([cached(windows, length) for length in range(1, caches + 1)])
    speak = (said >= 0).all(axis=0)
    weights = np.full(1 + caches, 1 / (1 + caches))
    if not speak.any():
        weights[:] = np.arange(1 + caches) == 0
        return weights
    likelihoods = np.stack([np.exp(log_probability), *(each == following for each in said)])[:, speak]
    for _ in range(rounds):
        shares = weights[:, None] * likelihoods
        weights = (shares / shares.sum(axis=0)).mean(axis=1)
    return weights
