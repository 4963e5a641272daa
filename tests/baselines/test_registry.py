"""Every baseline predicts, knows what the registry says that it knows and nothing else, and keeps its name.

What it knows is changed, a fact at a time: its predictions must follow. All else must leave them as they are, unless it
says that it is not defined there.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest
from jax.tree_util import Partial

from icl_lab.baselines import gd_plus_plus
from icl_lab.baselines.registry import function, score_of_pairs
from icl_lab.families.diversity.config import DiversityConfig
from icl_lab.families.diversity.task import pool_sequences
from icl_lab.families.languages import baselines as of_languages
from icl_lab.families.languages.codes import coded_pools
from icl_lab.families.languages.data import CodeConfig, LanguageData
from icl_lab.families.regression.baselines import made
from icl_lab.families.regression.config import RegressionConfig
from icl_lab.families.regression.task import find_gd
from icl_lab.lab import plugins
from icl_lab.lab.configs.earlier_names import todays_fields
from icl_lab.lab.configs.identity import config_id
from icl_lab.lab.configs.presets import preset, resolve, set_values
from icl_lab.src.batch import Batch
from icl_lab.src.checks import ConfigError
from icl_lab.src.config import ContextConfig, ModelConfig
from icl_lab.src.data_config import DataConfig, PoolData
from icl_lab.src.registries import (
    BASELINES,
    CORRUPTED,
    DIVERSITY,
    KNOWLEDGE,
    LANGUAGES,
    NAMED_BASELINES,
    REGRESSION,
)
from tests import reference

NOISY = ContextConfig(noise_mode="label_noise", noise_p=0.25, noise_sigma=0.5)
CONFIG = RegressionConfig(
    data=DataConfig(3, 4, noise_std=0.3, input_range=1.7),
    model=ModelConfig(num_layers=2, recurrent=True),
    step_size_tasks=400,
    test_tasks=16,
)
# what tuning or a fit on sampled contexts tells besides
BY_SAMPLES = {"clean step": {"tasks", "covariance"}}
OF_A_BATCH: Mapping[str, Callable[[Batch], Batch]] = {
    "inputs": lambda batch: batch._replace(x=1.2 * batch.x[:, :, ::-1]),
    "labels": lambda batch: batch._replace(y=batch.y * np.where(np.arange(batch.y.shape[1]) == 1, -1, 1)[None]),
    "query": lambda batch: batch._replace(x_query=-0.7 * batch.x_query + 0.2),
    "": lambda batch: batch._replace(y_query=batch.y_query + 1, w=batch.w + 1),
}
OF_A_CONFIG: Mapping[str, Callable[[RegressionConfig], RegressionConfig]] = {
    "tasks": lambda config: replace(config, data=replace(config.data, noise_std=0.9)),
    "covariance": lambda config: replace(
        config, data=replace(config.data, spectrum="power_law", task_covariance="inputs")
    ),
    "noise": lambda config: replace(config, eval=replace(NOISY, noise_p=0.5)),
    "order": lambda config: replace(config, eval=replace(config.eval, ordering="smallnorm2largenorm")),
    "training": lambda config: replace(config, train=replace(NOISY, noise_placement="clean_first")),
}
OF_REGRESSION = [name for name in BASELINES.built_in if REGRESSION in BASELINES[name].where or name in NAMED_BASELINES]


def known(name: str) -> set[str]:
    """What a baseline knows, with what it could find out of that."""
    facts = {*BASELINES[name].knows}
    return facts.union(*(BY_SAMPLES.get(fact, set()) for fact in facts))


def check(name: str, fact: str, before: Any, after: Callable[[], Any]) -> None:
    """`ConfigError` is as good as the same predictions; what is known must change them, or be refused."""
    try:
        changed = np.asarray(after())
    except ConfigError:
        return
    same = np.array_equal(np.asarray(before), changed)
    assert same == (fact not in known(name)), f"{name} {'ignores' if same else 'knows'} {fact or 'the answer'}"


@pytest.fixture(scope="module")
def quick() -> Any:
    """Few contexts and short searches: what is fitted may be coarse."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"TRIED": 32, "LEARNED": 64, "HELD_OUT": 64, "POOL": 64, "FOR_START": 64}.items():
            patch.setattr(gd_plus_plus, name, value)
        patch.setattr(gd_plus_plus, "TRAINING_STEPS", 20)
        patch.setattr(gd_plus_plus.fit_gd_plus_plus.__wrapped__, "__defaults__", (2,))
        patch.setattr(of_languages, "LEAST_TASKS", 256)
        patch.setattr(of_languages, "TASKS_A_WEIGHT", 1)
        patch.setattr(of_languages, "POINTS", 5)
        yield


