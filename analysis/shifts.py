"""Evaluates a run, and the algorithms, on test tasks of other distributions.

python -m analysis.shifts --run DIR --shift num_pairs=5 --shift spectrum=given,eigenvalues=0.1:1 --shift weight_scale=2

A shift is one or more fields of the run's data, FIELD=VALUE, separated by commas; lists are separated by colons: the
range of the inputs (labels follow), the scale of the teacher, distractor labels, the number of pairs, the covariance of
inputs, tasks or queries, the noise (Zhang, Frei and Bartlett 2023, Sec. 4); in Python also inputs of another
distribution divided by their norm (von Oswald et al. 2023, App. A.5). Writes shifts.csv.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.tree_util import Partial

from icl_lab.analysis.command import Command
from icl_lab.analysis.loaded_run import ComparedRun, load_compared
from icl_lab.analysis.paired_losses import half_squared_errors
from icl_lab.baselines import preconditioned
from icl_lab.baselines.gradient_descent import Predictor, zero
from icl_lab.baselines.linear_mmse import bayes_penalty, primal_ridge, ridge
from icl_lab.baselines.registry import check_clean
from icl_lab.families.regression.config import RegressionConfig
from icl_lab.families.regression.task import GradientDescent, make_test_batches
from icl_lab.families.task import model_of, task_key
from icl_lab.lab import cli
from icl_lab.lab.configs.presets import parse
from icl_lab.lab.configs.run import fields_of, made_of
from icl_lab.src.batch import Batch
from icl_lab.src.checks import ConfigError, require
from icl_lab.src.data import sample_other_batch
from icl_lab.src.data_config import DataConfig
from icl_lab.src.prng import Purpose
from icl_lab.src.statistics import mean_and_error
from icl_lab.src.words import did_you_mean
from icl_lab.store import layout
from icl_lab.store.atomic import write_csv

# shift -> the data config with a value of it
SHIFTS: Mapping[str, Callable[[DataConfig, float], DataConfig]] = {
    "input_range": lambda data, value: replace(data, input_range=value * data.input_range),
    "weight_scale": lambda data, value: replace(data, weight_scale=value * data.weight_scale),
    "distractors": lambda data, value: replace(data, num_distractors=int(value)),
}
REPLACED = (0, 2, 4, 6, 8)  # labels, of von Oswald et al. 2023
FIELDS = {field.name: field for field in fields(DataConfig)}


def shifted_batches(config: RegressionConfig, shift: str, values: Sequence[float]) -> Sequence[Batch]:
    """A batch of test tasks for each value; "other_inputs" are exponential, normal or Laplace, times the value."""
    if shift == "other_inputs":
        key = task_key(config, Purpose.TEST_SET)
        return [_other(key, config.data, config.test_tasks, alpha=value) for value in values]
    return make_test_batches(config, [SHIFTS[shift](config.data, value) for value in values])


def shifted_losses(
    config: RegressionConfig, predictors: Mapping[str, Predictor], shift: str, values: Sequence[float]
) -> dict[str, np.ndarray]:
    """Half the squared errors [values, tasks] of each predictor: the same tasks for all of them."""
    losses = [half_squared_errors(predictors, batch) for batch in shifted_batches(config, shift, values)]
    return {name: np.stack([errors[name] for errors in losses]) for name in predictors}


def replaced_labels(
    config: RegressionConfig, predictors: Mapping[str, Predictor], counts: Sequence[int] = REPLACED
) -> dict[int, dict[str, np.ndarray]]:
    """count -> predictor -> half the squared errors [tasks] with so many labels of a context replaced by N(0, 1).

    Counts above the number of pairs are left out. Which labels, and by what, is the same for all predictors.
    """
    possible = [count for count in counts if count <= config.data.num_pairs]
    losses = shifted_losses(config, predictors, "distractors", possible)
    return {count: {name: losses[name][at] for name in predictors} for at, count in enumerate(possible)}


# --- any fields of the data ---


def model_on(loaded: ComparedRun, num_pairs: int, num_layers: int | None = None) -> Partial:
    """A run's transformer as a predictor on contexts of another length, and of recurrent layers at another depth.

    Linear attention is a sum over the pairs, so each update is multiplied by N / m: a mean over m pairs is what the
    theory has. `ConfigError` where that is not so, or where layers have untied weights.
    """
    config = loaded.config
    model, pairs = config.model, config.data.num_pairs
    if num_pairs != pairs:
        linear = all(model.kind(layer) == "linear" for layer in range(model.num_layers))
        plain = linear and model.pos_enc_size == 0 and model.mlp_width == 0 and not model.bias
        require(plain, "contexts of another length are for linear layers without positional encodings, biases or MLPs")
        model = replace(model, damping=model.damping * pairs / num_pairs)
    if num_layers is not None:
        require(
            model.recurrent,
            f"only recurrent layers can be run at another depth; these {model.num_layers} have weights of their own",
        )
        model = replace(model, num_layers=num_layers)
    shifted = replace(config, model=model, data=replace(config.data, num_pairs=num_pairs))
    return Partial(model_of(shifted).predict, loaded.params)


def predictors_on(loaded: ComparedRun, data: DataConfig) -> dict[str, Predictor]:
    """The transformer, gradient descent and the preconditioned step of the training distribution, on shifted contexts.

    The two steps are means over the pairs too. Ridge and zero know nothing of the training.
    """
    training_data, gd = loaded.config.data, loaded.gd
    step_size = gd.step_size * training_data.num_pairs / data.num_pairs
    predictors: dict[str, Predictor] = {
        "tf": model_on(loaded, data.num_pairs),
        "gd": GradientDescent(gd.steps, step_size, gd.source).predict,
    }
    try:
        check_clean(loaded.config)
        a = preconditioned.preconditioner(training_data)
        predictors["preconditioned_gd"] = Partial(preconditioned.predict, a=np.asarray(a, np.float32))
    except ConfigError:  # it is not defined there
        pass
    penalty = bayes_penalty(data)
    many = data.num_pairs > data.dim and penalty > 0  # where a Gram matrix of all pairs would fill the memory
    return predictors | {"ridge": partial(primal_ridge if many else ridge, penalty=penalty), "zero": zero}


def losses_on(loaded: ComparedRun, data: DataConfig) -> dict[str, np.ndarray]:
    """Half the squared errors [tasks] of `predictors_on` on test tasks of shifted data."""
    batch = make_test_batches(replace(loaded.config, data=data), [data])[0]  # whose config says if there is none
    return half_squared_errors(predictors_on(loaded, data), batch)


def rows_on(loaded: ComparedRun, name: str, data: DataConfig) -> list[dict[str, Any]]:
    """Rows of a shift: the loss of each predictor, and of the preconditioned step in closed form; else why not."""
    rows = []
    for who, errors in losses_on(loaded, data).items():
        mean, error = mean_and_error(errors)
        rows.append(
            {"shift": name, "predictor": who, "loss": mean, "loss_se": error, **_closed_form(loaded, who, data)}
        )
    return rows


def _closed_form(loaded: ComparedRun, who: str, data: DataConfig) -> dict[str, Any]:
    if who != "preconditioned_gd":
        return {"closed_form": None, "reason": ""}
    try:
        value = preconditioned.loss(preconditioned.preconditioner(loaded.config.data), data) + 0.5 * data.noise_std**2
    except ConfigError as reason:
        return {"closed_form": None, "reason": str(reason)}
    return {"closed_form": value, "reason": ""}


def write(loaded: ComparedRun, shifts: Mapping[str, DataConfig]) -> list[dict[str, Any]]:
    """Writes shifts.csv: rows of the run's own distribution, then of each shift."""
    rows = [row for name, data in {"none": loaded.config.data, **shifts}.items() for row in rows_on(loaded, name, data)]
    write_csv(loaded.run / layout.SHIFTS, rows)
    return rows


