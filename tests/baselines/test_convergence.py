"""Iterations that end at a solution, on contractions whose number of steps is known."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from icl_lab.baselines.convergence import Solution, iterate, least_between, why_missing
from icl_lab.src.checks import ConfigError

RATES = jnp.array([0.5, 0.9, 1.0, jnp.nan])  # of v <- rate v from 1: 10 steps to below .001, 66, never, not a number


def contracted(most: int, rates: jax.Array = RATES) -> Solution:
    start = jnp.ones((len(rates), 1))
    return iterate(lambda v: rates[:, None] * v, lambda v: jnp.abs(v[:, 0]), start, 1e-3, most)


@pytest.mark.parametrize(
    ("most", "unsolved"), [(9, [True] * 4), (10, [False, True, True, True]), (66, [False, False, True, True])]
)
def test_each_context_takes_the_steps_that_it_needs(most: int, unsolved: list[bool]) -> None:
    found = jax.jit(contracted, static_argnums=0)(most)
    assert found.unsolved.tolist() == unsolved
    np.testing.assert_allclose(found.values[0], 0.5 ** min(most, 10), rtol=1e-6)
    np.testing.assert_array_equal(np.isnan(found.or_nan[:, 0]), unsolved)


def test_a_solved_start_is_not_touched() -> None:
    start = jnp.full((2, 1), 1e-4)
    found = iterate(lambda v: v / 2, lambda v: jnp.abs(v[:, 0]), start, 1e-3, 5)
    np.testing.assert_array_equal(found.values, start)


def test_the_least_of_a_function_is_found_and_of_no_numbers_there_is_none() -> None:
    assert least_between(lambda v: (v - 0.3) ** 2, -1, 2) == pytest.approx(0.3, abs=1e-4)
    with pytest.raises(ConfigError, match="no minimum was found between -1 and 2"):
        least_between(lambda v: float("nan"), -1, 2)


def test_the_sentence_counts_what_is_missing() -> None:
    assert why_missing(np.zeros(3)) is None
    said = why_missing(np.array([0.0, np.nan, np.inf]))
    assert said is not None
    assert said.startswith("in 2 of 3 contexts it has not converged")
