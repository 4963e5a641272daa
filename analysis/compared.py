"""A run of any family on its test tasks, beside the baselines of its family and those of plugins.

A function for each family gives them; a plugin's family is compared with the plugins' baselines on its evaluation
batch. Where there is one query a task, or several, a baseline is asked for each of them; of sequences it predicts every
position.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.tree_util import Partial

from icl_lab.analysis.loaded_run import LoadedRun, baselines_of, load_run, with_descent
from icl_lab.analysis.registered import MOST_RATES, SLOW
from icl_lab.baselines import gradient_descent, registry
from icl_lab.families.diversity import task as diversity
from icl_lab.families.diversity.config import DiversityConfig
from icl_lab.families.languages import task as languages
from icl_lab.families.languages.baselines import OF_SEVERAL, fitted_baselines
from icl_lab.families.languages.config import LanguagesConfig
from icl_lab.families.languages.outputs import IN_WORDS
from icl_lab.families.layerwise.config import LayerwiseConfig
from icl_lab.families.regression.baselines import descent_for, made_or_reason, names_of
from icl_lab.families.regression.config import RegressionConfig
from icl_lab.families.regression.task import make_test_batch
from icl_lab.families.shared_arrays import shared_with
from icl_lab.families.sine.config import SineConfig
from icl_lab.families.sine.task import make_test_batch as make_test_sines
from icl_lab.families.task import sampled
from icl_lab.src.batch import Batch
from icl_lab.src.checks import require
from icl_lab.src.config import ModelConfig
from icl_lab.src.data_config import DataConfig, LinearData
from icl_lab.src.prng import Purpose
from icl_lab.src.queries import sample_batch
from icl_lab.src.registries import ALGORITHM, ALWAYS, BASELINES, LANGUAGES, NAMED_BASELINES

Predictors = dict[str, Partial | str]
ZERO = "zero"
HALF = 0.5  # of the squared error: the loss of all families but sequences


class Compared(NamedTuple):
    """Test tasks and predictors on them.

    batch: the tasks; targets [B], or [B, Q] of several queries or positions, float64. predictors: by name, batch in,
    predictions of the targets' shape out, or why they are not defined. unit: of the loss, unit * (prediction -
    target)^2. sequences: whether all positions are predicted, of pairs without a query.
    """

    batch: Any
    targets: np.ndarray
    predictors: Predictors
    unit: float = HALF
    sequences: bool = False


def compared(loaded: LoadedRun, names: Iterable[str] = ()) -> Compared:
    """A run's test tasks and what it is compared with there: the baselines of these names, or all."""
    wanted = tuple(names)
    require(
        has_queries(loaded.config), f"{loaded.run} is a run of the family {loaded.config.family}, which has no queries"
    )
    return _FAMILIES.get(type(loaded.config), _of_plugin)(loaded, wanted)


def load(run: Path) -> LoadedRun:
    """`load_run`, of linear regression with its gradient descent, which is fitted once."""
    loaded = load_run(run)
    return with_descent(loaded) if isinstance(loaded.config, RegressionConfig) else loaded


def has_queries(config: Any) -> bool:
    """Whether runs of this config predict labels of queries, which baselines predict too."""
    return "y_query" in config.batch_shapes()


def why_not(config: Any) -> dict[str, str]:
    """The names of what runs of this config are compared with; "" or, where it is known already, why it is undefined.

    Nothing is fitted, and no run is needed.
    """
    return _NAMES.get(type(config), _names_of_plugins)(config)


# --- families ---


def _of_regression(loaded: LoadedRun, names: tuple[str, ...]) -> Compared:
    batch = make_test_batch(loaded.config)
    return Compared(batch, np.asarray(batch.y_query, np.float64), baselines_of(with_descent(loaded), names))


def _of_layerwise(loaded: LoadedRun, names: tuple[str, ...]) -> Compared:
    """Gradient descent has the best step size on separate tasks, as many steps as layers; queries see all pairs."""
    config, seen = loaded.config, as_regression(loaded.config)
    batch: Batch = sampled(sample_batch_of, config, Purpose.TEST_SET, config.test_tasks)
    one = jax.tree.map(np.asarray, batch)._replace(x_query=batch.x_query[:, 0], y_query=batch.y_query[:, 0])
    predictors: Predictors = {}
    for name in names or [name for name, reason in _names_of_layerwise(config).items() if not reason]:
        predict = made_or_reason(name, seen, descent_for(name, seen), one)
        predictors[name] = predict if isinstance(predict, str) else Partial(_each_query, predict)
    reasons: Predictors = {name: reason for name, reason in _names_of_layerwise(config).items() if reason and not names}
    return Compared(batch, np.asarray(batch.y_query, np.float64), {**predictors, **reasons})


def sample_batch_of(key: Array, config: LayerwiseConfig, count: int) -> Batch:
    """Contexts of several queries, as those of a run."""
    return sample_batch(key, config.data, count)


def as_regression(config: LayerwiseConfig) -> RegressionConfig:
    """The run of linear regression whose tasks and depth are these: baselines are made of it, a plugin's too."""
    fields = {each.name: getattr(config.data, each.name) for each in dataclasses.fields(LinearData)}
    return dataclasses.replace(
        RegressionConfig(),
        data=DataConfig(**fields),
        model=ModelConfig(num_layers=config.model.num_layers),
        data_seed=config.data_seed,
        test_tasks=config.test_tasks,
    )


