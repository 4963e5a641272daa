"""Languages: the layer that is a step of gradient descent on codes, what contexts are drawn from, frozen codes."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from icl_lab.baselines import least_squares
from icl_lab.baselines.construction import gd_params
from icl_lab.baselines.gradient_descent import gd
from icl_lab.families.autoencoder import task as autoencoder
from icl_lab.families.autoencoder.config import autoencoder_of
from icl_lab.families.languages.automata import accepts
from icl_lab.families.languages.baselines import fitted_baselines
from icl_lab.families.languages.codes import coded_pools
from icl_lab.families.languages.config import LanguagesConfig
from icl_lab.families.languages.contexts import coded, draw
from icl_lab.families.languages.data import CodeConfig
from icl_lab.families.languages.pools import pools_of
from icl_lab.families.languages.task import (
    accuracy,
    batches,
    codes_of,
    eval_metrics,
    frozen,
    make_eval_set,
    make_model,
    make_test_sets,
)
from icl_lab.families.task import shared_of
from icl_lab.lab.configs.identity import config_id, with_dependencies
from icl_lab.lab.configs.presets import preset, resolve, set_values
from icl_lab.src.batch import Batch
from icl_lab.src.model import Model
from icl_lab.src.prng import key

SMALL = {"pool_size": 256, "max_length": 10, "eval_tasks": 256, "test_tasks": 512, "code.dim": 8}


def config_of(**values: Any) -> LanguagesConfig:
    wanted = preset("languages")
    set_values(wanted, SMALL | values)
    config: LanguagesConfig = resolve(wanted)
    return config


def shared_arrays(config: LanguagesConfig) -> dict[str, np.ndarray]:
    pool = pools_of(config.data).train
    return {"positives": pool.positives, "negatives": pool.negatives, "codes": codes_of(config, {}).train}


def tasks(config: LanguagesConfig, size: int = 64) -> Batch:
    test = replace(config, test_tasks=size)
    return jax.tree.map(
        lambda part: jnp.asarray(part, jnp.float64), make_test_sets(test, codes_of(config, {})).strings.batch
    )


def test_a_run_is_the_same_on_a_processor_that_rounds_its_codes_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Codes are eigenvectors times features; a run is known by the strings that they are of, and by its draws."""
    config = config_of()
    made = coded_pools(config.data, config.code)
    rounded = made._replace(train=np.nextafter(made.train, np.float32(np.inf)))
    monkeypatch.setattr("icl_lab.families.languages.codes.coded_pools", lambda data, code: rounded)
    assert config_id(with_dependencies(config)) == config_id(config)
    np.testing.assert_array_equal(shared_of(config)["codes"], rounded.train)
    longer = config_of(max_length=11)
    assert not {*longer.shared} & {*config.shared}


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("steps", [1, 2, 3])
def test_constructed_layers_are_steps_of_gradient_descent_on_codes(steps: int) -> None:
    config = config_of(num_layers=steps)
    batch = tasks(config)
    params = gd_params(config.architecture, 0.03)
    found = make_model(config).predict(params, batch)
    np.testing.assert_allclose(found, gd(batch, 0.03, steps), rtol=0, atol=1e-10)


@pytest.mark.usefixtures("x64")
def test_a_query_among_the_keys_has_no_label_and_changes_no_constructed_step() -> None:
    config = config_of(query_in_keys=True)
    batch = tasks(config)
    found = make_model(config).predict(gd_params(config.architecture, 0.03), batch)
    np.testing.assert_allclose(found, gd(batch, 0.03), rtol=0, atol=1e-10)


@pytest.mark.usefixtures("x64")
def test_a_query_among_the_keys_is_looked_at_by_other_weights() -> None:
    config, beside = config_of(query_in_keys=True), config_of()
    batch = tasks(config)
    params = jax.tree.map(lambda leaf: leaf.astype(jnp.float64), make_model(config).init(key(0)))
    apart = make_model(config).predict(params, batch) - make_model(beside).predict(params, batch)
    value = params["layer_0/attention"]
    # by hand: the query's own term of the attention sum, in float64
    score_matrix = jnp.einsum("whk,uhk->wu", value["query"], value["key"])
    value_matrix = jnp.einsum("whk,hku->wu", value["value"], value["projection"])
    row = jnp.pad(batch.x_query, ((0, 0), (0, 1)))
    own = jnp.einsum("bw,wu,bu->b", row, score_matrix, row) * (row @ value_matrix)[:, -1]
    np.testing.assert_allclose(apart, -own, rtol=0, atol=1e-12)