_other = partial(jax.jit, static_argnums=(1, 2))(sample_other_batch)


def add_flags(parser: cli.Parser) -> None:
    """The shifts."""
    text = "FIELD=VALUE of the run's data, several separated by commas; may be given again"
    parser.add_argument("--shift", action="append", default=[], metavar="SHIFT", help=text)


def check(flags: argparse.Namespace) -> None:
    """`ConfigError` for no shift, and for one that names no field or has no value of its type."""
    require(len(flags.shift) > 0, "--shift is missing; give at least one, such as --shift num_pairs=5")
    for text in flags.shift:
        changed_fields(text)


def changed_fields(text: str) -> dict[str, Any]:
    """The fields of a shift from its text; `ConfigError` for one that the data do not have."""
    values: dict[str, Any] = {}
    for part in text.split(","):
        name, equals, value = part.partition("=")
        require(bool(equals), f"the shift {part!r} is not FIELD=VALUE")
        if name not in FIELDS:
            raise ConfigError(f"the shift {part!r} names no field of the data{did_you_mean(name, FIELDS)}")
        require(name != "dim", "dim is the width of the model's tokens; no shift changes it")
        values[name] = parse(value.replace(":", ","), FIELDS[name].default, name)
    return values


def shifted(data: DataConfig, text: str) -> DataConfig:
    """The data with a shift's fields; `ConfigError` where no such distribution exists."""
    changed: DataConfig = made_of({**fields_of(data), **changed_fields(text)}, DataConfig)
    return changed


def measure(run: Path, flags: argparse.Namespace) -> list[dict[str, Any]]:
    """Evaluates a stored run."""
    loaded = load_compared(run)
    shifts: Mapping[str, DataConfig] = {text: shifted(loaded.config.data, text) for text in flags.shift}
    return write(loaded, shifts)


COMMAND = Command("shifts", "Evaluates a run on test tasks of shifted distributions.", measure, add_flags, check)

if __name__ == "__main__":
    COMMAND.launch()
