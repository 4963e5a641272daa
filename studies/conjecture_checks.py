"""What must hold of a conjecture before anything is trained for it: its algorithm, and the baselines of plugins."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from icl_lab.analysis.compared import as_regression, has_queries, plugins_baselines, why_not
from icl_lab.analysis.loaded_run import ComparedRun, baselines_of
from icl_lab.families.layerwise.config import LayerwiseConfig
from icl_lab.families.regression.config import RegressionConfig, gd_steps
from icl_lab.families.regression.task import GradientDescent, make_model, make_test_batch
from icl_lab.lab.plugin_files import plugin_errors
from icl_lab.lab.registries import Conjecture
from icl_lab.src.batch import Batch
from icl_lab.src.checks import require
from icl_lab.src.registries import NAMED_BASELINES
from icl_lab.src.words import did_you_mean


def check(conjecture: Conjecture, config: Any, file: Path) -> None:
    """`ConfigError` if the algorithm is unknown or not defined for these runs; calls plugins' baselines, without data.

    Whether those are defined that a family fits, or makes of a run that is required, its runs say.
    """
    name, model = conjecture.algorithm, conjecture.model
    if not has_queries(config):
        require(not name, f"{model} predicts no labels of queries; leave algorithm out, and state only a measure")
        return
    if name:
        known = why_not(config)
        near = did_you_mean(name, known) or f"; the known ones are {', '.join(known)}"
        require(name in known, f"algorithm is {name!r}, which runs of {model} are not compared with{near}")
        require(not known[name], f"{name!r} is not defined for these runs: {known[name]}")
    if isinstance(config, RegressionConfig | LayerwiseConfig):
        _check_regression(name, config if isinstance(config, RegressionConfig) else as_regression(config), file)
    else:
        _check_shapes(config, file)


def _check_regression(name: str, config: RegressionConfig, file: Path) -> None:
    import jax

    with plugin_errors(file):
        batch = jax.eval_shape(partial(make_test_batch, config))
    descent = GradientDescent(gd_steps(config.model), 1.0, "given")
    run = ComparedRun(Path(), config, make_model(config), None, batch, descent)
    for baseline in NAMED_BASELINES:
        with plugin_errors(file):
            predict = baselines_of(run, (baseline,))[baseline]
            shape = None if isinstance(predict, str) else jax.eval_shape(predict, batch).shape
        right = shape in (None, batch.y_query.shape)
        require(right, f"{baseline!r} gives predictions of shape {shape}; it must give one for each task, [B]")
    defined = baselines_of(run, (name,))[name] if name else ""
    require(not name or not isinstance(defined, str), f"{name!r} is not defined for these runs: {defined}")


def _check_shapes(config: Any, file: Path) -> None:
    """`ConfigError` for a plugin's baseline whose predictions have not the shape of the labels of these batches."""
    import jax

    shapes = config.batch_shapes()
    fields: dict[str, Any] = {name: jax.ShapeDtypeStruct(shape, "float32") for name, shape in shapes.items()}
    batch = Batch(**fields)
    for name, predict in plugins_baselines(config).items():
        with plugin_errors(file):
            shape = jax.eval_shape(predict, batch).shape
        right = shape == batch.y_query.shape
        require(right, f"{name!r} gives predictions of shape {shape}; it must give {batch.y_query.shape}")
