"""Captured attention in numbers, for maps whose numbers are known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from icl_lab.analysis.attention_maps import batch_mean, head_summary, summarise

MAPS = hnp.arrays(
    np.float32,
    st.tuples(st.integers(1, 4), st.integers(1, 2), st.integers(1, 3), st.integers(1, 4)),
    elements=st.floats(-100, 100, width=32),
)


@given(MAPS)
def test_the_mean_over_tasks_is_exact(maps: np.ndarray) -> None:
    """Summed task by task in float64 and rounded once."""
    total = sum((task.astype(np.float64) for task in maps), np.zeros(maps.shape[1:]))
    found = batch_mean(maps)
    assert (found.dtype, found.shape) == (np.float32, maps.shape[1:])
    np.testing.assert_allclose(found, (total / len(maps)).astype(np.float32), rtol=1e-6, atol=1e-30)


def test_many_tasks_do_not_lose_digits() -> None:
    """In float32 a sum of 100 000 ones and tenths is off in the fourth digit; in float64 it is not."""
    maps = np.full((100_000, 1, 1, 1), 0.1, np.float32)
    maps[0] = 1e5
    expected = (1e5 + 99_999 * float(np.float32(0.1))) / 100_000
    assert float(batch_mean(maps)[0, 0, 0]) == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("columns", [1, 4, 7])
def test_attention_that_is_uniform(columns: int) -> None:
    found = head_summary(np.full((5, 3, columns), 1 / columns, np.float32))
    assert found["mean"] == found["mean_abs"] == pytest.approx(1 / columns)
    assert (found["std_over_tasks"], found["heaviest_share"]) == (0, pytest.approx(1 / columns))


def test_attention_on_one_token() -> None:
    maps = np.tile(np.eye(3, 4, dtype=np.float32), (5, 1, 1))
    found = head_summary(-maps)
    assert (found["mean"], found["mean_abs"]) == (-0.25, 0.25)
    assert (found["std_over_tasks"], found["heaviest_share"]) == (0, 1)


def test_attention_that_changes_between_tasks() -> None:
    """Weights of +1 and -1 in two tasks have mean 0, mean absolute value 1 and a standard deviation of 1."""
    maps = np.ones((2, 3, 2), np.float32)
    maps[1] = -1
    assert head_summary(maps) == {"mean": 0.0, "mean_abs": 1.0, "std_over_tasks": 1.0, "heaviest_share": 0.5}


def test_rows_of_zeros_are_no_division_by_zero() -> None:
    assert head_summary(np.zeros((2, 3, 4), np.float32))["heaviest_share"] == 0


def test_a_summary_tells_layers_and_heads_apart() -> None:
    first = np.stack([np.full((5, 3, 2), 0.5), np.full((5, 3, 2), -1.0)], axis=1).astype(np.float32)
    second = np.full((5, 1, 4, 3), 2.0, np.float32)
    found = summarise([first, second], ["softmax", "linear"])
    assert found["tasks"] == 5
    told = [(part["layer"], part["kind"], part["rows"], part["cols"]) for part in found["layers"]]
    assert told == [(0, "softmax", 3, 2), (1, "linear", 4, 3)]
    heads = [[(head["head"], head["mean"]) for head in part["heads"]] for part in found["layers"]]
    assert heads == [[(0, 0.5), (1, -1.0)], [(0, 2.0)]]


def test_every_layer_needs_its_kind() -> None:
    with pytest.raises(ValueError, match="shorter"):
        summarise([np.zeros((1, 1, 1, 1)), np.zeros((1, 1, 1, 1))], ["linear"])
