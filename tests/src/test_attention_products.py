"""The products are einsums, and so are their derivatives of any mode and order, for few rows and for many."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from icl_lab.src.attention_products import MOST_ROWS, pair_scores, weighted_sums

B, N, W = 2, 4, 5
PRODUCTS = {
    "pair_scores": (pair_scores, "brw,bnw->brn", (W, (N, W))),
    "weighted_sums": (weighted_sums, "brn,bnw->brw", (N, (N, W))),
}


def operands(name, rows):
    columns, other = PRODUCTS[name][2]
    rng = np.random.default_rng(0)
    return rng.normal(size=(B, rows, columns)), rng.normal(size=(B, *other))


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("rows", [1, 3, MOST_ROWS, MOST_ROWS + 1])
def test_values_and_gradients_are_those_of_the_einsum(name, rows, x64):
    product, spec, _ = PRODUCTS[name]
    a, b = operands(name, rows)
    expected, pull_back = jax.vjp(lambda a, b: jnp.einsum(spec, a, b), a, b)
    found, own_pull_back = jax.vjp(product, a, b)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    cotangent = np.random.default_rng(1).normal(size=expected.shape)
    for own, einsums in zip(own_pull_back(cotangent), pull_back(cotangent), strict=True):
        np.testing.assert_allclose(own, einsums, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("rows", [2, MOST_ROWS + 1])
def test_derivatives_of_any_mode_and_order_are_differences(name, rows, x64):
    """Forward, reverse and both on top of each other, against finite differences."""
    check_grads(PRODUCTS[name][0], operands(name, rows), order=2, modes=["fwd", "rev"], eps=1e-4)


def test_no_product_of_the_gradient_contracts_the_first_of_two_matrix_axes():
    """That dot is what the rules are there to avoid: with few rows none is left in the compiled gradient."""

    def total(weights, values):
        return jnp.sum(weighted_sums(weights, values) ** 2)

    def slow_dots(rows):
        text = str(jax.make_jaxpr(jax.grad(total, argnums=(0, 1)))(*operands("weighted_sums", rows)))
        return text.count("(([1], [1]), ([0], [0]))")

    assert (slow_dots(MOST_ROWS), slow_dots(MOST_ROWS + 1)) == (0, 1)
