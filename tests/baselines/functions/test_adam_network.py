"""Networks trained on the context: one of them by hand, what they know, and that they fit."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from icl_lab.baselines.functions import adam_network as module
from icl_lab.baselines.functions.adam_network import Network, adam_network
from icl_lab.baselines.functions.linear import averaging
from icl_lab.src.checks import ConfigError


@pytest.fixture(autouse=True)
def few_at_once(monkeypatch):
    """Four networks at a time: programs of tests are small."""
    monkeypatch.setattr(module, "AT_ONCE", 4)


def prompts(seed=0, size=4, pairs=20, dim=2):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(size, pairs, dim))
    return x, np.abs(x[..., 0]) - x[..., 1]


def test_the_gradient_of_all_is_each_networks_own():
    """One network in plain JAX, with a loss written out, against its part of the batched gradient."""
    rng = np.random.default_rng(1)
    networks = Network(
        *(jnp.asarray(rng.normal(size=shape), jnp.float32) for shape in ((3, 2, 5), (3, 5), (3, 5), (3,)))
    )
    x, y = jnp.asarray(rng.normal(size=(3, 7, 2)), jnp.float32), jnp.asarray(rng.normal(size=(3, 7)), jnp.float32)

    def alone(u, b, a, c):
        return jnp.mean((jnp.maximum(x[1] @ u + b[None], 0) @ a + c - y[1]) ** 2)

    whole = jax.jit(jax.grad(module._loss))(networks, x, y)
    for mine, own in zip(whole, jax.jit(jax.grad(alone, (0, 1, 2, 3)))(*(part[1] for part in networks)), strict=True):
        np.testing.assert_allclose(mine[1], own, rtol=1e-4, atol=1e-5)


def test_it_fits_and_generalises():
    x, y = prompts()
    x[:, 19] = x[:, 5]
    y[:, 19] = y[:, 5]
    found = adam_network(x, y, (0, 18, 19), hidden=32, steps=400)
    np.testing.assert_array_equal(found[:, 0], 0)
    np.testing.assert_allclose(found[:, 2], y[:, 5], atol=0.2)
    assert np.mean((found[:, 1] - y[:, 18]) ** 2) < 0.3 * np.mean((averaging(x, y, (18,))[:, 0] - y[:, 18]) ** 2)


def test_it_knows_the_pairs_before_it_alone():
    """Labels and inputs from position 5 on are others; a seed gives the same networks again."""
    x, y = prompts()
    found = adam_network(x, y, (3, 5), hidden=32, steps=400)
    changed, others = y.copy(), x.copy()
    changed[:, 5:], others[:, 6:] = 9, 9
    np.testing.assert_array_equal(adam_network(others, changed, (3, 5), hidden=32, steps=400), found)
    assert np.all(adam_network(x, y, (3, 5), hidden=32, steps=400, seed=1) != found)


def test_bad_settings_are_refused():
    with pytest.raises(ConfigError, match="rate"):
        adam_network(*prompts(), rate=0.0)