_predictions = jax.jit(lambda predict, batch: predict(batch))


def predictions(predict: Any, batch: Batch) -> np.ndarray:
    """By one program for all batches, where JAX can compile the predictor."""
    return np.asarray(_predictions(predict, batch) if isinstance(predict, Partial) else predict(batch))


def contexts(seed: int = 1) -> Batch:
    batch = reference.random_batch(seed, size=6, pairs=4, dim=3)
    return jax.tree.map(lambda part: np.asarray(part, np.float32), batch)


def test_the_table_names_families_facts_and_functions() -> None:
    for name in BASELINES.built_in:
        baseline = BASELINES[name]
        assert {*baseline.knows} <= {*KNOWLEDGE}
        assert baseline.where or baseline.pairs
        for module in baseline.where:
            assert callable(function(name, module))
    assert all(any(fact in BASELINES[name].knows for name in BASELINES.built_in) for fact in KNOWLEDGE)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("name", OF_REGRESSION)
def test_a_baseline_of_regression_knows_what_it_says(name: str) -> None:
    config = replace(CONFIG, eval=NOISY) if BASELINES[name].compared == CORRUPTED else CONFIG
    batch = contexts()
    predict = made(name, config, find_gd(config))
    before = predictions(predict, batch)
    assert before.shape == (6,)
    assert np.isfinite(before).all()
    for fact, change in OF_A_BATCH.items():
        check(name, fact, before, lambda change=change: predictions(predict, change(batch)))
    for fact, differ in OF_A_CONFIG.items():
        other = differ(config)
        check(name, fact, before, lambda other=other: predictions(made(name, other, find_gd(other)), batch))


@pytest.mark.parametrize("name", [name for name in BASELINES.built_in if BASELINES[name].pairs])
def test_what_tells_clean_pairs_knows_what_it_says(name: str) -> None:
    config, batch, score = replace(CONFIG, eval=NOISY), contexts(), score_of_pairs(name)
    before = np.asarray(score(batch, config))
    assert before.shape == (6, 4)
    assert np.isfinite(before).all()
    facts = known(name) - {"query"}  # of a predictor; nobody tells pairs by the query
    for fact, change in OF_A_BATCH.items():
        assert np.array_equal(before, score(change(batch), config)) == (fact not in facts)
    for fact in ("noise", "tasks"):
        assert np.array_equal(before, score(batch, OF_A_CONFIG[fact](config))) == (fact not in facts)
    for fact in ("order", "training"):
        np.testing.assert_array_equal(score(batch, OF_A_CONFIG[fact](config)), before)


