"""Is the layer a step of gradient descent on the output weights? A transformer and its control on the same sines."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import numpy as np
from jax import Array

from icl_lab.analysis.loaded_run import LoadedRun
from icl_lab.analysis.measures.sine_functions import facts, functions, rows
from icl_lab.analysis.measures.test_set import half_squared_errors
from icl_lab.baselines import comparison
from icl_lab.families.sine.task import make_test_batch
from icl_lab.plots.sines import draw_comparison
from icl_lab.src import loss_conventions
from icl_lab.src.batch import Batch
from icl_lab.src.model import Model, Params
from icl_lab.src.statistics import mean_and_error, ratio_and_error
from icl_lab.store import layout
from icl_lab.store.atomic import write_csv, write_json
from icl_lab.store.readers import StoreError


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
        result[f"{name}_loss"], result[f"{name}_loss_se"] = mean_and_error(values)
    result["loss_ratio"], result["loss_ratio_se"] = ratio_and_error(errors["tf"], errors["control"])
    result["loss_difference"], result["loss_difference_se"] = mean_and_error(errors["tf"] - errors["control"])
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
