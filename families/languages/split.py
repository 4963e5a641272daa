"""Which strings are for the tests: a share of all, by a hash, but for the strings of a group that has too few.

A string is in the training or in the test set whatever its label and language, so no string of the test set is ever
trained on. The hash leaves few of few strings: of the members (ab), (abab), ... of up to 20 symbols it may test none.
Such a group is stratified: of its strings those with the least hashes are tested, as many as the share says.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

HASH_SEED = 20_221_214  # of the hash by which strings are divided


class Split(NamedTuple):
    """A division of all strings: a share by the hash of a seed is tested; the strings `moved` are in the other set."""

    share: float
    seed: int
    moved: frozenset[bytes] = frozenset()

    def tests(self, strings: np.ndarray) -> np.ndarray:
        """Which strings [B, L] are of the test set: [B]."""
        return np.asarray(in_test_set(strings, self.share, self.seed) ^ among(strings, self.moved))


def among(strings: np.ndarray, some: frozenset[bytes]) -> np.ndarray:
    """Which strings [B, L] are among some: [B]."""
    if not some:
        return np.zeros(len(strings), bool)
    return np.array([string.tobytes() in some for string in strings], bool)


def in_test_set(strings: np.ndarray, share: float, seed: int) -> np.ndarray:
    """Which strings [B, L] are of the test set by the hash that a seed chooses, a share of all that there are: [B]."""
    return np.asarray(hashes(strings, seed) < np.uint64(int(share * 2**64)))


def hashes(strings: np.ndarray, seed: int) -> np.ndarray:
    """Hashes of strings [B, L], uniform below 2^64: [B]."""
    factors = np.random.default_rng([HASH_SEED, seed]).integers(
        1, 2**63, size=strings.shape[1], dtype=np.uint64
    ) | np.uint64(1)
    with np.errstate(over="ignore"):
        mixed = ((strings.astype(np.uint64) + np.uint64(1)) * factors).sum(axis=1, dtype=np.uint64)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):  # splitmix64's last steps
            mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    mixed ^= mixed >> np.uint64(31)
    return np.asarray(mixed, np.uint64)


def stratified(
    split: Split, groups: Sequence[np.ndarray], least: int, trained: frozenset[bytes] | None = None
) -> Split:
    """The split after strings are moved in each group, distinct strings [S, L], of which a set has fewer than `least`.

    Such a group then has its share in the test set, and at least `least` in both. With `trained`, the strings of a
    training set that is done, these stay in it, and the test set alone is looked at. A string is moved once at most, so
    groups that share strings may keep one from having enough.
    """
    after = split
    for strings in groups:
        after = _with_enough(after, strings, least, trained)
    return after if after == split else stratified(after, groups, least, trained)


def _with_enough(split: Split, strings: np.ndarray, least: int, trained: frozenset[bytes] | None) -> Split:
    tested = split.tests(strings)
    total, inside = len(strings), int(tested.sum())
    if inside >= least and (trained is not None or total - inside >= least):
        return split
    missing = max(least, min(round(split.share * total), total - least)) - inside
    free = ~among(strings, split.moved | (trained or frozenset()))
    order = np.argsort(hashes(strings, split.seed))
    candidates = order[(free & ~tested)[order]] if missing > 0 else order[(free & tested)[order]][::-1]
    moved = frozenset(strings[row].tobytes() for row in candidates[: abs(missing)])
    return split._replace(moved=split.moved | moved)