@pytest.mark.parametrize("name", [name for name in BASELINES.built_in if DIVERSITY in BASELINES[name].where])
def test_a_baseline_of_sequences_knows_what_it_says(name: str) -> None:
    """Prediction k knows pairs 1 to k - 1 and the next input: neither its label nor what follows."""
    config = DiversityConfig(data=PoolData(3, 5, "gaussian", noise_std=0.5, num_tasks=3), eval_tasks=6)
    batch, predict = pool_sequences(config), function(name, DIVERSITY)
    before = np.asarray(predict(batch, config))
    assert before.shape == (6, 5)
    assert np.isfinite(before).all()
    later = batch._replace(y=batch.y.at[:, 2].add(1.0), w=batch.w + 1)
    after = np.asarray(predict(later, config))
    np.testing.assert_array_equal(after[:, :3], before[:, :3])
    assert not np.array_equal(after[:, 3:], before[:, 3:])
    assert not np.array_equal(predict(batch._replace(x=1.1 * batch.x + 0.1), config), before)
    other = replace(config, data=replace(config.data, noise_std=1.0))
    assert np.array_equal(predict(batch, other), before) == ("tasks" not in known(name))
    pool = replace(config, data=replace(config.data, num_tasks=2))
    assert np.array_equal(predict(batch, pool), before) == ("pool" not in known(name))


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
def test_baselines_of_languages_know_what_they_say() -> None:
    data = LanguageData(pool_size=64, max_length=10, num_pairs=6)
    code = CodeConfig(dim=4)
    fits = [
        of_languages.Fits(each, code, 2, coded_pools(each, code).train)
        for each in (data, replace(data, languages=data.unseen_languages, unseen_languages=data.languages))
    ]
    batch = fits[0].tasks.draw(of_languages.Purpose.EVAL, 8)
    for name in (name for name in BASELINES.built_in if LANGUAGES in BASELINES[name].where):
        make, first = function(name, LANGUAGES), fits[0]
        predict = make(first)
        before = predictions(predict, batch)
        assert before.shape == (8,)
        assert np.isfinite(before).all()
        for fact, change in OF_A_BATCH.items():
            check(name, fact, before, lambda change=change, predict=predict: predictions(predict, change(batch)))
        if not {"clean step", "tasks", "languages"} & {*BASELINES[name].knows}:
            np.testing.assert_array_equal(predictions(make(fits[1]), batch), before)


def test_baselines_of_strings_know_what_they_say() -> None:
    belongs = np.array([[1, 1, 0, 0], [1, 0, 1, 0], [0, 1, 1, 0]], bool)
    strings, labels = np.array([[0, 1, 2], [1, 2, 3], [2, 0, 1]]), np.array([[1, 1], [-1, 1], [1, 1]])
    changes = {
        "labels": (belongs, strings, -labels),
        "query": (belongs, strings[:, [0, 1, 0]], labels),
        "inputs": (belongs, strings[:, [1, 0, 2]] * [1, 0, 1], labels),
        "languages": (~belongs, strings, labels),
    }
    for name in ("version_space", "any_language"):
        before = function(name)(belongs, strings, labels)
        assert before.shape == (3,)
        for fact, changed in changes.items():
            check(name, fact, before, lambda changed=changed, name=name: function(name)(*changed))


@pytest.mark.parametrize("name", BASELINES.built_in)
def test_no_plugin_takes_its_name(name: str, registered: Any) -> None:
    with pytest.raises(ConfigError, match=f"baseline '{name}' is built in and cannot be replaced"):
        registered(BASELINES, name, BASELINES[name])


# --- the names of earlier versions ---


def test_the_config_of_a_run_keeps_its_id_and_is_read_under_the_field_s_first_name() -> None:
    """Ids as of the version that had the field `opponents`."""
    named = RegressionConfig(baselines=("preconditioned_gd", "sparse_posterior"), step_size_tasks=8)
    assert config_id(named) == "d7312149652015f4"
    assert config_id(RegressionConfig(baselines=("preconditioned_gd",))) == "9f596cb49e68e5fc"
    values = preset("lsa1")
    set_values(values, {"opponents": "gaussian_posterior"})
    assert resolve(values).baselines == ("gaussian_posterior",)
    written = {"opponents": ["gaussian_posterior"]}
    assert todays_fields(written, RegressionConfig) == {"baselines": ["gaussian_posterior"]}
    assert plugins.opponent is plugins.baseline


def test_an_unknown_one_is_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match="baselines has 'sparse_posteriors', did you mean sparse_posterior\\?"):
        RegressionConfig(baselines=("sparse_posteriors",))