def _names_of_layerwise(config: LayerwiseConfig) -> dict[str, str]:
    slow = config.model.num_layers > MOST_RATES
    return {
        name: SLOW if slow and name.startswith("gd_plus_plus") else ""
        for name in (*names_of(ALWAYS, ALGORITHM), *_of_plugins())
    }


def _each_query(predict: Partial, batch: Batch) -> Array:
    """Predictions [B, Q] of a predictor of one query a task."""

    def of_query(x_query: Array, y_query: Array) -> Array:
        return jnp.asarray(predict(batch._replace(x_query=x_query, y_query=y_query)))

    predictions: Array = jax.vmap(of_query, in_axes=1, out_axes=1)(
        jnp.asarray(batch.x_query), jnp.asarray(batch.y_query)
    )
    return predictions


def _of_sines(loaded: LoadedRun, names: tuple[str, ...]) -> Compared:
    batch = make_test_sines(loaded.config)
    predictors = _chosen({ZERO: Partial(gradient_descent.zero), **plugins_baselines(loaded.config)}, names)
    return Compared(batch, np.asarray(batch.y_query, np.float64), predictors)


def _of_diversity(loaded: LoadedRun, names: tuple[str, ...]) -> Compared:
    """On tasks of the pool, with the family's loss: the mean squared error of noiseless labels over D."""
    config = loaded.config
    batch = diversity.sequences_of_test(config)["id"]
    eval_set = diversity.make_eval_set(config, batch)
    exact: Predictors = {name: Partial(predict) for name, predict in diversity.exact_predictors(config).items()}
    predictors: Predictors = {**exact, **eval_set.undefined, ZERO: Partial(_zeros, np.float32(config.data.y_mean))}
    chosen = _chosen({**predictors, **plugins_baselines(config)}, names)
    return Compared(batch, eval_set.targets, chosen, 1 / config.data.dim, sequences=True)


def _names_of_diversity(config: DiversityConfig) -> dict[str, str]:
    few = jax.tree.map(lambda part: part[:2], diversity.sequences_of_test(dataclasses.replace(config, test_tasks=2)))
    _, undefined = diversity.references(config, few["id"])
    exact = dict.fromkeys(diversity.exact_predictors(config), "")
    return {**exact, **undefined, ZERO: "", **dict.fromkeys(_of_plugins(), "")}


def _zeros(mean: Array, batch: Batch) -> Array:
    return jnp.full(batch.y.shape, mean)


def _of_languages(loaded: LoadedRun, names: tuple[str, ...]) -> Compared:
    """On unseen strings of the trained languages."""
    config = loaded.config
    codes = languages.codes_of(config, shared_with(config, loaded.run))
    batch = languages.make_test_sets(config, codes).strings.batch
    predictors = _chosen({**fitted_baselines(config, codes.train).predictors, **plugins_baselines(config)}, names)
    return Compared(batch, np.asarray(batch.y_query, np.float64), predictors)


def _names_of_languages(config: LanguagesConfig) -> dict[str, str]:
    fitted = [name for name in IN_WORDS if LANGUAGES in BASELINES[name].where]
    several = config.model.num_layers > 1
    return dict.fromkeys((*(name for name in fitted if several or name not in OF_SEVERAL), *_of_plugins()), "")


# --- plugins ---


def _of_plugin(loaded: LoadedRun, names: tuple[str, ...]) -> Compared:
    """A plugin's family, on its evaluation batch."""
    batch = loaded.batch
    return Compared(batch, np.asarray(batch.y_query, np.float64), _chosen(plugins_baselines(loaded.config), names))


def _of_plugins() -> tuple[str, ...]:
    """The baselines that plugins have registered; built-in ones that a config names are of linear regression."""
    return tuple(name for name in NAMED_BASELINES if BASELINES[name].predict is not None)


def plugins_baselines(config: Any) -> dict[str, Partial]:
    """The plugins' baselines as predictors on batches of a config's runs."""
    return {name: Partial(partial(registry.function(name), config=config)) for name in _of_plugins()}


def _names_of_plugins(config: Any) -> dict[str, str]:
    return dict.fromkeys(_of_plugins(), "") if has_queries(config) else {}


def _chosen(predictors: Mapping[str, Partial | str], names: tuple[str, ...]) -> Predictors:
    """Those of these names, or all; `ConfigError` for one that is not among them."""
    for name in names:
        require(name in predictors, f"{name} is not one of the predictors that these runs are compared with")
    return {name: predictors[name] for name in names or predictors}


_FAMILIES: dict[type, Callable[[LoadedRun, tuple[str, ...]], Compared]] = {
    RegressionConfig: _of_regression,
    LayerwiseConfig: _of_layerwise,
    SineConfig: _of_sines,
    DiversityConfig: _of_diversity,
    LanguagesConfig: _of_languages,
}
_NAMES: dict[type, Callable[[Any], dict[str, str]]] = {
    RegressionConfig: lambda config: dict.fromkeys((*names_of(ALWAYS, ALGORITHM), *NAMED_BASELINES), ""),
    LayerwiseConfig: _names_of_layerwise,
    SineConfig: lambda config: dict.fromkeys((ZERO, *_of_plugins()), ""),
    DiversityConfig: _names_of_diversity,
    LanguagesConfig: _names_of_languages,
}
