from functools import partial

import haiku as hk
import jax
import numpy as np
import pytest

from icl_lab.src import prng
from icl_lab.src.attn import Attention, merged_of
from tests import reference

ROWS, PAIRS, WIDTH = 5, 4, 6


def make_attention(kind, num_heads, key_size, bias, scale=1.0, merged=False):
    """Attention as pure functions; the second gives (update, what the hook saw)."""
    init = hk.initializers.VarianceScaling(scale, "fan_in", "truncated_normal")

    def forward(rows, context):
        seen = []
        layer = Attention(kind, num_heads, key_size, bias, init, "attention", merged)
        update = layer(rows, context, 3, lambda name, number, value: seen.append((name, number, value)) or value)
        return update, seen

    return hk.without_apply_rng(hk.transform(forward))


def random_tokens(seed):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(2, ROWS, WIDTH)), rng.normal(size=(2, PAIRS, WIDTH))


def random_parameters(seed, num_heads, key_size, bias):
    rng = np.random.default_rng(seed)
    into = (WIDTH, num_heads, key_size)
    shapes = {"query": into, "key": into, "value": into, "projection": (num_heads, key_size, WIDTH)}
    if bias:
        shapes |= {f"{name}_bias": (1, num_heads, key_size) for name in ("query", "key", "value")}
        shapes["projection_bias"] = (WIDTH,)
    return {name: rng.normal(size=shape) for name, shape in shapes.items()}


@pytest.mark.parametrize("kind", ["linear", "softmax"])
@pytest.mark.parametrize(("num_heads", "key_size"), [(1, 6), (3, 2)])
@pytest.mark.parametrize("bias", [False, True])
def test_equals_explicit_queries_keys_values_and_projections(kind, num_heads, key_size, bias, x64):
    rows, context = random_tokens(0)
    parameters = random_parameters(1, num_heads, key_size, bias)
    layer = make_attention(kind, num_heads, key_size, bias)
    update, seen = layer.apply({"attention": parameters}, rows, context)
    expected, maps = reference.attention(parameters, kind, rows, context)
    np.testing.assert_allclose(update, expected, rtol=1e-10, atol=1e-10)
    assert [each[:2] for each in seen] == [("attn.scores", 3), ("attn.pattern", 3), ("attn.result", 3)]
    (_, _, scores), (_, _, weights), (_, _, results) = seen
    np.testing.assert_allclose(weights, maps, rtol=1e-10, atol=1e-10)
    if kind == "linear":
        np.testing.assert_array_equal(scores, weights)
    offset = parameters.get("projection_bias", 0.0)
    np.testing.assert_allclose(np.asarray(results).sum(axis=1) + offset, expected, rtol=1e-10, atol=1e-10)


def test_heads_add_up(x64):
    """Three heads are the sum of three layers of one head."""
    rows, context = random_tokens(2)
    parameters = random_parameters(3, 3, 2, bias=False)
    together, _ = make_attention("softmax", 3, 2, bias=False).apply({"attention": parameters}, rows, context)
    one = make_attention("softmax", 1, 2, bias=False)
    heads = [
        {
            name: value[head : head + 1] if name == "projection" else value[:, head : head + 1]
            for name, value in parameters.items()
        }
        for head in range(3)
    ]
    alone = [one.apply({"attention": head}, rows, context)[0] for head in heads]
    np.testing.assert_allclose(together, sum(alone), rtol=1e-10, atol=1e-10)


