"""Two predictors on the same tasks: how far their predictions are apart, and their sensitivities to the query."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from icl_lab.baselines.gradient_descent import Predictor
from icl_lab.src.batch import Batch
from icl_lab.src.checks import same_shape
from icl_lab.src.losses import half_mse

SMALLEST_NORM = 1e-8  # below it a sensitivity has no direction


def sensitivity(predict: Predictor, batch: Batch) -> Array:
    """d prediction / d x_query [B, D] of every task. Von Oswald et al. 2023, Sec. 3."""

    def total(x_query: Array) -> Array:
        return jnp.sum(predict(batch._replace(x_query=x_query)))

    gradients: Array = jax.grad(total)(jnp.asarray(batch.x_query))
    return gradients


def last_sensitivity(predict: Predictor, batch: Batch) -> Array:
    """d prediction / d x [B, D] of the last pair of every sequence, of a predictor of all positions [B, K]."""

    def total(last: Array) -> Array:
        x = jnp.concatenate([batch.x[:, :-1], last[:, None]], axis=1)
        return jnp.sum(jnp.asarray(predict(batch._replace(x=x, x_query=x)))[:, -1])

    gradients: Array = jax.grad(total)(jnp.asarray(batch.x)[:, -1])
    return gradients


def cosine(a: Array, b: Array) -> Array:
    """Cosines [B] of the rows of a and b [B, D]; 0 where a row is 0."""
    same_shape(a=a, b=b)
    norms = jnp.linalg.norm(a, axis=1) * jnp.linalg.norm(b, axis=1)
    return jnp.sum(a * b, axis=1) / jnp.maximum(norms, SMALLEST_NORM)


def compare(predict: Predictor, baseline: Predictor, batch: Batch) -> dict[str, Array]:
    """Two predictors on the same tasks.

    slope = sum y_a y_b / sum y_b^2 (of two steps of gradient descent the ratio of their sizes); preds_diff =
    mean |y_a - y_b|; l2_pred_diff = sqrt(mean (y_a - y_b)^2); model_diff = mean ||s_a - s_b||, model_cos = align_cos =
    mean cosine of the sensitivities s; the losses of both (half the mean squared error).
    """
    predictions, other_predictions = predict(batch), baseline(batch)
    difference = predictions - other_predictions
    own, other = sensitivity(predict, batch), sensitivity(baseline, batch)
    cosines = cosine(own, other)
    return {
        "slope": jnp.sum(predictions * other_predictions) / jnp.sum(other_predictions**2),
        "preds_diff": jnp.mean(jnp.abs(difference)),
        "l2_pred_diff": jnp.sqrt(jnp.mean(difference**2)),
        "model_diff": jnp.mean(jnp.linalg.norm(own - other, axis=1)),
        "model_cos": jnp.mean(cosines),
        "align_cos": jnp.mean(cosines),
        "tf_loss": half_mse(predictions, batch.y_query),
        "gd_loss": half_mse(other_predictions, batch.y_query),
    }
