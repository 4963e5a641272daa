"""Is the transformer gradient descent? Predictions and sensitivities of the two on the same tasks."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from analysis.subject import Subject
from baselines.gradient_descent import Predictor, gd
from src.batch import Batch
from src.losses import half_mse
from src.model import Model, Params
from store import layout
from store.atomic import write_csv, write_json
from store.rundir import read_metrics

CURVE = ("step", "preds_diff", "model_diff", "model_cos", "tf_loss", "gd_loss")
LOGGED = ("gd_loss", "preds_diff", "model_diff", "model_cos")  # over training, besides the losses of every run
SMALLEST_NORM = 1e-8  # below it a sensitivity has no direction


def sensitivity(predict: Predictor, batch: Batch) -> Array:
    """d prediction / d x_query [B, D] of every task. Von Oswald et al. 2023, Sec. 3."""

    def total(x_query: Array) -> Array:
        return jnp.sum(predict(batch._replace(x_query=x_query)))

    return jax.grad(total)(jnp.asarray(batch.x_query))


def cosine(a: Array, b: Array) -> Array:
    """Cosines [B] of the rows of a and b [B, D]; 0 where a row is 0."""
    norms = jnp.linalg.norm(a, axis=1) * jnp.linalg.norm(b, axis=1)
    return jnp.sum(a * b, axis=1) / jnp.maximum(norms, SMALLEST_NORM)


def compare(predict: Predictor, baseline: Predictor, batch: Batch) -> dict[str, Array]:
    """Two predictors on the same tasks.

    slope = sum y_a y_b / sum y_b^2 (of two steps of gradient descent the ratio of their sizes); preds_diff =
    mean |y_a - y_b|; l2_pred_diff = sqrt(mean (y_a - y_b)^2); model_diff = mean ||s_a - s_b||, model_cos = align_cos =
    mean cosine of the sensitivities s; the losses of both (half the mean squared error).
    """
    found, other_found = predict(batch), baseline(batch)
    difference = found - other_found
    own, other = sensitivity(predict, batch), sensitivity(baseline, batch)
    cosines = cosine(own, other)
    return {
        "slope": jnp.sum(found * other_found) / jnp.sum(other_found**2),
        "preds_diff": jnp.mean(jnp.abs(difference)),
        "l2_pred_diff": jnp.sqrt(jnp.mean(difference**2)),
        "model_diff": jnp.mean(jnp.linalg.norm(own - other, axis=1)),
        "model_cos": jnp.mean(cosines),
        "align_cos": jnp.mean(cosines),
        "tf_loss": half_mse(found, batch.y_query),
        "gd_loss": half_mse(other_found, batch.y_query),
    }


@partial(jax.jit, static_argnums=(0, 1))
def compare_with_gd(
    model: Model, gd_steps: int, params: Params, step_size: float | Array, batch: Batch
) -> dict[str, Array]:
    """A model against gradient descent on the same tasks: one program for all the moments of a training and its end."""
    return compare(partial(model.predict, params), partial(gd, step_size=step_size, steps=gd_steps), batch)


def alignment(subject: Subject) -> dict[str, Any]:
    """The transformer against gradient descent on the analysis batch."""
    step_size = np.float32(subject.gd.step_size)
    values = compare_with_gd(subject.model, subject.gd.steps, subject.params, step_size, subject.batch)
    return {
        **{name: float(value) for name, value in values.items()},
        "eta": float(subject.gd.step_size),
        "eta_source": subject.gd.source,
        "gd_steps": subject.gd.steps,
        "tasks": len(subject.batch.y_query),
        "loss_convention": "half the mean squared error",
    }


def write(subject: Subject) -> dict[str, Any]:
    """Writes alignment.json, and the curve over training from the metrics that the run logged."""
    return write_values(subject, alignment(subject))


def write_values(subject: Subject, values: dict[str, Any]) -> dict[str, Any]:
    """`write` of what `alignment` gave."""
    records = [record | {"tf_loss": record["test_loss"]} for record in read_metrics(subject.run, LOGGED)]
    write_json(subject.run / layout.ALIGNMENT, values)
    write_csv(subject.run / layout.ALIGNMENT_CURVE, [{name: record[name] for name in CURVE} for record in records])
    return values
