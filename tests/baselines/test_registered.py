"""Noise modes that are added: what is registered is used, and what is not is refused; sign flips by simulation."""

from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import multivariate_normal

from icl_lab.analysis import comparators
from icl_lab.analysis.loaded_run import ComparedRun
from icl_lab.baselines.linear_mmse import bayes_penalty, linear_mmse, partly_agreeing, ridge
from icl_lab.baselines.mask_bayes import NextPair, condition, log_density, mask_bayes
from icl_lab.families.regression.config import RegressionConfig, canonical_context
from icl_lab.families.regression.task import GradientDescent
from icl_lab.src.checks import ConfigError
from icl_lab.src.config import ContextConfig
from icl_lab.src.data_config import DataConfig
from icl_lab.src.registries import NOISE_MODES, NoiseMode
from icl_lab.store import layout
from icl_lab.store.readers import read_json
from tests import reference

SIGMAS = 4.0
DATA = DataConfig(dim=3, num_pairs=4, noise_std=0.3, weight_scale=1.5)
SETTINGS = {"noise_mode": "sign_flips", "noise_p": 0.3}

close = partial(np.testing.assert_allclose, rtol=1e-9, atol=1e-9)


def sign_flips(key, batch, hit, sigma, data):
    y = jnp.where(hit, -batch.y, batch.y)
    return batch._replace(y=y), abs(y - batch.y)


@pytest.fixture
def flips(registered: Any) -> ContextConfig:
    """The mode with its corruption alone, as the first part of the recipe adds it."""
    registered(NOISE_MODES, "sign_flips", NoiseMode(corrupt=sign_flips))
    return ContextConfig(**SETTINGS)


def hit_pair(pair: NextPair, context: ContextConfig, out: np.ndarray) -> np.ndarray:
    table = pair.table.copy()
    table[0, -1] -= 2 * pair.label
    condition(table, pair.pivot, out=out)
    return log_density(table[0, -1], pair.pivot)


@pytest.fixture
def known_flips(registered: Any) -> ContextConfig:
    """The mode with its baselines, as the second part adds them."""
    of_p = lambda batch, data, context: partly_agreeing(batch, data, 1 - 2 * context.noise_p)  # noqa: E731
    mode = NoiseMode(corrupt=sign_flips, linear_mmse=of_p, mask_bayes=hit_pair)
    registered(NOISE_MODES, "sign_flips", mode)
    return ContextConfig(**SETTINGS)


# Nothing falls through


@pytest.mark.parametrize("p", [0.3, 1.0])
def test_a_mode_without_baselines_has_none(flips: ContextConfig, p: float) -> None:
    batch, context = reference.random_batch(1, pairs=4, dim=3), replace(flips, noise_p=p)
    with pytest.raises(ConfigError, match="'sign_flips' is registered without its linear_mmse"):
        linear_mmse(batch, DATA, context)
    with pytest.raises(ConfigError, match="'sign_flips' is registered without its mask_bayes"):
        mask_bayes(batch, DATA, context)


def test_where_nothing_is_hit_every_mode_is_clean(flips: ContextConfig, x64: None) -> None:
    batch, context = reference.random_batch(1, pairs=4, dim=3), replace(flips, noise_p=0.0)
    for predict in (linear_mmse, mask_bayes):
        close(predict(batch, DATA, context), ridge(batch, bayes_penalty(DATA)))


def test_the_file_of_comparators_has_null_and_the_reason(flips: ContextConfig, tmp_path: Path) -> None:
    config = RegressionConfig(data=DATA, eval=flips, test_tasks=64, step_size_tasks=128)
    comparators.write(ComparedRun(tmp_path, config, None, None, None, GradientDescent(1, 0.3, "given")))
    found = read_json(tmp_path / layout.COMPARATORS)
    for name in ("linear_mmse", "mask_bayes"):
        assert (found[name]["loss"], found[name]["loss_se"]) == (None, None)
        assert f"registered without its {name}" in found[name]["reason"]
    assert found["gd_tuned_step"]["loss"] > 0


