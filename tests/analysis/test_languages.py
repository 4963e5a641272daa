from functools import partial
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array
from jax.tree_util import Partial

from icl_lab.analysis.algorithm_distance import Response
from icl_lab.analysis.languages import (
    context_free_square,
    has_products,
    layer_of,
    of_context,
    on_tasks,
    shuffled_labels,
    singular_values,
    spectra,
    weight_arrays,
)
from icl_lab.baselines.construction import gd_params
from icl_lab.families.languages.baselines import FittedBaselines
from icl_lab.families.languages.codes import coded_pools
from icl_lab.families.languages.config import LanguagesConfig
from icl_lab.families.languages.contexts import Drawn
from icl_lab.families.languages.outputs import summary_lines
from icl_lab.families.languages.pools import pools_of
from icl_lab.families.languages.task import TaskSet, make_model
from icl_lab.families.summary import shown
from icl_lab.lab.configs.presets import preset, resolve, set_values
from icl_lab.src.batch import Batch
from tests import reference

TASKS, PAIRS, DIM = 4096, 10, 4


@pytest.fixture(scope="module")
def batch() -> Batch:
    """Standard normal codes and random labels 1 and -1, which codes say nothing of."""
    rng = np.random.default_rng(0)
    x, query = (rng.normal(size=shape).astype(np.float32) for shape in ((TASKS, PAIRS, DIM), (TASKS, DIM)))
    y, label = (rng.choice([-1.0, 1.0], size=shape).astype(np.float32) for shape in ((TASKS, PAIRS), (TASKS,)))
    return Batch(x, y, query, label, np.zeros((TASKS, 1), np.float32))


def free(batch: Batch) -> Array:
    """Without context."""
    return batch.x_query[:, 0] - 0.5 * batch.x_query[:, 1]


def contextual(batch: Batch) -> Array:
    """s.x_q."""
    return jnp.einsum("bn,bnd,bd->b", batch.y, batch.x, batch.x_query)


def mixture(share: Array, batch: Batch) -> Array:
    return free(batch) + share * contextual(batch)


# The context-free part


def test_what_ignores_the_context_is_all_context_free(batch: Batch) -> None:
    expected = np.mean(np.asarray(free(batch), np.float64) ** 2)
    assert context_free_square(Partial(free), batch) == pytest.approx(expected, rel=1e-5)  # float32


def test_what_depends_on_random_labels_alone_has_none(batch: Batch) -> None:
    """Each half's means vary by a 16th of the square, their product over 4096 queries by a 1024th of that."""
    square = np.mean(np.asarray(contextual(batch), np.float64) ** 2)
    assert context_free_square(Partial(contextual), batch) < 4 * square / 1024


@pytest.mark.parametrize("share", [0.05, 0.3])
def test_a_sum_has_its_part(batch: Batch, share: float) -> None:
    expected = np.mean(np.asarray(free(batch), np.float64) ** 2)
    square = share**2 * np.mean(np.asarray(contextual(batch), np.float64) ** 2)
    found = context_free_square(Partial(mixture, jnp.float32(share)), batch)
    # the means' own variation, and twice that times the context-free part
    error = square / 1024 + 2 * np.sqrt(expected * square / 32 / TASKS)
    assert abs(found - expected) < 4 * error
    assert found < expected + square / 2


def test_labels_that_codes_tell_have_a_context_free_part(batch: Batch) -> None:
    """With y = sign x_0 in every task the mean of s is N sqrt(2 / pi) e_0, whatever the labels of one context."""
    told = batch._replace(y=np.sign(batch.x[:, :, 0]))
    expected = PAIRS**2 * 2 / np.pi * np.mean(batch.x_query[:, 0].astype(float) ** 2)
    assert context_free_square(Partial(contextual), told) == pytest.approx(expected, rel=0.02)  # 4 errors of 1/200


