"""The plain loop is the same model, the same law of the data, and the same optimiser."""

import jax
import numpy as np
import pytest

from icl_lab.benchmarks import plain_decoder, plain_text
from icl_lab.benchmarks.cases import config_of
from icl_lab.benchmarks.plain_loop import plain_loop, predict, sample
from icl_lab.families.diversity import task as diversity
from icl_lab.families.regression.config import RegressionConfig
from icl_lab.families.regression.task import make_model
from icl_lab.families.tokens import task as tokens
from icl_lab.lab.configs.presets import preset, resolve
from icl_lab.src.config import ModelConfig, TrainConfig
from icl_lab.src.data import sample_batch
from icl_lab.src.data_config import DataConfig
from icl_lab.src.prng import key

MODELS = {
    "lsa1": ModelConfig(init_scale=0.5),
    "recurrent": ModelConfig(num_layers=3, recurrent=True, init_scale=0.5, num_heads=2),
    "clipped": ModelConfig(num_layers=2, init_scale=4.0, activation_clip=0.5, damping=0.7),
    "twolayer": ModelConfig(("softmax", "linear"), 2, tokens="interleaved", pos_enc_size=4, init_scale=0.5),
    "published": resolve(preset("twolayer", "published")).model,
}


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_it_predicts_what_the_model_predicts(model):
    """Queries, keys, values and projections one by one against the products; float32, so 1e-5."""
    config = RegressionConfig(model=model)
    built = make_model(config)
    params, batch = built.init(key(0)), sample_batch(key(1), config.data, 30)
    expected = built.predict(params, batch)
    assert np.abs(expected).max() > 1e-3
    np.testing.assert_allclose(predict(params, batch, config), expected, atol=1e-5)


def test_its_data_follow_the_same_law():
    data = RegressionConfig().data
    batch = sample(jax.random.key(0), RegressionConfig(), 4000)
    assert np.asarray(batch.x).var() == pytest.approx(data.input_variance, rel=0.02)
    assert np.asarray(batch.w).var() == pytest.approx(1, rel=0.05)
    np.testing.assert_allclose(batch.y, np.einsum("bnd,bd->bn", batch.x, batch.w), atol=1e-5)


@pytest.mark.slow
def test_it_learns():
    """Predicting 0 costs D/24 = .125 at D = 3."""
    config = RegressionConfig(data=DataConfig(dim=3, num_pairs=6), training=TrainConfig(batch_size=128, lr=3e-3))
    train, loss = plain_loop(config)
    before = loss()
    assert train(500) > 0
    assert loss() < 0.7 * before == pytest.approx(0.0875, rel=0.05)


@pytest.mark.slow
def test_the_plain_decoder_predicts_what_the_decoder_predicts():
    """All rows, queries, keys and values apart, against the stack that skips what is not read; float32, so 1e-5."""
    config = resolve(preset("tiny"))
    built = diversity.make_model(config)
    rng = np.random.default_rng(0)
    params = jax.tree.map(lambda leaf: leaf + 0.1 * rng.standard_normal(leaf.shape), built.init(key(0)))
    batch = plain_decoder.sample(jax.random.key(1), config, 20)
    expected = built.predict(params, batch)
    assert np.abs(expected).max() > 0.1
    np.testing.assert_allclose(plain_decoder.predict(params, batch, config), expected, atol=1e-5)


def test_the_plain_decoder_of_text_predicts_what_the_decoder_predicts():
    """Symbols of the sample; float32, so 1e-5."""
    config = config_of("text", num_symbols=256, num_tokens=20, d_model=16)
    built = tokens.make_model(config)
    rng = np.random.default_rng(0)
    params = jax.tree.map(lambda leaf: leaf + 0.1 * rng.standard_normal(leaf.shape), built.init(key(0)))
    batch = plain_text.sample(jax.random.key(1), config, 6)
    assert batch.x.shape == (6, 19)
    assert (batch.x[:, 1:] == batch.y_query[:, :-1]).all()
    expected = built.predict(params, batch)
    assert np.abs(expected).max() > 0.1
    said = plain_text.predict(params, batch, config)
    np.testing.assert_allclose(said, expected, atol=1e-5)
    assert plain_text.loss(said, batch) == pytest.approx(float(built.loss(params, batch)), abs=1e-5)
