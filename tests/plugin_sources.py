"""Plugins for tests: one with a name of every kind that a config may hold, in NumPy's terms where that will do."""

EVERYTHING = """
import jax
import jax.numpy as jnp
from icl_lab.lab import plugins
from icl_lab.baselines.mask_bayes import condition
from icl_lab.src.sorting import stable_order
from icl_lab.src.checks import ConfigError
from icl_lab.src.prng import purpose_key


@plugins.ordering("last_first")
def last_first(batch, difficulty):
    assert difficulty == ()
    return stable_order([-jnp.broadcast_to(jnp.arange(batch.y.shape[1])[None], batch.y.shape)])


@plugins.ordering("hardest_first", by_difficulty=True)
def hardest_first(batch, difficulty):
    return stable_order([-values for values in difficulty])


OTHER = plugins.purpose("OTHER_SIGNS")


@plugins.noise_mode(
    "flips",
    ignores_sigma=True,
    linear_mmse=lambda batch, data, context: jnp.full_like(batch.y_query, 2.0),
    mask_bayes=lambda pair, context, out: condition(pair.table, pair.pivot, out=out) or 0 * pair.pivot,
)
def flips(key, batch, hit, sigma, data):
    jax.random.uniform(purpose_key(key, OTHER))
    y = jnp.where(hit, -batch.y, batch.y)
    return batch._replace(y=y), jnp.abs(y - batch.y)


@plugins.input_distribution("rademacher", variance=lambda width: width**2 / 4, fourth=lambda width: width**4 / 16)
def rademacher(key, input_range, shape):
    return input_range / 2 * jax.random.rademacher(key, shape, "float32")


@plugins.task_distribution("signs", variance=lambda scale, dim: scale**2, bayes=lambda batch, config: 0 * batch.y)
def signs(key, dim):
    return jax.random.rademacher(key, (dim,), "float32")


@plugins.attention("halved")
def halved(scores, key_size):
    return scores / 2


def over_visible(scores, key_size, visible, count):
    return jnp.where(visible, 1 + 0 * scores, 0) / count


@plugins.attention("even", causal=over_visible)
def even(scores, key_size):
    return jnp.ones_like(scores) / scores.shape[-1]


@plugins.baseline("nothing")
def nothing(batch, config):
    return jnp.zeros_like(batch.y_query)


@plugins.baseline("undefined")
def undefined(batch, config):
    raise ConfigError(f"it is not defined in {config.data.dim} dimensions")


@plugins.schedule("halving")
def halving(lr, config, step):
    return lr / 2**step
"""

# a name, and nothing that takes long to import
LIGHT = """
from icl_lab.lab import plugins


@plugins.ordering({name!r})
def order(batch, difficulty):
    return difficulty
"""
