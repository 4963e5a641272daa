"""Ranks by comparison are NumPy's stable sort."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from icl_lab.src.sorting import MOST_COMPARED, stable_order


@given(arrays(np.float32, (2, 3, 7), elements=st.sampled_from([-1.0, -0.0, 0.0, 0.5, np.inf])))
def test_ties_and_second_keys_are_as_in_numpy(keys: np.ndarray) -> None:
    expected = np.lexsort(keys[::-1], axis=1)
    np.testing.assert_array_equal(stable_order([jnp.asarray(key) for key in keys]), expected)


@pytest.mark.parametrize("num_pairs", [1, 10, MOST_COMPARED, MOST_COMPARED + 1])
def test_both_ways_give_the_same_kind_of_index(num_pairs: int) -> None:
    keys = np.random.default_rng(num_pairs).integers(0, 5, (20, num_pairs)).astype(np.float32)
    index = stable_order([jnp.asarray(keys)])
    assert index.dtype == jnp.int32
    np.testing.assert_array_equal(index, np.argsort(keys, axis=1, kind="stable"))


def test_flags_are_keys_too() -> None:
    hit = jnp.array([[True, False, True, False]])
    np.testing.assert_array_equal(stable_order([hit]), [[1, 3, 0, 2]])
