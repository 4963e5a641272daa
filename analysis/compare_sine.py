"""Compares a transformer with its control, one step of gradient descent, on the same sines.

python -m analysis.compare_sine RUN_TF RUN_CONTROL

Of one run: its losses before and after the context, and its functions for one fixed sine. Of both: how alike they are.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from icl_lab.analysis.loaded_run import LoadedRun, load_run
from icl_lab.analysis.paired_losses import half_squared_errors
from icl_lab.baselines import comparison
from icl_lab.families.sine.task import both_read_outs, make_test_batch
from icl_lab.lab import cli, compile_cache
from icl_lab.lab.environment import check_devices
from icl_lab.plots.sines import draw_comparison
from icl_lab.src import loss_conventions
from icl_lab.src.batch import Batch
from icl_lab.src.data_config import SineData
from icl_lab.src.inputs import sample_inputs
from icl_lab.src.losses import half_mse
from icl_lab.src.model import Model, Params
from icl_lab.src.prng import key as make_key
from icl_lab.src.sine import sines
from icl_lab.src.statistics import mean_and_error, ratio_and_error, with_error
from icl_lab.store import layout
from icl_lab.store.atomic import write_csv, write_json
from icl_lab.store.lock import locked
from icl_lab.store.outputs import in_path
from icl_lab.store.readers import StoreError
from icl_lab.store.rundir import read_config

AMPLITUDE, PHASE = 0.4, np.pi / 4  # of the sine whose functions are shown
CONTEXT_SEED = 0  # of its context, the same for all runs
QUERIES = 100
COLUMNS = ("x", "target", "before", "after")


def fixed_sine(data: SineData) -> Batch:
    """One sine and one context, asked at `QUERIES` inputs over the whole range: a batch of as many tasks."""
    half = data.input_range / 2
    context = sample_inputs(make_key(CONTEXT_SEED), data, (1, data.num_pairs, 1))
    x = jnp.broadcast_to(context, (QUERIES, data.num_pairs, 1))
    w = jnp.broadcast_to(jnp.array([[AMPLITUDE, PHASE]]), (QUERIES, 2))
    x_query = jnp.linspace(-half, half, QUERIES)[:, None]
    return Batch(x, sines(x, w), x_query, sines(x_query[:, None], w)[:, 0], w)


def functions(loaded: LoadedRun) -> dict[str, np.ndarray]:
    """The fixed sine's inputs and targets, and the read-outs there before and after its context, each [QUERIES]."""
    batch = fixed_sine(loaded.config.data)
    before, after = both_read_outs(loaded.model, loaded.params, batch)
    arrays = (batch.x_query[:, 0], batch.y_query, before, after)
    return {name: np.asarray(array) for name, array in zip(COLUMNS, arrays, strict=True)}


def facts(data: SineData) -> dict[str, Any]:
    """The fixed sine and its context, in numbers."""
    batch = fixed_sine(data)
    context = {"context_x": np.asarray(batch.x[0, :, 0]).tolist(), "context_y": np.asarray(batch.y[0]).tolist()}
    return {"amplitude": AMPLITUDE, "phase": PHASE, **context}


def write_functions(loaded: LoadedRun) -> dict[str, float]:
    """Writes sine_functions.csv and .json, and gives the losses of the two functions on the grid."""
    columns = functions(loaded)
    on_grid = {f"{name}_loss": float(half_mse(columns[name], columns["target"])) for name in ("before", "after")}
    write_csv(loaded.run / layout.SINE_FUNCTIONS, rows(columns))
    about = facts(loaded.config.data) | on_grid | {"loss_convention": loss_conventions.LOSS_AND_MSE}
    write_json(loaded.run / layout.SINE_FUNCTIONS_FACTS, about)
    return on_grid


def rows(columns: dict[str, np.ndarray]) -> list[dict[str, float]]:
    """Columns as the rows of a table."""
    return [dict(zip(columns, map(float, values), strict=True)) for values in zip(*columns.values(), strict=True)]


def write(tf: LoadedRun, control: LoadedRun) -> dict[str, Any]:
    """Writes sine_comparison.json and .csv, and draws them, in the transformer's run.

    `StoreError` unless they are a transformer and a control of the same distribution of sines.
    """
    for loaded, wanted in ((tf, False), (control, True)):
        if (loaded.of_family("sine").config.model.step_size > 0) != wanted:
            raise StoreError(f"{loaded.run} is {'no' if wanted else 'a'} control; the transformer's run comes first")
    if tf.config.data != control.config.data:
        raise StoreError(f"{tf.run} and {control.run} were trained on different distributions of sines")
    values = compare(tf, control)
    write_csv(tf.run / layout.SINE_COMPARISON_FUNCTIONS, rows(_functions(tf, control)))
    about = {"run": tf.run.name, "control": control.run.name, **facts(tf.config.data)}
    write_json(tf.run / layout.SINE_COMPARISON, values | about | {"loss_convention": loss_conventions.LOSS_AND_MSE})
    draw_comparison(tf.run, control.run.name)
    return values


def compare(tf: LoadedRun, control: LoadedRun) -> dict[str, Any]:
    """Losses with standard errors on the transformer's test tasks, paired, and how alike the two predict.

    preds_diff, model_diff and model_cos are those of `baselines.comparison`. A sensitivity to an input of one
    dimension is a slope, so model_cos is the share of equal signs less that of opposite ones.
    """
    batch = make_test_batch(tf.config)
    errors = half_squared_errors({"tf": tf.predict, "control": control.predict}, batch)
    result: dict[str, Any] = {"tasks": tf.config.test_tasks}
    for name, values in errors.items():
        result |= with_error(f"{name}_loss", mean_and_error(values))
    result |= with_error("loss_ratio", ratio_and_error(errors["tf"], errors["control"]))
    result |= with_error("loss_difference", mean_and_error(errors["tf"] - errors["control"]))
    alike = _alike(tf.model, control.model, tf.params, control.params, batch)
    return result | {name: float(alike[name]) for name in ("preds_diff", "l2_pred_diff", "model_diff", "model_cos")}


@partial(jax.jit, static_argnums=(0, 1))
def _alike(tf: Model, control: Model, tf_params: Params, control_params: Params, batch: Batch) -> dict[str, Array]:
    return comparison.compare(partial(tf.predict, tf_params), partial(control.predict, control_params), batch)


def _functions(tf: LoadedRun, control: LoadedRun) -> dict[str, np.ndarray]:
    """The functions of both on the fixed sine, in columns."""
    own, other = functions(tf), functions(control)
    shared = {name: own[name] for name in ("x", "target")}
    of_each = {"tf": own, "control": other}
    return shared | {f"{who}_{name}": columns[name] for who, columns in of_each.items() for name in ("before", "after")}


def parser() -> cli.Parser:
    """The arguments."""
    built = cli.Parser("analysis.compare_sine", "Compares a transformer with its control, both trained on sines.")
    built.add_argument("run", type=in_path, help="the transformer's run directory, where the comparison is written")
    built.add_argument("control", type=in_path, help="the control's run directory")
    return built


def measure(run: Path, control: Path) -> dict[str, Any]:
    """Compares two finished runs, and writes the comparison into the transformer's."""
    return write(load_run(run), load_run(control))


def main(argv: list[str]) -> None:
    """Compares, and prints the comparison."""
    flags = parser().parse(argv)
    for run in (flags.run, flags.control):
        read_config(run)
    check_devices()
    compile_cache.enable()
    with locked(flags.run):
        for name, value in measure(flags.run, flags.control).items():
            print(f"{name:20s} {value:.6g}")


if __name__ == "__main__":
    cli.launch(main)