def test_the_two_parts_and_what_is_left_with_labels_in_another_order(batch: Batch) -> None:
    predict = Partial(mixture, jnp.float32(0.1))
    predictions = np.asarray(predict(batch), np.float64)
    drawn = Drawn(jnp.zeros(TASKS, int), jnp.zeros((TASKS, PAIRS + 1), int), jnp.zeros((TASKS, PAIRS + 1)))
    found = of_context(predict, TaskSet(drawn, batch), predictions)
    assert found["context_free"] ** 2 == pytest.approx(context_free_square(predict, batch), rel=1e-6)
    assert found["context_free"] ** 2 + found["contextual"] ** 2 == pytest.approx(np.mean(predictions**2), rel=1e-6)
    labels = batch.y_query.astype(float)
    shuffled = np.asarray(mixture(0.1, shuffled_labels(batch)), np.float64)
    assert found["shuffled_loss"] == pytest.approx(np.mean((shuffled - labels) ** 2) / 2, rel=1e-5)
    assert found["shuffled_accuracy"] == pytest.approx(np.mean(np.sign(shuffled) == labels), abs=1 / TASKS)


def test_shuffled_labels_keep_how_many_there_are_of_each(batch: Batch) -> None:
    numbered = batch._replace(y=np.arange(TASKS * PAIRS).reshape(TASKS, PAIRS).astype(np.float32))
    found = shuffled_labels(numbered)
    np.testing.assert_array_equal(np.sort(found.y, axis=1), numbered.y)
    for field in ("x", "x_query", "y_query", "w"):
        np.testing.assert_array_equal(getattr(found, field), getattr(numbered, field))
    # every label is at every place as often: in a tenth of the contexts, within 4.5 standard errors of 100 cells
    order = (found.y % PAIRS).astype(int)
    shares = np.array([[np.mean(order[:, place] == label) for place in range(PAIRS)] for label in range(PAIRS)])
    assert np.abs(shares - 0.1).max() < 4.5 * np.sqrt(0.09 / TASKS)
    np.testing.assert_array_equal(found.y, shuffled_labels(numbered).y)
    assert (found.y != shuffled_labels(numbered, seed=1).y).any()


# Losses


def test_an_baseline_that_has_not_converged_is_null_with_the_reason() -> None:
    names = ("model", "gd", "ridge", "optimum", "optimum_biased", "no_context", "logit")
    responses = {name: Response(np.array([0.5, 0.1 * place, -1]), np.ones((3, 2))) for place, name in enumerate(names)}
    responses["logit"] = Response(np.array([0.5, np.nan, -1]), np.ones((3, 2)))
    batch = Batch(np.zeros((3, 2, 2)), np.zeros((3, 2)), np.zeros((3, 2)), np.array([1.0, 1, -1]), np.zeros((3, 1)))
    found = on_tasks(TaskSet(Drawn(jnp.zeros(3, int), jnp.ones((3, 3), int), jnp.zeros((3, 3))), batch), responses, {})
    for number in ("logit_loss", "logit_accuracy"):
        assert (found[number], found[f"{number}_se"]) == (None, None)
        assert found[f"{number}_reason"].startswith("in 1 of 3 contexts it has not converged")
    assert found["loss_se"] > 0
    wide = dict.fromkeys(("shuffled_accuracy", "context_free", "contextual"), 0.0)
    lines = summary_lines({"headline": shown(found | wide)}, Path(), config_of())
    assert sum("not defined: in 1 of 3 contexts" in line for line in lines) == 1


