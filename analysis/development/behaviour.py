"""What a decoder's predictions [B, K] are like: losses by position, ICL scores, and inputs of a larger scale.

Losses are mean squared errors, not halved and not divided by D, as Hoogland et al. 2024 (Sec. 4) print them; those of
noisy labels y contain the noise variance, those of noiseless labels w.x do not.
"""

from __future__ import annotations

from collections.abc import Mapping

import jax.numpy as jnp
import numpy as np

from icl_lab.families.diversity.task import distance
from icl_lab.src.batch import Batch
from icl_lab.src.checks import same_shape
from icl_lab.src.data import labels

GAINS = (3, 5, 10)


def position_losses(predictions: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """l_k [K] = mean over sequences of (y^_k - t_k)^2, of predictions and targets [B, K]."""
    same_shape(predictions=predictions, targets=targets)
    losses: np.ndarray = np.mean((np.asarray(predictions, float) - np.asarray(targets, float)) ** 2, axis=0)
    return losses


def squared_prediction(predictions: np.ndarray) -> float:
    """E |y^|^2, over sequences and positions."""
    return float(np.mean(np.asarray(predictions, float) ** 2))


def icl_scores(losses: np.ndarray, dim: int) -> dict[str, float]:
    """What later positions gain on earlier ones, of losses [K] by position, in both conventions of sign.

        icl_a_b_text = l_a - l_b,   icl_a_b_figure = l_b - l_a

    for a:b in 1:D, D:K and 1:K, positions counted from 1. The text of Hoogland et al. 2024 has the first, in which
    learning from the context is positive; its figures have the second, in which it is negative. Without a position
    after the D-th there is 1:K alone.
    """
    last = len(losses)
    pairs = {"1_k": (1, last)} | ({"1_d": (1, dim), "d_k": (dim, last)} if 1 < dim < last else {})
    gained = {name: float(losses[a - 1] - losses[b - 1]) for name, (a, b) in pairs.items()}
    signs = {"text": 1.0, "figure": -1.0}
    return {f"icl_{name}_{which}": sign * value for name, value in gained.items() for which, sign in signs.items()}


def with_gain(batch: Batch, gain: float) -> Batch:
    """The same tasks and noise on inputs g x: y = w.(g x) + noise, where the batch has y = w.x + noise."""
    x = gain * jnp.asarray(batch.x)
    y = batch.y + labels(x, batch.w) - labels(batch.x, batch.w)
    return batch._replace(x=x, y=y, x_query=x, y_query=y)


def on_sequences(
    predictions: np.ndarray, noisy: np.ndarray, noiseless: np.ndarray, references: Mapping[str, np.ndarray], dim: int
) -> dict[str, float]:
    """Everything about predictions [B, K] on one set of sequences.

    squared_prediction; mse_noisy and mse_noiseless with their values at each position (..._k); `icl_scores` of noisy
    labels; delta_NAME, the mean squared difference from each exact predictor over D (Raventos et al. 2023, Eq. 4).
    """
    values = {"squared_prediction": squared_prediction(predictions)}
    for name, targets in (("mse_noisy", noisy), ("mse_noiseless", noiseless)):
        losses = position_losses(predictions, targets)
        values[name] = float(losses.mean())
        values |= {f"{name}_{k}": float(loss) for k, loss in enumerate(losses, start=1)}
    values |= icl_scores(position_losses(predictions, noisy), dim)
    return values | {f"delta_{name}": distance(predictions, other, dim) for name, other in references.items()}


def of_gain(predictions: np.ndarray, noisy: np.ndarray, gain: float) -> dict[str, float]:
    """mse_noisy on inputs g x, and the ICL score 1:K over g in both signs: predictions and labels [B, K]."""
    losses = position_losses(predictions, noisy)
    gained = float(losses[0] - losses[-1]) / gain
    return {"mse_noisy": float(losses.mean()), "icl_over_g_text": gained, "icl_over_g_figure": -gained}
