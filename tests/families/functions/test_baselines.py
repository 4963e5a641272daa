"""Predictors of a run against formulas and methods that were written apart from them."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from icl_lab.baselines.functions.logistic_sampling import logistic_posterior
from icl_lab.families.functions import baselines, exact, task
from icl_lab.families.functions.classes.boolean import Conjunctions, Majority
from icl_lab.families.functions.classes.labelled import LogisticRegression, NearestNeighbour, Prototypes
from icl_lab.families.functions.classes.linear import Linear, NoisyLinear
from icl_lab.families.functions.classes.mixtures import RegressionOrClassification, TwoNoiseLevels
from icl_lab.families.functions.config import FunctionModel, FunctionsConfig, PromptData
from icl_lab.src.prng import Purpose
from icl_lab.src.registries import FUNCTION_CLASSES

COUNT, DIM = 60, 4
BASE = FunctionsConfig(
    data=PromptData(dim=DIM, num_pairs=9),
    model=FunctionModel(d_model=8, mlp_width=8),
    eval_tasks=COUNT,
    test_tasks=COUNT,
    fitted_prompts=3,
)


def config_of(function: Any, **data: Any) -> FunctionsConfig:
    return replace(BASE, function=function, data=replace(BASE.data, **data))


def said_of(config: FunctionsConfig, purpose: Purpose = Purpose.TEST_SET) -> tuple[Any, dict[str, Any]]:
    """Test prompts in float64, and what predictors say of them."""
    batch = task.prompts(config, purpose, COUNT)
    said = dict(baselines.predictions_on(baselines.Asked(config), batch))
    return batch._replace(x=np.asarray(batch.x, float), y=np.asarray(batch.y, float)), said


def means(logits: np.ndarray) -> np.ndarray:
    return np.tanh(logits / 2)


def test_a_pool_s_posterior_of_noisy_linear_functions_is_dmmse() -> None:
    """The formula of `tests/runners/test_run_task_diversity.py`."""
    config = config_of(NoisyLinear(), num_functions=5)
    batch, said = said_of(config)
    pool = np.asarray(task.functions_of_pool(config), float)
    labels = np.einsum("bkd,md->bkm", batch.x, pool)
    squared = np.cumsum((batch.y[:, :, None] - labels) ** 2, axis=1)
    before = np.concatenate([np.zeros_like(squared[:, :1]), squared[:, :-1]], axis=1)
    weights = np.exp(-(before - before.min(axis=2, keepdims=True)) / (2 * 0.25))
    expected = (weights * labels).sum(axis=2) / weights.sum(axis=2)
    np.testing.assert_allclose(said["pool"], expected, atol=1e-4)


def test_of_a_pool_without_noise_one_pair_tells_the_function() -> None:
    config = config_of(Linear(), num_functions=5)
    batch, said = said_of(config)
    errors = task.errors_of(config.function, said["pool"], batch)
    assert errors[:, 1:].max() < 1e-6
    assert errors[:, 0].mean() > 0.05


def test_a_pool_of_all_functions_has_the_posterior_of_the_class() -> None:
    _batch, said = said_of(config_of(Majority(), num_functions=8))
    np.testing.assert_allclose(means(said["pool"]), means(said["bayes"]), atol=1e-6)


def test_a_pool_s_posterior_of_prototypes_is_bayes_rule() -> None:
    """At the first position p(class | x) over five pools of centres, written out; later labels tell the pool apart."""
    config = config_of(Prototypes(), num_functions=5)
    batch, said = said_of(config)
    centres = np.asarray(task.functions_of_pool(config), float)
    first = np.exp(-0.5 * ((batch.x[:, 0, None, None] - centres[None]) ** 2).sum(axis=3))
    expected = first.sum(axis=1) / first.sum(axis=(1, 2))[:, None]
    np.testing.assert_allclose(np.exp(said["pool"][:, 0]), expected, atol=1e-5)
    errors = {name: task.errors_of(config.function, values, batch).mean(axis=0) for name, values in said.items()}
    assert errors["pool"][-1] < errors["pool"][0]
    assert errors["pool"].mean() < errors["bayes"].mean() < errors["prior"].mean()


def test_the_label_of_the_nearest_landmark_is_certain() -> None:
    batch, said = said_of(config_of(NearestNeighbour(landmarks=4)))
    errors = task.errors_of(NearestNeighbour(landmarks=4), said["bayes"], batch)
    np.testing.assert_allclose(errors[:, :4], math.log(2), rtol=1e-6)
    assert errors[:, 4:].max() < 1e-6


def test_bayes_of_two_noise_levels_averages_and_the_oracle_is_ridge() -> None:
    config = config_of(TwoNoiseLevels())
    batch, said = said_of(config)
    low, high = (config.function.members[i].noise_std ** 2 for i in range(2))
    for b in range(5):
        penalty = (low, high)[int(batch.member[b])]
        for k in (3, 8):
            x, y = batch.x[b, :k], batch.y[b, :k]
            ridge = batch.x[b, k] @ np.linalg.solve(x.T @ x + penalty * np.eye(DIM), x.T @ y)
            assert said["oracle"][b, k] == pytest.approx(ridge, abs=1e-5)
    both = np.sort(np.stack([said["member_0"], said["member_1"]]), axis=0)
    assert (said["bayes"] >= both[0] - 1e-9).all()
    assert (said["bayes"] <= both[1] + 1e-9).all()
    is_one = np.isclose(said["likelier"], said["member_0"]) | np.isclose(said["likelier"], said["member_1"])
    assert is_one.all()


def test_the_first_label_tells_regression_from_classification() -> None:
    config = config_of(RegressionOrClassification())
    batch, said = said_of(config)
    np.testing.assert_allclose(said["bayes"][:, 1:], said["oracle"][:, 1:])
    errors = task.errors_of(config.function, said["bayes"], batch)
    regression = np.asarray(batch.member) == 0
    assert errors[regression, DIM:].max() < 1e-4
    assert errors[~regression].mean() < math.log(2)
    np.testing.assert_allclose(errors[~regression, 0], math.log(2), atol=0.05)


@pytest.mark.parametrize("name", FUNCTION_CLASSES.built_in)
def test_every_class_has_a_constant_and_baselines_that_are_defined(name: str) -> None:
    """And a reference that is better than the constant from some pairs on."""
    function = FUNCTION_CLASSES[name](**{"nearest_neighbour": {"landmarks": 4}}.get(name, {}))
    config = config_of(function)
    batch, said = said_of(config)
    assert {*function.baselines, "prior"} <= {*said}
    assert not [name for name, values in said.items() if isinstance(values, str)]
    errors = {name: task.errors_of(function, values, task.first(batch, len(values))) for name, values in said.items()}
    reference = next(name for name in baselines.references(config, "id") if name in errors)
    shared = len(errors[reference])
    assert errors[reference][:, -1].mean() < errors["prior"][:shared, -1].mean()
    for fitted in {*errors} & {"greedy_tree", "boosted_trees", "adam_network"}:
        assert len(errors[fitted]) == 3
        known = ~np.isnan(errors[fitted]).any(axis=0)
        assert [*np.flatnonzero(known)] == baselines.fitted_positions(9)


def test_ridge_has_a_penalty_for_each_position_that_serves_other_prompts() -> None:
    """Of noisy labels it is next to Bayes, which is told the noise; without noise it is least squares."""
    _, said = said_of(replace(config_of(Linear()), test_tasks=400))
    np.testing.assert_allclose(said["ridge"][:, 1:], said["least_squares"][:, 1:], atol=1e-3)
    batch, said = said_of(replace(config_of(NoisyLinear(noise_std=1.0)), test_tasks=400))
    losses = {
        name: task.errors_of(NoisyLinear(), said[name], batch).mean(axis=0) for name in ("ridge", "bayes", "prior")
    }
    assert (losses["ridge"] < 1.1 * losses["bayes"] + 1e-9).all()
    assert losses["ridge"][-1] < 0.7 * losses["prior"][-1]


def test_a_class_that_cannot_be_listed_has_no_bayes_and_the_reason_is_said() -> None:
    _, said = said_of(config_of(Majority(), dim=18))
    assert said["bayes"] == "the posterior is over a list of all functions, and 1.31e+05 are more than 65536"


def test_what_sampling_adds_to_the_loss_of_bayes_is_what_more_samples_take_away() -> None:
    """Of logistic functions: the loss of the mean of 512 samples less that of 16 384, to a factor of three."""
    function = LogisticRegression()
    batch = task.prompts(replace(config_of(function), test_tasks=50), Purpose.TEST_SET, 50)
    x, y = np.asarray(batch.x, float), np.asarray(batch.y, float)
    few = [logistic_posterior(x, y, seed=seed).mean for seed in range(4)]
    many = logistic_posterior(x, y, samples=2**14).mean
    added = np.mean([(mean - many) ** 2 / (2 * (1 - many**2)) for mean in few])
    assert added / 3 < exact.sampling_loss(function, batch) < 3 * added


def test_constants_are_the_share_of_labels() -> None:
    _, said = said_of(config_of(Conjunctions()))
    other = np.asarray(task.prompts(config_of(Conjunctions()), Purpose.FITTED, COUNT).y)
    assert means(said["prior"])[0, 0] == pytest.approx(other.mean(), abs=1e-6)
    _, said = said_of(config_of(Prototypes()))
    np.testing.assert_allclose(np.exp(said["prior"][0, 0]).sum(), 1, rtol=1e-6)
