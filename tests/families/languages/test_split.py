"""Splits of strings: stratified where a group has too few, and no string but those of such a group moved."""

import numpy as np
import pytest

from icl_lab.families.languages.split import Split, hashes, in_test_set, stratified
from tests.families.languages.derivatives import every, strings_of

ALL = strings_of(every("ab", 9), "ab", 9)


def groups_of(*sizes: int, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [ALL[np.sort(rng.choice(len(ALL), size, replace=False))] for size in sizes]


def keys(strings: np.ndarray) -> set[bytes]:
    return {string.tobytes() for string in strings}


@pytest.mark.parametrize("share", [0.05, 0.2, 0.5, 0.95])
@pytest.mark.parametrize("size", [4, 10, 20])
def test_a_group_that_has_too_few_gets_its_share_by_the_order_of_hashes(share: float, size: int) -> None:
    for seed in range(40):
        (group,) = groups_of(size, seed=seed)
        plain = Split(share, seed)
        split = stratified(plain, [group], 2)
        tested, before = split.tests(group), in_test_set(group, share, seed)
        if 2 <= before.sum() <= size - 2:
            assert split is plain
            continue
        assert tested.sum() == min(max(round(share * size), 2), size - 2)
        order = hashes(group, seed)
        assert order[tested].max() < order[~tested].min()


def test_no_other_string_is_moved() -> None:
    few, many = groups_of(6, 300, seed=3)
    split = stratified(Split(0.01, 0), [few, many], 2)
    moved = split.tests(ALL) != in_test_set(ALL, 0.01, 0)
    assert moved.any()
    assert keys(ALL[moved]) <= keys(few) | keys(many)
    assert stratified(split, [few, many], 2) is split


def test_groups_that_share_strings_all_have_enough() -> None:
    whole = groups_of(12, seed=5)[0]
    for seed in range(40):
        groups = [whole[:8], whole[4:], whole[2:10]]
        split = stratified(Split(0.1, seed), groups, 2)
        for group in groups:
            assert 2 <= split.tests(group).sum() <= len(group) - 2


def test_of_a_training_set_that_is_done_no_string_is_moved() -> None:
    (group,) = groups_of(12)
    for seed in range(20):
        split = Split(0.1, seed)
        trained = frozenset(keys(group[~split.tests(group)][:6]))
        after = stratified(split, [group], 2, trained)
        assert after.tests(group).sum() >= 2
        assert not any(string.tobytes() in trained for string in group[after.tests(group)])


def test_a_group_too_small_for_both_sets_stays_short_of_one() -> None:
    (group,) = groups_of(3)
    tested = stratified(Split(0.2, 1), [group], 2).tests(group).sum()
    assert tested == 2
