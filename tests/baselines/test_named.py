"""The built-in baselines that a config names: independent references, special cases, and what is refused."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from icl_lab.baselines.linear_mmse import primal_ridge, ridge
from icl_lab.baselines.registry import function
from icl_lab.families.regression.config import RegressionConfig
from icl_lab.src.checks import ConfigError
from icl_lab.src.config import ContextConfig
from icl_lab.src.data import sample_batch
from icl_lab.src.data_config import DataConfig
from icl_lab.src.prng import key
from icl_lab.src.registries import NAMED_BASELINES

DATA = DataConfig(4, 6, "gaussian", spectrum="power_law", task_covariance="inverse", task_mean=0.5, noise_std=0.4)


def config(data):
    return RegressionConfig(data=data)


def test_all_built_in_names_have_a_predictor():
    assert {"preconditioned_gd", "gaussian_posterior"} <= {*NAMED_BASELINES}
    assert all(callable(function(name)) for name in NAMED_BASELINES)


def test_the_gaussian_posterior_is_the_conditional_mean():
    with jax.enable_x64(True):
        batch = jax.tree.map(lambda part: np.asarray(part, np.float64), sample_batch(key(0), DATA, 12))
        found = np.asarray(function("gaussian_posterior")(batch, config(DATA)))
    covariance, mean = np.diag(np.arange(1.0, 5)), np.full(4, 0.5)
    for index in range(12):
        x, y, query = batch.x[index], batch.y[index], batch.x_query[index]
        noisy = x @ covariance @ x.T + 0.16 * np.eye(6)
        expected = query @ (mean + covariance @ x.T @ np.linalg.solve(noisy, y - x @ mean))
        assert found[index] == pytest.approx(expected, abs=1e-9)


def test_of_isotropic_tasks_it_is_ridge():
    data = DataConfig(noise_std=0.3)
    batch = sample_batch(key(1), data, 20)
    np.testing.assert_allclose(function("gaussian_posterior")(batch, config(data)), ridge(batch, 0.09), rtol=1e-5)


def test_the_primal_form_of_ridge_is_ridge():
    with jax.enable_x64(True):
        batch = jax.tree.map(lambda part: np.asarray(part, np.float64), sample_batch(key(2), DataConfig(4, 9), 12))
        np.testing.assert_allclose(primal_ridge(batch, 0.3), ridge(batch, 0.3), atol=1e-12)


@pytest.mark.parametrize("name", ["mixture_posterior", "sparse_posterior"])
def test_posteriors_of_other_priors_need_noise_and_plain_tasks(name):
    for data, words in ((replace(DATA, noise_std=0.0), "task_mean 0"), (DataConfig(), "noise_std is 0")):
        with pytest.raises(ConfigError, match=words):
            function(name)(sample_batch(key(0), data, 4), config(data))


@pytest.mark.parametrize("distribution", ["mixture", "sparse"])
def test_the_posterior_of_the_tasks_own_prior_is_the_best(distribution):
    """No other predictor has a smaller loss on 4000 tasks, all on the same ones."""
    data = DataConfig(4, 5, "gaussian", noise_std=0.5, weight_scale=2.0, task_distribution=distribution)
    batch = sample_batch(key(3), data, 4000)
    found = {
        name: float(np.mean((np.asarray(function(name)(batch, config(data))) - batch.y_query) ** 2))
        for name in ("mixture_posterior", "sparse_posterior", "gaussian_posterior")
    }
    assert min(found, key=found.__getitem__) == f"{distribution}_posterior"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"teacher": "tanh"}, "linear labels"),
        ({"axes": "rotated"}, "the same covariance in all contexts"),
        ({"spectrum": "log_uniform"}, "the same covariance in all contexts"),
    ],
)
def test_where_it_is_not_defined_it_says_so(changes, words):
    data = replace(DATA, **changes)
    with pytest.raises(ConfigError, match=words):
        function("gaussian_posterior")(sample_batch(key(0), data, 4), config(data))


@pytest.mark.parametrize("name", ["preconditioned_gd", "gaussian_posterior", "mixture_posterior", "sparse_posterior"])
@pytest.mark.parametrize("where", ["train", "eval"])
def test_of_corrupted_pairs_they_know_nothing(name, where):
    data = DataConfig(4, 6, noise_std=0.3)
    corrupted = replace(config(data), **{where: ContextConfig(noise_mode="random_pairs", noise_p=0.2)})
    with pytest.raises(ConfigError, match="without corrupted pairs"):
        function(name)(sample_batch(key(0), data, 4), corrupted)
    with pytest.raises(ConfigError, match="without corrupted pairs"):
        function(name)(sample_batch(key(0), data, 4), config(replace(data, num_distractors=1)))


def test_an_unknown_baseline_is_refused_with_those_that_are_known():
    with pytest.raises(ConfigError, match="known are preconditioned_gd, gaussian_posterior"):
        RegressionConfig(baselines=("nobody",))
