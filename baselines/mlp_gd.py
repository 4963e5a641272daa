"""An MLP whose output weights take one step of gradient descent on the context: the control of the family sine.

The function is f(x) = f_0(x) + w.m(x) from w = 0; the step is on L(w) = 1/2 sum_i (w.m(x_i) - t_i)^2, with residuals
t_i = y_i - f_0(x_i) of the initial function f_0. With f_0 = w_0.m that is the step from w_0 on the labels themselves.
m and f_0 are meta-learned through the step. A linear layer with the weights of Prop. 1 does the same to the same
tokens. Von Oswald et al. 2023, Prop. 2, and the control of Fig. 4.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array

from icl_lab.src.activations import Hook, no_hook
from icl_lab.src.attention_products import pair_scores
from icl_lab.src.config import Architecture, SineModel
from icl_lab.src.data_config import SineData


def one_step(tokens: Array, architecture: Architecture[SineModel], hook: Hook = no_hook) -> Array:
    """Predictions [B] after one step, from embedded tokens [B, N + 1, W]: f_0(x) + c sum_i t_i m(x_i).m(x).

    The last channel of a context's row is t_i, that of the query's row -f_0(x); the others are m. c is `step_size`.
    """
    tokens = hook("embed", None, tokens)
    features, left = tokens[..., :-1], tokens[..., -1]
    similar = pair_scores(features[:, -1:], features[:, :-1])[:, 0]
    change = architecture.model.step_size * jnp.sum(left[:, :-1] * similar, axis=1)
    return hook("prediction", 0, change - left[:, -1])


def least_step_loss(data: SineData, points: int = 400) -> float:
    """The least loss of f_0(x) + sum_i (y_i - f_0(x_i)) k(x_i, x), whatever k, with f_0 the mean of all sines.

    One step on features of the input alone has this form, k(x, x') = c m(x).m(x'). For each x, k(., x) solves
    [N diag(p C) + N (N - 1) p C p^T] k = N p C(., x), C the covariance of labels, p the density of inputs on a grid.
    """
    x = (np.arange(points) + 0.5) / points * data.input_range - data.input_range / 2
    waves = np.stack([np.sin(x), np.cos(x)], axis=1)  # y = (a cos phi, a sin phi).waves
    pairs, (mean, second) = data.num_pairs, _moments(data)
    covariance = waves @ (second - np.outer(mean, mean)) @ waves.T
    variance = np.diag(covariance)
    system = np.diag(variance) / points + (pairs - 1) * covariance / points**2
    kernel = np.linalg.solve(system, covariance / points)
    explained = pairs * np.einsum("xq,xq->q", covariance, kernel) / points
    return float(0.5 * np.mean(variance - explained))


def _moments(data: SineData) -> tuple[np.ndarray, np.ndarray]:
    """The mean [2] and the second moments [2, 2] of (a cos phi, a sin phi).

    The mean is (0, (l + h) / pi), the second moments are half of E a^2 times the identity, for a ~ U(l, h). A tied
    phase is pi u of a = l + (h - l) u, u ~ U(0, 1). It adds -2 (h - l) / pi^2 to the first mean; E a^2 cos(2 pi u) / 2
    = (h - l)^2 / 4 pi^2 to the first second moment, and takes it from the other; and E a^2 sin(2 pi u) / 2 =
    -(h^2 - l^2) / 4 pi off the diagonal.
    """
    low, high = data.amplitude_low, data.amplitude_high
    mean = np.array([0, (low + high) / np.pi])
    second = np.eye(2) * (low**2 + low * high + high**2) / 6
    if not data.tied_phase:
        return mean, second
    even, odd = (high - low) ** 2 / (2 * np.pi) ** 2, -(high**2 - low**2) / (4 * np.pi)
    return mean - [2 * (high - low) / np.pi**2, 0], second + [[even, odd], [odd, -even]]