def test_sigma_counts_until_a_mode_is_without(flips: ContextConfig, registered: Any) -> None:
    """Runs that differ in sigma are two as long as nobody says that sigma does not reach them; at 0 it is not clean."""
    assert canonical_context(replace(flips, noise_sigma=0.5)).noise_sigma == 0.5
    assert canonical_context(flips).noise_mode == "sign_flips"
    assert flips.hit_rate == 0.3
    registered(NOISE_MODES, "without_sigma", NoiseMode(ignores_sigma=True, corrupt=sign_flips))
    assert canonical_context(replace(flips, noise_mode="without_sigma", noise_sigma=0.5)).noise_sigma == 0


# Sign flips


def test_the_coefficients_are_those_of_a_regression_on_many_tasks(known_flips: ContextConfig, x64: None) -> None:
    """200 000 tasks on one context's inputs; standard errors as of White 1980."""
    rng, batch, tasks = np.random.default_rng(4), reference.random_batch(3, size=1, pairs=4, dim=3), 200_000
    x, w = batch.x[0], DATA.weight_scale * rng.normal(size=(tasks, 3))
    y = w @ x.T + DATA.noise_std * rng.normal(size=(tasks, 4))
    y *= np.where(rng.uniform(size=y.shape) < known_flips.noise_p, -1, 1)
    inverse, y_query = np.linalg.inv(y.T @ y), w @ batch.x_query[0]
    regression = inverse @ (y.T @ y_query)
    scores = y * (y_query - y @ regression)[:, None]
    errors = np.sqrt(np.diag(inverse @ (scores.T @ scores) @ inverse))
    repeated = batch._replace(x=np.repeat(batch.x, 4, 0), y=np.eye(4), x_query=np.repeat(batch.x_query, 4, 0))
    found = np.asarray(linear_mmse(repeated, DATA, known_flips))
    assert (np.abs(found - regression) < SIGMAS * errors).all()
    for other in ("random_pairs", "label_noise"):
        wrong = np.asarray(linear_mmse(repeated, DATA, replace(known_flips, noise_mode=other, noise_sigma=0.7)))
        assert (np.abs(wrong - regression) > 5 * SIGMAS * errors).any()  # the simulation can tell


@pytest.mark.parametrize("noise_std", [0.0, 0.3])
def test_where_all_labels_are_flipped_it_is_the_ridge_of_the_others(
    known_flips: ContextConfig, noise_std: float, x64: None
) -> None:
    """Also with more pairs than dimensions and no noise; at p = 1/2 the labels tell nothing that is linear."""
    batch, data = reference.random_batch(5, pairs=6, dim=3), replace(DATA, noise_std=noise_std, num_pairs=6)
    flipped = linear_mmse(batch, data, replace(known_flips, noise_p=1.0))
    close(flipped, ridge(batch._replace(y=-batch.y), bayes_penalty(data)))
    close(linear_mmse(batch, data, replace(known_flips, noise_p=0.5)), 0)
    close(mask_bayes(batch, data, replace(known_flips, noise_p=1.0)), flipped)


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_the_posterior_is_a_sum_over_all_masks(known_flips: ContextConfig, p: float) -> None:
    """SciPy's density of the labels with those signs turned back."""
    batch = reference.random_batch(1, size=20, pairs=4, dim=3)
    expected = []
    for x, y, query in zip(batch.x, batch.y, batch.x_query, strict=True):
        covariance = DATA.weight_scale**2 * x @ x.T + DATA.noise_std**2 * np.eye(4)
        weights, predictions = [], []
        for mask in product((False, True), repeat=4):
            clean = np.where(mask, -y, y)
            prior = p ** sum(mask) * (1 - p) ** (4 - sum(mask))
            weights.append(prior * multivariate_normal.pdf(clean, np.zeros(4), covariance))
            predictions.append(DATA.weight_scale**2 * query @ x.T @ np.linalg.solve(covariance, clean))
        expected.append(np.dot(weights, predictions) / np.sum(weights))
    close(mask_bayes(batch, DATA, replace(known_flips, noise_p=p)), expected)