def test_losses_ratios_and_distances_by_hand() -> None:
    labels, strings = np.array([1.0, -1, 1, 1]), np.array([[0, 1, 2], [3, 1, 3], [2, 2, 2], [0, 1, 3]])
    predictions = {
        "model": [0.5, -1, -0.5, 0],
        "gd": [0, 0, 0, 0],
        "ridge": [1, 1, 1, 1],
        "optimum": [1, -1, 0, 1],
        "optimum_biased": [0.5, -0.5, 0.5, 0.5],
        "no_context": [-1, -1, -1, -1],
    }
    others = {"version_space": np.array([1.0, -1, 1, 0])}
    directions = {name: np.tile([1.0, 0.0], (4, 1)) for name in predictions}
    directions["gd"], directions["ridge"] = np.tile([0.0, 2.0], (4, 1)), np.tile([-3.0, 0.0], (4, 1))
    directions["optimum"], directions["no_context"] = np.tile([4.0, 3.0], (4, 1)), np.zeros((4, 2))
    responses = {name: Response(np.array(own, float), directions[name]) for name, own in predictions.items()}
    batch = Batch(np.zeros((4, 2, 2)), np.zeros((4, 2)), np.zeros((4, 2)), labels, np.zeros((4, 1)))
    drawn = Drawn(jnp.zeros(4, int), jnp.asarray(strings), jnp.zeros((4, 3)))
    found = on_tasks(TaskSet(drawn, batch), responses, others)
    assert (found["tasks"], found["query_in_context"]) == (4, 0.5)
    # half squared errors of the model: 1/8, 0, 9/8, 1/2; of gd: 1/2 each; of the optimum: 0, 0, 1/2, 0
    assert found["loss"] == pytest.approx(1.75 / 4)
    assert found["loss_se"] == pytest.approx(np.std([1 / 8, 0, 9 / 8, 1 / 2], ddof=1) / 2)
    assert (found["gd_loss"], found["optimum_loss"], found["no_context_loss"]) == (0.5, 0.125, 1.5)
    assert found["version_space_loss"] == 0.125
    assert found["gd_ratio"] == pytest.approx(0.875)
    assert found["ridge_ratio"] == pytest.approx(0.875)
    assert found["optimum_biased_ratio"] == pytest.approx(3.5)
    assert found["way_to_optimum"] == pytest.approx((0.5 - 0.4375) / 0.375)
    # a prediction of 0 is half right
    accuracies = {"": 2.5, "gd_": 2, "ridge_": 3, "optimum_": 3.5, "no_context_": 1, "version_space_": 3.5}
    assert {name: found[f"{name}accuracy"] for name in accuracies} == {n: own / 4 for n, own in accuracies.items()}
    assert found["gd_preds_mse"] == pytest.approx((0.25 + 1 + 0.25) / 4)
    cosines = {"gd": 0, "ridge": -1, "optimum": 0.8, "optimum_biased": 1, "no_context": None}
    assert {name: found[f"{name}_cosine"] for name in cosines} == pytest.approx(cosines)


# Weights of one layer


def config_of(**values: Any) -> LanguagesConfig:
    config = preset("languages")
    small = {"max_length": 8, "pool_size": 256, "unseen_languages": (), "code_dim": 6, "num_pairs": 5}
    set_values(config, {**{"code.dim" if name == "code_dim" else name: own for name, own in small.items()}, **values})
    found = resolve(config)
    assert isinstance(found, LanguagesConfig)
    return found


@pytest.fixture(scope="module")
def config() -> LanguagesConfig:
    return config_of()


def with_layer(config: LanguagesConfig, layer: np.ndarray, scale: float = 1.0) -> dict[str, dict[str, np.ndarray]]:
    """Parameters of one layer that predicts s^T A x_q, with a scale moved from one product to the other."""
    dim = len(layer)
    params = gd_params(config.architecture, 1.0)
    part = dict(params["layer_0/attention"])
    query = np.zeros((dim + 1, 1, dim + 1))
    query[:dim, 0, :dim] = scale * layer.T  # rows are x W_Q: query = A x_q
    part["query"], part["projection"] = query, part["projection"] / scale
    return {"layer_0/attention": part}


def small_batch(config: LanguagesConfig) -> Batch:
    return reference.random_batch(3, size=7, pairs=config.data.num_pairs, dim=config.code.dim)


@pytest.mark.parametrize("scale", [1.0, -0.25])
def test_the_layer_is_what_the_model_predicts_with(config: LanguagesConfig, scale: float, x64: None) -> None:
    """s^T A x_q, for an A that is not symmetric."""
    layer = np.random.default_rng(1).normal(size=(6, 6))
    params, batch = with_layer(config, layer, scale), small_batch(config)
    found = layer_of(config, params)
    s = np.einsum("bn,bnd->bd", batch.y, batch.x)
    expected = np.einsum("bi,ij,bj->b", s, found, batch.x_query)
    np.testing.assert_allclose(make_model(config).predict(params, batch), expected, rtol=1e-9, atol=1e-9)  # float64
    np.testing.assert_allclose(found, layer, rtol=1e-12)


