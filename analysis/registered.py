"""The registered baselines on contexts that a user brings: which are defined there, and what they predict.

What a baseline has to know comes from the config of the run that is evaluated, which says what it was trained on, or is
estimated; of what nobody says a baseline is not defined.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from icl_lab.analysis.queries import Queries
from icl_lab.analysis.run import Run
from icl_lab.baselines import estimated
from icl_lab.baselines.step_size_search import search_step_size
from icl_lab.families.diversity.config import DiversityConfig
from icl_lab.families.own_arrays import batch_from_arrays
from icl_lab.families.own_batches import own_set
from icl_lab.families.regression.baselines import descent_for, fitted_gd, made, names_of
from icl_lab.families.regression.config import RegressionConfig, gd_steps
from icl_lab.families.regression.task import GradientDescent
from icl_lab.src.batch import Batch
from icl_lab.src.checks import UserError
from icl_lab.src.config import ModelConfig
from icl_lab.src.data_config import DataConfig
from icl_lab.src.registries import ALGORITHM, ALWAYS, BASELINES, CORRUPTED, KNOWLEDGE, NAMED_BASELINES, PAIRS

FITTED = "gd_fitted"  # gradient descent at a step size that is fitted on training contexts
UNTRAINED = "no training contexts are given, on which its step size would be fitted"
SLOW = "its rates take minutes to fit at this depth; analysis.over_training does"
MOST_RATES = 3  # steps with rates of their own that are fitted in seconds


def registered(
    run: Run | None, queries: Queries, training: Queries | None, estimate: bool, steps: int | None
) -> tuple[dict[str, Any], dict[str, np.ndarray | str]]:
    """Facts, and the predictions of each registered baseline of pairs, or why it has none."""
    config = None if run is None else run.config
    fitted_on, untrained = _training(config, training)
    pairs = None if fitted_on is None else (np.asarray(fitted_on.x), np.asarray(fitted_on.y))
    pairs = pairs if training is None else (training.x, training.y)
    told: list[RegressionConfig] = []
    facts: dict[str, Any] = {"steps": steps or 1}
    if isinstance(config, RegressionConfig):
        told.append(config)
        facts = _facts(config)
    count = int(facts["steps"])
    if estimate:
        own, facts["estimated"] = _estimated(queries, pairs, count)
        told.append(own)
    found: dict[str, np.ndarray | str] = {FITTED: untrained}
    if fitted_on is not None:
        facts["fitted_step_size"] = search_step_size(fitted_on, count)
        found[FITTED] = _values(GradientDescent(count, facts["fitted_step_size"], "fitted").predict, queries.batch)
    for name in (*names_of(ALWAYS, ALGORITHM, CORRUPTED), *NAMED_BASELINES):
        found[name] = _of_any(name, told, queries, count)
    return facts, found | _of_sequences(run, queries)


def _training(config: Any, training: Queries | None) -> tuple[Batch | None, str]:
    """The contexts on which a step size is fitted, those of the run if none are given; or why there are none."""
    if training is not None:
        return training.batch, ""
    if not (isinstance(config, RegressionConfig) and config.data.file):
        return None, UNTRAINED
    try:
        return own_set(config, "train", config.step_size_tasks), ""
    except UserError as reason:  # the file has gone, or changed
        return None, str(reason)


def _facts(config: RegressionConfig) -> dict[str, Any]:
    """The steps of a run's gradient descent, their size and where it comes from; or why it has none."""
    try:
        descent = fitted_gd(config)
    except UserError as reason:
        return {"steps": gd_steps(config.model), "step_size": None, "step_size_from": str(reason)}
    return {"steps": descent.steps, "step_size": float(descent.step_size), "step_size_from": descent.source}


def _estimated(
    queries: Queries, training: tuple[np.ndarray, np.ndarray] | None, steps: int
) -> tuple[RegressionConfig, dict[str, Any]]:
    """A config with estimated moments: of the pairs of the training contexts, or without them of these."""
    x, y = (queries.x, queries.y) if training is None else training
    of = estimated.estimate(x, y)
    data = DataConfig(
        dim=x.shape[2],
        num_pairs=queries.batch.x.shape[1],
        input_distribution="gaussian",
        input_range=of.input_scale,
        weight_scale=of.weight_scale,
        noise_std=of.noise_std,
    )
    source = "the pairs of these contexts" if training is None else "the training contexts"
    return replace(RegressionConfig(), data=data, model=ModelConfig(num_layers=steps)), {**of._asdict(), "from": source}


def _of_any(name: str, told: Sequence[RegressionConfig], queries: Queries, steps: int) -> np.ndarray | str:
    """The predictions of a baseline with the first facts that define it, or the first reason."""
    needed = [what for what in BASELINES[name].knows if what not in PAIRS]
    reasons = [f"it needs to know {KNOWLEDGE[needed[0]]}, which is not given"] if needed else []
    if not needed and not told:
        _, pairs, dim = queries.batch.x.shape
        nothing = RegressionConfig(data=DataConfig(dim, pairs), model=ModelConfig(num_layers=steps))
        return _made(name, nothing, queries)
    for config in told:
        values = _made(name, config, queries)
        if not isinstance(values, str):
            return values
        reasons.insert(0, values)
    return reasons[0]


def _made(name: str, config: RegressionConfig, queries: Queries) -> np.ndarray | str:
    if name.startswith("gd_plus_plus") and gd_steps(config.model) > MOST_RATES and not config.model.recurrent:
        return SLOW
    try:
        predict = made(name, config, descent_for(name, config))
        if queries.x_query is None and BASELINES.owner(name):  # a plugin's need not be a sum over pairs
            values = np.stack([_values(predict, batch) for batch in queries.cut()], axis=1).reshape(-1)
        else:
            values = _values(predict, queries.batch)
    except UserError as reason:
        return str(reason)
    return values if np.isfinite(values).all() else "float32 does not hold its predictions on these contexts"


def _values(predict: Callable[[Batch], Any], batch: Batch) -> np.ndarray:
    return np.asarray(predict(batch), np.float64)


def _of_sequences(run: Run | None, queries: Queries) -> dict[str, np.ndarray | str]:
    """The exact predictors of a decoder's tasks, which know its pool and its noise."""
    if run is None or not isinstance(run.config, DiversityConfig) or queries.x_query is not None:
        return {}
    from icl_lab.families.diversity.task import references

    predictions, undefined = references(run.config, batch_from_arrays(queries.x, queries.y, sequences=True))
    return {name: values[:, 1:].reshape(-1) for name, values in predictions.items()} | undefined
