"""Evaluates baselines that know how a run's pairs are corrupted, ordered or placed.

python -m analysis.comparators --run DIR

All see a context's pairs and none sees which were hit; `src.registries.BASELINES` says what each knows. Writes
comparators.json.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from icl_lab.analysis.command import Command
from icl_lab.analysis.loaded_run import ComparedRun, load_compared
from icl_lab.families.regression.baselines import Predictor, made, names_of, tuned_gd
from icl_lab.families.regression.config import RegressionConfig
from icl_lab.families.regression.task import GradientDescent, make_test_batch
from icl_lab.src.batch import Batch
from icl_lab.src.checks import ConfigError, same_shape
from icl_lab.src.config import ContextConfig, ModelConfig, TrainConfig
from icl_lab.src.registries import BASELINES, CORRUPTED
from icl_lab.src.statistics import mean_and_error
from icl_lab.store import layout
from icl_lab.store.atomic import write_json


def half_errors(predictors: Mapping[str, Predictor], batch: Batch) -> dict[str, np.ndarray]:
    """Half the squared error [B] of each predictor, float64, all on the same tasks: compare them paired."""
    y_query = np.asarray(batch.y_query, np.float64)
    predictions = {name: np.asarray(predict(batch), np.float64) for name, predict in predictors.items()}
    for predicted in predictions.values():
        same_shape(predictions=predicted, y_query=y_query)
    return {name: 0.5 * (predicted - y_query) ** 2 for name, predicted in predictions.items()}


def write(loaded: ComparedRun) -> dict[str, Any]:
    """Writes comparators.json: the loss of each baseline on the test tasks, with its standard error.

    Where one is not defined the file says why, and has null in its place.
    """
    evaluated = replace(
        loaded.config,
        name=RegressionConfig.name,
        init_seed=0,
        model=ModelConfig(num_layers=loaded.gd.steps),
        training=TrainConfig(),
        base=ContextConfig(),
    )
    values = _losses(evaluated, loaded.gd)
    write_json(loaded.run / layout.COMPARATORS, values)
    return values


def _losses(config: RegressionConfig, gd: GradientDescent) -> dict[str, Any]:
    untrained = replace(config, train=ContextConfig())
    configs = {name: config if "training" in BASELINES[name].knows else untrained for name in names_of(CORRUPTED)}
    losses = {name: dict(_loss(name, known_config, gd)) for name, known_config in configs.items()}
    return {"tasks": config.test_tasks, "tuned_step_size": _tuned_step_size(untrained), **losses}


@lru_cache(maxsize=256)  # the runs of a sweep have evaluations in common, also those of several models
def _loss(name: str, config: RegressionConfig, gd: GradientDescent) -> Mapping[str, Any]:
    batch = make_test_batch(config)
    try:
        loss, error = mean_and_error(half_errors({name: made(name, config, gd)}, batch)[name])
    except ConfigError as reason:
        return {"loss": None, "loss_se": None, "reason": str(reason)}
    return {"loss": loss, "loss_se": error}


@lru_cache(maxsize=64)
def _tuned_step_size(config: RegressionConfig) -> float:
    return float(tuned_gd(config).step_size)


def measure(run: Path, flags: argparse.Namespace) -> dict[str, Any]:
    """The loss of each such baseline of a stored run, or why it has none."""
    values = write(load_compared(run))
    words = {name: _in_words(part) for name, part in values.items() if isinstance(part, Mapping)}
    return {name: value for name, value in values.items() if name not in words} | words


def _in_words(part: Mapping[str, Any]) -> str:
    if "reason" in part:
        return f"not defined: {part['reason']}"
    return f"loss {part['loss']:.4g} ± {part['loss_se']:.2g}"


COMMAND = Command(
    "comparators",
    "Evaluates baselines that know how pairs are corrupted: a tuned step, the best linear predictor, Bayes over masks.",
    measure,
)


if __name__ == "__main__":
    COMMAND.launch()
