"""Decoders of symbols: what they see, what their positions do, and an induction head with weights set by hand."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from icl_lab.src import language_model
from icl_lab.src.batch import TokenBatch
from icl_lab.src.decoder_config import DecoderConfig
from icl_lab.src.model import Model
from icl_lab.src.prng import key
from tests.src.induction_head import decoder_config, induction

K, ROWS = 3, 10
PLAIN = DecoderConfig(block="plain", num_layers=2, num_heads=1, d_model=12, mlp_width=0, positions="relative")
MODELS = {
    "attention alone, by distance": PLAIN,
    "positions of queries and keys": replace(PLAIN, positions="query_key", num_heads=2),
    "an MLP and norms": replace(PLAIN, block="gpt2", mlp_width=16, layer_norm=True, positions="learned"),
    "norms after sums": replace(PLAIN, layer_norm=True, norm="post", positions="rotary", num_heads=3),
}


def made(model: DecoderConfig, start: bool = False) -> Model:
    return language_model.make_model(model, K, ROWS + int(start), 0.3, start)


def batch_of(seed: int, start: bool = False, count: int = 4) -> TokenBatch:
    x = np.random.default_rng(seed).integers(K, size=(count, ROWS + 1))
    read = np.concatenate([np.full((count, 1), K), x[:, :-1]], axis=1) if start else x[:, :-1]
    return TokenBatch(jnp.asarray(read, jnp.int32), jnp.asarray(x[:, 1:], jnp.int32))


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("start", [False, True])
def test_a_prediction_depends_on_what_is_before_it_alone(model: DecoderConfig, start: bool) -> None:
    decoder, batch = made(model, start), batch_of(0, start)
    params = decoder.init(key(1))
    logits = decoder.predict(params, batch)
    assert logits.shape == (4, ROWS, K)
    place = 6
    changed = batch.x.at[:, place + int(start)].set((batch.x[:, place + int(start)] + 1) % K)
    other = decoder.predict(params, batch._replace(x=changed))
    np.testing.assert_array_equal(logits[:, :place], other[:, :place])
    assert (jnp.abs(logits - other)[:, place] > 0).any()


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_its_loss_is_the_cross_entropy_of_the_next_symbol(model: DecoderConfig) -> None:
    decoder, batch = made(model), batch_of(2)
    params = decoder.init(key(3))
    said = np.asarray(jax.nn.log_softmax(decoder.predict(params, batch)), np.float64)
    wanted = -np.take_along_axis(said, np.asarray(batch.y_query)[..., None], axis=-1)[..., 0]
    np.testing.assert_allclose(decoder.losses(params, batch), wanted.mean(axis=1), rtol=1e-5)
    np.testing.assert_allclose(decoder.loss(params, batch), wanted.mean(), rtol=1e-5)
    assert decoder.null_losses is not None
    np.testing.assert_allclose(decoder.null_losses(batch), np.log(K), rtol=1e-6)


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_a_hook_that_changes_nothing_changes_nothing(model: DecoderConfig) -> None:
    decoder, batch = made(model), batch_of(4)
    params = decoder.init(key(5))
    names: list[str] = []

    def look(name: str, layer: int | None, value: Any) -> Any:
        names.append(name)
        return value

    watched = decoder.watch(params, batch, look)
    np.testing.assert_allclose(watched, decoder.predict(params, batch), rtol=1e-5, atol=1e-6)
    assert names.count("attn.pattern") == model.num_layers
    assert ("mlp.post" in names) == (model.mlp_width > 0)
    assert ("pos_embed" in names) == (model.positions in ("learned", "query_key"))


def test_positions_of_queries_and_keys_are_in_no_value() -> None:
    """Without them one layer sees a bag of symbols; with them a value is still what its symbol gives."""
    model = replace(MODELS["positions of queries and keys"], num_layers=1)
    decoder, batch = made(model), batch_of(6)
    params = decoder.init(key(7))
    kept: dict[str, Any] = {}

    def without(name: str, layer: int | None, value: Any) -> Any:
        kept.setdefault(f"{name}{layer}", value)
        return jnp.zeros_like(value) if name == "pos_embed" else value

    ablated = decoder.watch(params, batch, without)
    assert (jnp.abs(ablated - decoder.predict(params, batch)) > 1e-3).any()
    np.testing.assert_array_equal(kept["embedNone"], kept["resid_pre0"])
    order = np.random.default_rng(8).permutation(ROWS - 1)
    shuffled = batch._replace(x=batch.x.at[:, :-1].set(batch.x[:, order]))
    again = decoder.watch(params, shuffled, without)
    np.testing.assert_allclose(again[:, -1], ablated[:, -1], rtol=1e-4, atol=1e-5)


def test_an_induction_head_by_hand_counts_what_followed() -> None:
    """Its logits are shares of what followed a row's symbol; the first row, with none before it, counts itself."""
    decoder, batch = made(decoder_config(K)), batch_of(9, count=50)
    params = induction(30.0, K, ROWS)
    assert jax.tree.map(jnp.shape, decoder.init(key(0))) == jax.tree.map(jnp.shape, params)
    x = np.asarray(batch.x)
    wanted = np.zeros((*x.shape, K))
    for row, symbols in enumerate(x):
        for place, symbol in enumerate(symbols):
            before = np.concatenate([symbols[:1], symbols[:place]])  # of rows 0 to place
            matched = before == symbol
            followed = symbols[: place + 1][matched] if matched.any() else symbols[: place + 1]
            wanted[row, place] = np.bincount(followed, minlength=K) / len(followed)
    # exp(-30) of attention goes elsewhere
    np.testing.assert_allclose(decoder.predict(params, batch), wanted, atol=1e-5)
