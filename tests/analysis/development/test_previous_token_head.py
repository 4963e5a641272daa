"""Ablations of heads and positions of a decoder of symbols, and the same decoder of fewer rows."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from icl_lab.analysis.development import previous_token_head, token_metrics
from icl_lab.src import language_model
from icl_lab.src.batch import TokenBatch
from icl_lab.src.decoder_config import DecoderConfig
from icl_lab.src.prng import key
from tests.src.induction_head import decoder_config, induction

K, ROWS = 12, 24
PLAIN = DecoderConfig(block="plain", num_layers=2, num_heads=2, d_model=8, mlp_width=0, positions="relative")


def batch_of(x: np.ndarray) -> TokenBatch:
    return TokenBatch(jnp.asarray(x[:, :-1], jnp.int32), jnp.asarray(x[:, 1:], jnp.int32))


def with_idle_head(params: dict[str, dict[str, np.ndarray]]) -> dict[str, dict[str, np.ndarray]]:
    """The same in a decoder of twice the width, where heads with number 1 attend alike everywhere and add nothing."""
    width = params["layer_0/attention/output"]["w"].shape[0]
    wider: dict[str, dict[str, np.ndarray]] = {}
    for module, arrays in params.items():
        for name, value in arrays.items():
            if name == "distances":
                value = np.concatenate([value, np.zeros_like(value)])
            elif module.endswith("query_key_value"):
                parts = np.split(value, 3, axis=1)
                value = np.concatenate([np.pad(part, ((0, width), (0, width))) for part in parts], axis=1)
            elif module.endswith("output"):
                value = np.pad(value, ((0, width), (0, width)))
            else:  # tables of symbols
                value = np.pad(value, ((0, 0), (0, width)) if module == "embed" else ((0, width), (0, 0)))
            wider.setdefault(module, {})[name] = value.astype(np.float32)
    return wider


def test_without_its_previous_token_head_an_induction_head_copies_no_more() -> None:
    config = replace(decoder_config(K), d_model=6 * K, num_heads=2)
    model = language_model.make_model(config, K, ROWS, 0.3, False)
    params = with_idle_head(induction(40.0, K, ROWS))
    assert jax.tree.map(jnp.shape, model.init(key(0))) == jax.tree.map(jnp.shape, params)
    x, half = token_metrics.distinct_repeats(0, 40, K, ROWS + 1)
    batch = batch_of(x)
    log_p = np.asarray(jax.nn.log_softmax(model.predict(params, batch)), float)
    weights = np.tile(token_metrics.copy_weights(half, ROWS) / len(x), (len(x), 1))
    whole = previous_token_head.weighted_loss(model, params, batch, weights)
    assert whole == pytest.approx(token_metrics.copy_scores(log_p, x, half)["copy_loss"], rel=1e-4)
    assert whole < -0.5  # logits of a linear read-out are 0 to 1
    found = previous_token_head.ablation(model, params, 0, np.array([0.99, 0.05]), batch, weights)
    assert found.chosen == 0
    assert found.changes[0] == pytest.approx(-whole, abs=0.15)  # what copying gained is gone
    assert found.others == pytest.approx(0, abs=1e-6)


def test_one_head_has_no_others() -> None:
    assert previous_token_head.Ablation(0, np.array([0.3])).others is None
    assert previous_token_head.Ablation(1, np.array([0.3, 2.0, 0.5])).others == pytest.approx(0.4)


MODELS = {
    "relative": PLAIN,
    "query_key": replace(PLAIN, positions="query_key"),
    "learned, with an MLP and norms": replace(PLAIN, positions="learned", mlp_width=16, layer_norm=True),
    "rotary": replace(PLAIN, positions="rotary"),
}


@pytest.mark.parametrize("config", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("start", [False, True])
def test_a_shortened_decoder_predicts_the_same(config: DecoderConfig, start: bool) -> None:
    rows, few = 10 + int(start), 3 + int(start)
    long, short = (language_model.make_model(config, K, count, 0.3, start) for count in (rows, few))
    params = random_positions(long.init(key(2)))
    read = np.random.default_rng(0).integers(K, size=(4, rows))
    batch = TokenBatch(jnp.asarray(read, jnp.int32), jnp.zeros((4, 10), jnp.int32))
    first = TokenBatch(batch.x[:, :few], batch.y_query[:, :3])
    found = short.predict(previous_token_head.shortened(params, few), first)
    np.testing.assert_allclose(found, long.predict(params, batch)[:, :3], rtol=1e-4, atol=1e-5)


def random_positions(params: Any) -> dict[str, dict[str, np.ndarray]]:
    """Parameters with other numbers by distance than 0."""
    rng = np.random.default_rng(1)
    return {
        module: {n: rng.normal(size=v.shape).astype(np.float32) if n == "distances" else v for n, v in arrays.items()}
        for module, arrays in params.items()
    }


def test_a_decoder_without_positions_sees_a_bag_of_symbols() -> None:
    for name in ("relative", "query_key"):
        config = replace(MODELS[name], num_layers=1)
        model = language_model.make_model(config, K, 10, 0.3, False)
        params = random_positions(model.init(key(3)))
        without = previous_token_head.without_positions(params)
        x = np.random.default_rng(2).integers(K, size=(4, 11))
        order = [*np.random.default_rng(3).permutation(9), 9, 10]
        one, other = (model.predict(without, batch_of(own))[:, -1] for own in (x, x[:, order]))
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
        assert np.abs(np.asarray(model.predict(params, batch_of(x))[:, -1] - one)).max() > 1e-3


def test_positions_by_distance_begin_at_zero() -> None:
    for name, changed in (("relative", False), ("query_key", True)):
        params = language_model.make_model(MODELS[name], K, 10, 0.3, False).init(key(4))
        without = previous_token_head.without_positions(params)
        same = jax.tree.map(lambda one, other: bool((one == other).all()), params, without)
        assert all(jax.tree.leaves(same)) != changed
    assert previous_token_head.has_positions(params)
    rotary = language_model.make_model(MODELS["rotary"], K, 10, 0.3, False).init(key(4))
    assert not previous_token_head.has_positions(rotary)