def test_equal_keys_make_softmax_the_mean_of_the_values(x64):
    """With W_Q = 0 every context row gets 1/N."""
    rows, context = random_tokens(4)
    parameters = random_parameters(5, 1, 6, bias=False) | {"query": np.zeros((WIDTH, 1, 6))}
    update, _ = make_attention("softmax", 1, 6, bias=False).apply({"attention": parameters}, rows, context)
    mean = context.mean(axis=1) @ parameters["value"][:, 0] @ parameters["projection"][0]
    np.testing.assert_allclose(update, np.repeat(mean[:, None], ROWS, axis=1), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("kind", ["linear", "softmax"])
@pytest.mark.parametrize("num_heads", [1, 3])
def test_merged_matrices_compute_what_their_factors_do(kind, num_heads, x64):
    """And the gradients of factors follow from theirs by the chain rule: G_query = G_kq^T W_K and so on, by head."""
    rows, context = random_tokens(6)
    factors = random_parameters(7, num_heads, WIDTH, bias=False)
    products = merged_of(factors)
    layers = {merged: make_attention(kind, num_heads, WIDTH, False, merged=merged) for merged in (False, True)}
    aim = np.random.default_rng(8).normal(size=rows.shape)

    def loss(parameters, merged):
        update, seen = layers[merged].apply({"attention": parameters}, rows, context)
        return ((update - aim) ** 2).sum(), (update, seen[0][2])

    of_factors, expected = jax.grad(loss, has_aux=True)(factors, False)
    of_products, found = jax.grad(loss, has_aux=True)(products, True)
    jax.tree.map(lambda one, other: np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-10), found, expected)
    for head in range(num_heads):
        kq, pv = (np.asarray(of_products[name][head]) for name in ("key_query", "projection_value"))
        query, key, value = (factors[name][:, head] for name in ("query", "key", "value"))
        close = partial(np.testing.assert_allclose, rtol=1e-10)
        close(of_factors["query"][:, head], kq.T @ key)
        close(of_factors["key"][:, head], kq @ query)
        close(of_factors["value"][:, head], pv.T @ factors["projection"][head].T)
        close(of_factors["projection"][head], (pv @ value).T)


def test_initial_merged_matrices_are_comparable_to_products_of_factors():
    """Variance scale / fan-in, W into and H W out of the heads; products of factors of scale s have that of s^2."""
    width, num_heads, scale = 40, 3, 0.3
    tokens = np.zeros((1, 2, width), np.float32)
    layers = {
        merged: make_attention("linear", num_heads, width, False, scale**2 if merged else scale, merged)
        for merged in (False, True)
    }
    found = {
        merged: merged_of(layer.init(prng.key(0), tokens, tokens)["attention"]) for merged, layer in layers.items()
    }
    for name, fan_in in (("key_query", width), ("projection_value", num_heads * width)):
        size = num_heads * width**2
        assert found[True][name].shape == (num_heads, width, width)
        assert found[True][name].var() == pytest.approx(scale**2 / fan_in, rel=4 * np.sqrt(2 / size))
        # entries of a product share factors: a fan-in of them is worth one independent value
        assert found[False][name].var() == pytest.approx(scale**2 / fan_in, rel=4 * np.sqrt(2 / (num_heads * width)))


def test_initial_weights():
    """A truncated normal of variance scale / fan-in, fan-in counted as one linear map over all heads; biases are 0."""
    width, num_heads, key_size, scale = 40, 4, 25, 0.3
    layer = make_attention("linear", num_heads, key_size, bias=True, scale=scale)
    tokens = np.zeros((1, 2, width), np.float32)
    parameters = layer.init(prng.key(0), tokens, tokens)["attention"]
    for name, fan_in in (("query", width), ("key", width), ("value", width), ("projection", num_heads * key_size)):
        values = np.asarray(parameters.pop(name), float).ravel()
        assert values.size == width * num_heads * key_size
        # The variance of a normal cut at two deviations has a relative standard error below sqrt(2 / n).
        assert values.var() == pytest.approx(scale / fan_in, rel=4 * np.sqrt(2 / values.size))
        assert np.abs(values).max() <= 2 * np.sqrt(scale / fan_in) / 0.8796 * 1.001  # .8796: deviation after the cut
    assert set(parameters) == {"query_bias", "key_bias", "value_bias", "projection_bias"}
    assert not any(jax.tree.leaves(jax.tree.map(np.any, parameters)))
