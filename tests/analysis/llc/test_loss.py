"""A model as a function of one vector: parameters are got back, losses are the user's, and errors are sentences."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icl_lab.analysis.llc.loss import (
    all_losses,
    check,
    finite_losses,
    first,
    gradient,
    in_chunks,
    mean_over_chunks,
    size_of,
    split,
)
from icl_lab.src.checks import ConfigError


def unused(params: Any, batch: Any) -> Any:
    return batch


# --- parameters ---

floats = st.builds(
    lambda shape, kind, seed: np.random.default_rng(seed).standard_normal(shape).astype(kind),
    st.sampled_from([(), (3,), (2, 3), (0,)]),
    st.sampled_from([np.float32, np.float16]),
    st.integers(0, 9),
)
others = st.one_of(
    st.integers(-3, 3),
    st.sampled_from([None, unused, "name", True, np.arange(3), np.int32(4), np.array(["a"]), np.array([True, False])]),
)
trees = st.recursive(
    st.one_of(floats, others),
    lambda inner: st.one_of(
        st.dictionaries(st.sampled_from("abcd"), inner, max_size=3),
        st.lists(inner, max_size=3),
        st.tuples(inner, inner),
    ),
    max_leaves=6,
)


@given(trees, floats)
def test_parameters_are_got_back_whole(tree: Any, one: np.ndarray) -> None:
    """The same structure, floats of their own shape and type, and all else as it was."""
    params = {"tree": tree, "one": one}
    taken = split(unused, params)
    back = taken.whole(taken.vector)
    assert jax.tree.structure(back) == jax.tree.structure(params)
    count = 0
    for was, now in zip(jax.tree.leaves(params), jax.tree.leaves(back), strict=True):
        if isinstance(was, (np.ndarray, np.generic)) and np.issubdtype(was.dtype, np.floating):
            assert (now.shape, now.dtype) == (was.shape, was.dtype)
            np.testing.assert_array_equal(now, was)
            count += was.size
        else:
            assert now is was
    assert taken.vector.shape == (count,)


@given(st.integers(0, 2**16))
def test_another_vector_is_put_where_the_first_was(seed: int) -> None:
    params = {"b": np.zeros((2, 3), np.float32), "a": [np.zeros(2, np.float32), 7], "c": np.arange(2)}
    vector = np.random.default_rng(seed).standard_normal(8).astype(np.float32)
    whole = split(unused, params).whole(jnp.asarray(vector))
    np.testing.assert_array_equal(whole["a"][0], vector[:2])
    np.testing.assert_array_equal(whole["b"], vector[2:].reshape(2, 3))
    assert whole["a"][1] == 7


def test_the_form_has_no_values_so_that_checkpoints_share_a_program() -> None:
    one, other = ({"w": np.full(3, value, np.float32), "n": np.arange(2)} for value in (1.0, 2.0))
    assert split(unused, one).form == split(unused, other).form
    assert hash(split(unused, one).form) == hash(split(unused, other).form)
    assert split(unused, one).form != split(unused, {"w": np.zeros(4, np.float32), "n": np.arange(2)}).form


@pytest.mark.parametrize("params", [{}, {"n": np.arange(3)}, {"lr": 0.1}, None, [unused]])
def test_parameters_without_a_float_are_refused(params: Any) -> None:
    with pytest.raises(ConfigError, match="the parameters have no floating-point array, so that there is nothing to"):
        split(unused, params)


# --- losses ---

X = np.random.default_rng(0).standard_normal((7, 2)).astype(np.float32)
PARAMS = {"w": np.array([0.5, -1.0], np.float32), "power": 2}


def squares(params: Any, batch: Any) -> Any:
    return (batch["x"] @ params["w"]) ** params["power"]


def test_losses_and_gradient_are_numpys() -> None:
    taken = split(squares, PARAMS)
    data = {"x": jnp.asarray(X)}
    values = X.astype(float) @ PARAMS["w"]
    found = all_losses(taken.form, taken.fixed, taken.vector, data)
    np.testing.assert_allclose(found, values**2, rtol=1e-5)
    mean, slope = gradient(taken.form, taken.fixed, taken.vector, data)
    assert float(mean) == pytest.approx(np.mean(values**2), rel=1e-5)
    np.testing.assert_allclose(slope, 2 * values @ X / 7, rtol=1e-5)


@pytest.mark.parametrize("n", [1, 4, 5, 6, 10, 11])
def test_in_chunks_of_five_it_is_the_whole(n: int) -> None:
    """Whatever is left over: no chunk, a chunk less one, one, one and one more, two, two and one more."""
    rng = np.random.default_rng(n)
    data = (jnp.asarray(rng.standard_normal((n, 3)), jnp.float32), jnp.arange(n))

    def apply(batch: Any) -> Any:
        return {"sum": batch[0].sum(axis=1), "number": batch[1] * 2}

    found = in_chunks(apply, data, 5)
    np.testing.assert_allclose(found["sum"], data[0].sum(axis=1), rtol=1e-6)
    np.testing.assert_array_equal(found["number"], 2 * np.arange(n))
    mean = mean_over_chunks(lambda batch: {"mean": batch[0].mean(axis=0)}, data, 5)["mean"]
    np.testing.assert_allclose(mean, np.mean(data[0], axis=0), rtol=1e-5, atol=1e-6)


def test_the_first_of_a_batch() -> None:
    data = {"x": np.arange(5), "y": np.ones((5, 2))}
    assert [values.shape for values in jax.tree.leaves(first(data, 3))] == [(3,), (3, 2)]
    assert first(data, 9)["x"].shape == (5,)


# --- errors ---


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({}, "mine has no array"),
        (None, "mine has no array"),
        (np.float32(1.0), "mine has a scalar; every array needs a leading axis of samples"),
        ({"x": np.ones(3), "y": 2.0}, "mine has a scalar; every array needs a leading axis of samples"),
        ((np.ones(3), np.ones((4, 2)), np.ones(3)), "mine has arrays of 3, 4 samples; all must have the same number"),
        (np.ones((0, 2)), "mine has no samples"),
    ],
)
def test_data_that_cannot_be(data: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        size_of(data, "mine")


@pytest.mark.parametrize(
    ("loss", "said"),
    [
        (lambda params, x: jnp.mean(x @ params["w"]), r"the loss gives a scalar for 7 samples; .* and not their mean"),
        (
            lambda params, x: x * params["w"][None],
            r"the loss gives an array of shape \(7, 2\) for 7 samples; it must give one",
        ),
        (lambda params, x: (x @ params["w"])[:3], r"array of shape \(3,\) for 7 samples; .* shape \(7,\)"),
        (lambda params, x: jnp.arange(7), "the losses are of type int.*; they must be floating-point"),
        (lambda params, x: x @ params["w"] > 0, "the losses are of type bool"),
    ],
)
def test_losses_that_are_no_number_for_each_sample(loss: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        check(split(loss, PARAMS), X)


def test_data_of_integers_are_data() -> None:
    """Tokens, for instance: the count is told, and nothing is computed."""
    table = {"w": np.zeros((5, 2), np.float32)}
    assert check(split(lambda params, tokens: params["w"][tokens].sum(axis=(1, 2)), table), np.zeros((4, 3), int)) == 4


def test_losses_that_are_not_finite_say_which_is_first_and_how_many() -> None:
    assert finite_losses(np.ones(3)).tolist() == [1, 1, 1]
    said = "the loss of sample 1 is nan at w\\*; of 4 samples 2 have no finite loss there"
    with pytest.raises(ConfigError, match=said):
        finite_losses(np.array([1.0, np.nan, 2.0, -np.inf]))
