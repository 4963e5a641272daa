"""The kernel called by XLA: the same losses and gradients as the models', alone, in packs, in the sampler."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from icl_lab.lab.native.build import native_kernel
from icl_lab.src import layerwise, prng, queries, transformer
from icl_lab.src.batch import Batch
from icl_lab.src.config import Architecture, EmbeddedModel, ModelConfig
from icl_lab.src.data import sample_batch
from icl_lab.src.data_config import DataConfig, QueriesData
from icl_lab.src.inputs import sample_inputs
from icl_lab.src.model import Model
from icl_lab.src.native.bits import native_keys
from icl_lab.src.native.library import Library, open_library
from icl_lab.src.native.stack import loss_and_gradient
from icl_lab.src.units import Units, in_units

pytestmark = pytest.mark.usefixtures("compiler")

CLOSE = 5e-6  # of the largest entry: two float32 results, each within 2e-6 of the exact one

MODELS = {
    "factored, two heads": ModelConfig(num_layers=2, num_heads=2, init_scale=1.0, key_size=8),
    "merged, interleaved, softmax below linear": ModelConfig(
        num_layers=2, attention=("softmax", "linear"), merged=True, tokens="interleaved", pos_enc_size=4, init_scale=1.0
    ),
    "recurrent, damped, clipped": ModelConfig(
        num_layers=3, recurrent=True, damping=0.5, activation_clip=3.0, init_scale=1.0, tokens="interleaved_shared"
    ),
}


@pytest.fixture(scope="module")
def library() -> Library:
    kernel = native_kernel()
    assert kernel.path is not None, kernel.why
    return open_library(kernel.path, kernel.tag)


def check(model: Model, computed: Any, batch: Batch) -> None:
    """Equal losses and gradients, to rounding."""
    params = model.init(prng.key(0))
    losses, mean, gradient = jax.jit(computed)(params, batch)
    np.testing.assert_allclose(mean, np.asarray(losses, np.float64).mean(), rtol=1e-7)  # float32 rounds by 6e-8
    wanted, slope = jax.jit(lambda p, b: (model.losses(p, b), jax.grad(model.loss)(p, b)))(params, batch)
    assert jax.tree.structure(gradient) == jax.tree.structure(slope)
    for ours, theirs in ((losses, wanted), (gradient, slope)):
        a, b = (np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(tree)]) for tree in (ours, theirs))
        assert np.abs(a - b).max() < CLOSE * np.abs(b).max()


@pytest.mark.parametrize("name", MODELS)
def test_it_computes_what_the_model_does(library: Library, name: str) -> None:
    architecture = Architecture(MODELS[name], 5, 6)
    batch = sample_batch(prng.key(1), DataConfig(dim=5, num_pairs=6), 131)
    check(transformer.make_model(architecture), loss_and_gradient(architecture, library), batch)


def test_it_takes_several_queries(library: Library) -> None:
    data = QueriesData(dim=4, num_pairs=6, num_queries=3)
    architecture = Architecture(EmbeddedModel(init_scale=1.0), 4, 6, 3)
    batch = queries.sample_batch(prng.key(1), data, 20)
    check(layerwise.make_model(architecture), loss_and_gradient(architecture, library), batch)


def test_it_sees_pairs_in_the_models_units(library: Library) -> None:
    units = Units((1.0, -2.0, 0.5), (2.0, 0.5, 1.0), 3.0, 0.7)
    architecture = Architecture(ModelConfig(num_layers=2, init_scale=1.0), 3, 6)
    batch = sample_batch(prng.key(1), DataConfig(dim=3, num_pairs=6), 20)
    model = in_units(transformer.make_model(architecture), units)
    check(model, loss_and_gradient(architecture, library, units), batch)


def test_in_a_pack_bits_are_those_of_runs_alone_whatever_they_share(library: Library) -> None:
    architecture = Architecture(ModelConfig(num_layers=2), 3, 4)
    model, computed = transformer.make_model(architecture), jax.jit(loss_and_gradient(architecture, library))
    params = jax.vmap(model.init)(jax.random.split(prng.key(0), 6).reshape(2, 3).ravel())
    batches = [sample_batch(prng.key(seed), DataConfig(dim=3, num_pairs=4), 150) for seed in (1, 2)]
    packed = jax.tree.map(lambda *parts: jnp.stack(parts), *batches)
    by_run = jax.tree.map(lambda leaf: leaf.reshape(2, 3, *leaf.shape[1:]), params)  # [batch, run, ...]
    nested = jax.jit(jax.vmap(jax.vmap(computed, in_axes=(0, None)), in_axes=(0, 0)))
    found = nested(by_run, packed)
    for batch in range(2):
        for run in range(3):
            mine = jax.tree.map(lambda leaf, at=(batch, run): leaf[at], by_run)
            alone = computed(mine, batches[batch])
            within = jax.tree.map(lambda leaf, at=(batch, run): leaf[at], found)
            assert all(map(np.array_equal, jax.tree.leaves(alone), jax.tree.leaves(within)))


def test_arrays_that_do_not_fit_together_are_an_error(library: Library) -> None:
    architecture = Architecture(ModelConfig(), 3, 4)
    params = transformer.make_model(architecture).init(prng.key(0))
    other = sample_batch(prng.key(1), DataConfig(dim=4, num_pairs=4), 5)
    with pytest.raises(jax.errors.JaxRuntimeError, match="the shapes of the arrays do not fit together"):
        jax.block_until_ready(loss_and_gradient(architecture, library)(params, other))


# --- random numbers ---


@pytest.mark.parametrize("shape", [(), (1,), (2,), (7, 3), (1 << 15, 3)], ids=str)
def test_random_numbers_are_the_same_to_the_bit(library: Library, shape: tuple[int, ...]) -> None:
    key = prng.key(3)
    native = native_keys(library)(jax.random.fold_in(key, 5))
    plain = jax.random.fold_in(key, 5)
    assert np.array_equal(jax.random.bits(plain, shape), jax.random.bits(native, shape))
    for low, high in ((-0.5, 0.5), (-0.3, 1.7), (1e-3, 7.3), (3.0, 7.0)):
        wanted = jax.jit(partial(jax.random.uniform, shape=shape, minval=low, maxval=high))(plain)
        assert np.array_equal(wanted, jax.jit(partial(prng.uniform, shape=shape, minval=low, maxval=high))(native))
    many = jax.vmap(lambda k: jax.random.normal(k, shape))
    assert np.array_equal(many(jax.random.split(plain, 3)), many(jax.random.split(native, 3)))


@pytest.mark.parametrize("distribution", ["uniform", "gaussian"])
def test_a_batch_has_the_same_bytes(library: Library, distribution: str) -> None:
    data, keys = DataConfig(input_distribution=distribution, noise_std=0.1), native_keys(library)
    plain = jax.jit(lambda key: sample_batch(key, data, 300))(prng.key(2))
    native = jax.jit(lambda key: sample_batch(keys(key), data, 300))(prng.key(2))
    assert all(map(np.array_equal, plain, native))
    inputs = sample_inputs(prng.key(1), data, (4, 3))
    assert np.array_equal(inputs, sample_inputs(keys(prng.key(1)), data, (4, 3)))