def test_the_construction_is_one_step_of_descent(config: LanguagesConfig, x64: None) -> None:
    params, batch = gd_params(config.architecture, 0.07), small_batch(config)
    np.testing.assert_allclose(layer_of(config, params), 0.07 * np.eye(6), rtol=1e-12)
    expected = reference.gd(batch, 0.07, 1)
    np.testing.assert_allclose(make_model(config).predict(params, batch), expected, rtol=1e-9, atol=1e-9)


def test_of_whitened_codes_singular_values_are_the_step_size(config: LanguagesConfig) -> None:
    codes, layer = coded_pools(config.data, config.code).train, np.diag([5.0, 3.0, 2.0, 1.0, 0.5, 0.25])
    found = spectra(config, gd_params(config.architecture, 0.07), FittedBaselines({}, 0.02, layer), codes)[
        "singular_values"
    ]
    close = partial(np.testing.assert_allclose, rtol=1e-4)  # codes are float32
    close(found["model"], [0.07] * 6)
    close(found["gd"], [0.02] * 6)
    close(found["optimum"], np.diagonal(layer))


def test_singular_values_do_not_depend_on_the_codes_basis(config: LanguagesConfig) -> None:
    """With codes M x the same predictor has M^-T A M^-1; and they are those of A on the draws, string by string."""
    rng, pool = np.random.default_rng(2), pools_of(config.data).train
    codes, layer, m = coded_pools(config.data, config.code).train, rng.normal(size=(6, 6)), rng.normal(size=(6, 6))
    skewed, inverse = codes.astype(float) @ m.T, np.linalg.inv(m)
    moved = inverse.T @ layer @ inverse
    found = singular_values(moved, skewed, pool)
    np.testing.assert_allclose(found, singular_values(layer, codes, pool), rtol=1e-6)
    rows = skewed[np.concatenate([pool.positives.ravel(), pool.negatives.ravel()])]
    # X A X^T / S has the singular values of Sigma^1/2 A Sigma^1/2, and zeros
    left, upper = np.linalg.qr(rows / np.sqrt(len(rows)))
    assert left.shape[1] == 6
    expected = np.linalg.svd(upper @ moved @ upper.T, compute_uv=False)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_the_arrays_stand_on_one_scale(config: LanguagesConfig) -> None:
    """Products give the same layer as trained, rescaled, of the construction and of the optimum; beta is then 1."""
    rng = np.random.default_rng(4)
    own, optimum = 2 * np.eye(6) + rng.normal(size=(6, 6)), 0.1 * np.eye(6) + 0.01 * rng.normal(size=(6, 6))
    arrays = weight_arrays(config, with_layer(config, own, 3.0), FittedBaselines({}, 0.02, optimum))
    expected = {"": own, "rescaled_": own, "construction_": 0.02 * np.eye(6), "optimum_": optimum}
    for name, layer in expected.items():
        kq, pv = arrays[f"{name}kq"], arrays[f"{name}pv"]
        assert kq.shape == pv.shape == (1, 1, 7, 7)
        np.testing.assert_allclose(-pv[0, 0, 6, 6] * kq[0, 0, :6, :6], layer, rtol=1e-9, atol=1e-12)  # float64
        if name:
            assert np.diagonal(kq[0, 0])[:6].mean() == pytest.approx(1)


@pytest.mark.parametrize(
    ("values", "products", "layer"),
    [
        ({}, True, True),
        ({"num_layers": 2}, True, False),
        ({"attention": "softmax"}, False, False),
        ({"d_model": 16, "key_size": 16}, False, False),
        ({"mlp_width": 8}, False, False),
    ],
)
def test_only_plain_linear_models_have_products_that_act_on_codes(
    values: dict[str, Any], products: bool, layer: bool
) -> None:
    config = config_of(**values)
    assert has_products(config) is products
    if not layer:
        assert layer_of(config, {}) is None
        assert spectra(config, {}, FittedBaselines({}, 0.02, np.eye(6)), np.zeros((0, 6))) == {}