@pytest.mark.usefixtures("x64")
def test_a_layer_of_any_weights_on_labels_is_what_the_optimum_is_sought_among() -> None:
    """Weights that read labels alone give s^T A x_q + N b^T x_q, labels being 1 and -1."""
    config = config_of()
    dim, rng = config.architecture.dim, np.random.default_rng(0)
    layer, bias = rng.normal(size=(dim, dim)), rng.normal(size=dim)
    on_label = np.diag(np.arange(dim + 1) == dim).astype(float)
    keys = np.zeros((dim + 1, dim + 1))
    keys[:dim, :dim], keys[dim, :dim] = layer, bias  # a row of keys for each channel of a context row
    params = {
        "layer_0/attention": {
            "query": np.eye(dim + 1)[:, None],
            "key": keys[:, None],
            "value": on_label[:, None],
            "projection": -on_label[None],
        }
    }
    batch = tasks(config)
    found = make_model(config).predict(params, batch)
    theta = np.concatenate([layer.ravel(), config.data.num_pairs * bias])
    expected = np.asarray(least_squares.biased_layer_features(batch)) @ theta
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
def test_learned_features_are_an_mlp_below_the_layer() -> None:
    config = config_of(**{"code.kind": "learned", "features_width": 12})
    assert config.model.features == config.code.dim == 8
    batch = tasks(config, 16)
    params = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float64) + 0.05, make_model(config).init(key(1)))
    outer, inner = params["features_out"], params["features_in"]

    def features(x: jax.Array) -> jax.Array:
        flat = x.reshape(-1, x.shape[-1])
        hidden = jax.nn.gelu(flat @ inner["w"] + inner["b"][None])
        return (hidden @ outer["w"] + outer["b"][None]).reshape(*x.shape[:-1], -1)

    seen = batch._replace(x=features(batch.x), x_query=features(batch.x_query))
    plain = config_of()
    rest = {name: part for name, part in params.items() if "features" not in name}
    expected = make_model(plain).predict(rest, seen)
    np.testing.assert_allclose(make_model(config).predict(params, batch), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("share", [0.5, 0.8])
def test_batches_are_of_the_pool_labelled_as_their_language_says(share: float) -> None:
    config = config_of(positive_share=share)
    pools = pools_of(config.data)
    pool = pools.train
    drawn = draw(key(3), jnp.asarray(pool.positives), jnp.asarray(pool.negatives), 2048, 10, share)
    language, strings, labels = (np.asarray(part) for part in drawn)
    for number, own in enumerate(pools.languages):
        asked = strings[language == number]
        belongs = accepts(own.automaton, pool.strings[asked.ravel()]).reshape(asked.shape)
        np.testing.assert_array_equal(np.where(belongs, 1, -1), labels[language == number])
    # three standard errors of a share of 22 528 labels, and of 2048 languages
    assert abs(np.mean(labels > 0) - share) < 3 * np.sqrt(share * (1 - share) / labels.size)
    assert np.all(np.abs(np.bincount(language) / 2048 - 1 / 3) < 3 * np.sqrt(2 / 9 / 2048))
    batch = coded(drawn, jnp.asarray(codes_of(config, {}).train))
    np.testing.assert_array_equal(np.asarray(batch.x)[:, 3], codes_of(config, {}).train[strings[:, 3]])
    np.testing.assert_array_equal(np.asarray(batch.w)[:, 0], language)


def test_a_batch_is_a_function_of_key_and_step() -> None:
    config = config_of()
    shared, batch_fn = shared_arrays(config), batches(config_of(batch_size=32))
    one, again, other = (batch_fn(key(0), jnp.int32(step), {}, shared) for step in (5, 5, 6))
    np.testing.assert_array_equal(one.x, again.x)
    assert not np.array_equal(one.x, other.x)
    assert np.asarray(config.data.num_pairs) == one.y.shape[1]


def test_tests_are_on_strings_that_training_never_sees() -> None:
    config = config_of()
    pools, sets = pools_of(config.data), make_test_sets(config, codes_of(config, {}))
    trained = {row.tobytes() for row in pools.train.strings}
    tested = {row.tobytes() for row in pools.test.strings[np.asarray(sets.strings.drawn.strings).ravel()]}
    assert tested
    assert not tested & trained
    assert sets.unseen is not None
    assert not {row.tobytes() for row in pools.unseen.strings} & trained


def constructed(config: LanguagesConfig, predict: Any) -> Model:
    return make_model(config)._replace(predict=lambda params, batch: predict(batch))


@pytest.mark.slow
def test_records_put_gradient_descent_at_0_of_the_way_and_the_optimum_at_1() -> None:
    config = config_of()
    eval_set = make_eval_set(config, {})
    baselines = fitted_baselines(config, codes_of(config, {}).train)
    for name, way in (("gd", 0.0), ("optimum", 1.0)):
        values = eval_metrics(constructed(config, baselines.predictors[name]), {}, eval_set)
        assert values["eval_way_to_optimum"] == pytest.approx(way, abs=1e-5)  # float32 predictions
        assert values[f"eval_{name}_preds_mse"] == pytest.approx(0, abs=1e-10)
        assert values[f"eval_{name}_cosine"] == pytest.approx(1, abs=1e-5)
        for other, predictions in eval_set.predictions.items():
            expected = np.mean((eval_set.predictions[name].astype(float) - predictions) ** 2)
            assert values[f"eval_{other}_preds_mse"] == pytest.approx(expected, abs=1e-6), other
    assert values["eval_loss"] < values["eval_gd_loss"]
    assert eval_set.predictions.keys() == baselines.predictors.keys()


def test_an_accuracy_counts_a_prediction_of_zero_as_half() -> None:
    assert accuracy(np.array([0.3, -2.0, 0.0, 0.1]), np.array([1, -1, 1, -1])) == 0.625


def test_frozen_codes_are_the_autoencoders_scaled_on_the_training_pool() -> None:
    config = config_of(**{"code.kind": "autoencoder", "code.dim": 4, "autoencoder_dim": 6})
    own = autoencoder_of(config.data, 6, "one_hot")
    params = autoencoder.make_model(own).init(key(2))
    found = frozen(config, [params])
    pool = pools_of(config.data)
    raw = autoencoder.codes_of(own, params, pool.train.strings).astype(np.float64)
    draws = np.concatenate([pool.train.positives.ravel(), pool.train.negatives.ravel()])
    centred = raw - raw[draws].mean(axis=0)
    codes = found["codes"].astype(np.float64)[draws]
    np.testing.assert_allclose(codes.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(codes.T @ codes / len(codes), np.eye(4), atol=1e-4)  # float32 codes
    # they are a linear map of the autoencoder's, the same for tests
    weights, *_ = np.linalg.lstsq(centred[draws], codes, rcond=None)
    tested = autoencoder.codes_of(own, params, pool.test.strings) - raw[draws].mean(axis=0)
    np.testing.assert_allclose(tested @ weights, found["test_codes"], atol=1e-3)


def test_the_required_autoencoder_keeps_an_alphabet_that_unseen_languages_extend() -> None:
    config = config_of(languages=("a*ba*", "(a|b)*ba"), unseen_languages=("c*ba*",))
    own = autoencoder_of(config.data, 16, "one_hot")
    assert own.data.alphabet == "abc"
    assert own.data.unseen_languages == ()
    same = config_of()
    assert autoencoder_of(same.data, 16, "one_hot").data.alphabet == ""


def test_a_code_needs_no_more_channels_than_its_autoencoder_has() -> None:
    with pytest.raises(Exception, match="code_dim is 16; the codes of the autoencoder have 8 channels"):
        CodeConfig(kind="autoencoder", dim=16, autoencoder_dim=8)
