"""A registered baseline by its name, as a function of arrays, usable like a model or to compare with one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from icl_lab.analysis.run import Run
from icl_lab.baselines import registry
from icl_lab.families.diversity.config import DiversityConfig
from icl_lab.families.languages.config import LanguagesConfig
from icl_lab.families.own_arrays import batch_from_arrays
from icl_lab.families.regression.baselines import descent_for, made
from icl_lab.families.regression.config import RegressionConfig
from icl_lab.lab.configs.presets import preset, resolve, set_values
from icl_lab.lab.guest import as_guest
from icl_lab.src.batch import Batch
from icl_lab.src.checks import require
from icl_lab.src.registries import BASELINES, DIVERSITY, LANGUAGES, NAMED, REGRESSION
from icl_lab.src.words import did_you_mean

DEFAULT = {REGRESSION: "lsa1", DIVERSITY: "tiny"}  # whose config says what nobody else does


def baseline(name: str, run: Run | None = None) -> Callable[..., np.ndarray]:
    """f(x, y, x_query) -> predictions [B] of a baseline, told the distribution of contexts that the run's config says.

    Without a run the contexts are taken for the default ones of the arrays' sizes: inputs U(-1/2, 1/2), tasks N(0, I),
    labels without noise, or with variance D/32 for predictors of sequences; algorithms take one step. Predictors of
    sequences return [B, K] without x_query; the score `loo_gd` returns how clean each pair is, [B, N]. f takes a
    `Batch` too. `ConfigError` for a name that is not registered, and where the baseline is not defined.
    """
    require(name in BASELINES, f"no baseline is called {name!r}{did_you_mean(name, BASELINES)}")
    place = _place(name, None if run is None else run.config)

    def predict(x: ArrayLike | Batch, y: ArrayLike | None = None, x_query: ArrayLike | None = None) -> np.ndarray:
        with as_guest():
            batch = x if isinstance(x, Batch) else _batch(x, y, x_query, place == DIVERSITY)
            values = np.asarray(_predictions(name, place, run, batch), np.float64)
        return values[:, -1] if place == DIVERSITY and x_query is not None else values

    predict.__name__ = name
    return predict


def _place(name: str, config: Any) -> str:
    """The family whose baseline of this name is meant: the run's if it has one, else the first; of any run, its own."""
    where = BASELINES[name].where
    own = {RegressionConfig: REGRESSION, DiversityConfig: DIVERSITY, LanguagesConfig: LANGUAGES}.get(type(config), "")
    is_any = BASELINES[name].compared == NAMED or not where
    of_strings = where == ("baselines.classifiers",) and not is_any
    require(not of_strings, f"{name} knows the strings of languages, which arrays do not have; see analysis.languages")
    if own in where or is_any:
        return REGRESSION if is_any else own
    require(config is None, f"{name} is not a baseline of runs of the family {getattr(config, 'family', '')}")
    require(where != (LANGUAGES,), f"{name} is fitted on languages, so it needs a run on them: baseline({name!r}, run)")
    return where[0]


def _batch(x: ArrayLike, y: ArrayLike | None, x_query: ArrayLike | None, sequences: bool) -> Batch:
    require(y is not None, "a baseline takes x, y and x_query, or a batch")
    return batch_from_arrays(x, y if y is not None else (), x_query, sequences=sequences)


def _predictions(name: str, place: str, run: Run | None, batch: Batch) -> Any:
    config: Any = _default(place, batch) if run is None else run.config
    if not BASELINES[name].where and BASELINES[name].pairs:
        return registry.score_of_pairs(name)(batch, config)
    if place == DIVERSITY:
        return registry.function(name, DIVERSITY)(batch, config)
    if place == LANGUAGES:
        return _of_languages(config, run)[name](batch)
    return made(name, config, descent_for(name, config))(batch)


def _default(place: str, batch: Batch) -> Any:
    values = preset(DEFAULT[place])
    set_values(values, {"dim": batch.x.shape[2], "num_pairs": batch.x.shape[1]})
    return resolve(values)


def _of_languages(config: LanguagesConfig, run: Run | None) -> Any:
    from icl_lab.families.languages.baselines import fitted_baselines
    from icl_lab.families.languages.task import codes_of
    from icl_lab.families.shared_arrays import shared_with

    shared = {} if run is None else shared_with(config, run.path)
    return fitted_baselines(config, codes_of(config, shared).train).predictors
