"""Weights that make the linear transformer do gradient descent or GD++: parameters of the very same model.

With tokens e = (x, y) and M = W_Q W_K^T = diag(I_x, 0) a linear layer moves every row by sum_i (x_i.x) e_i C, where
C = W_V P. Gradient descent is C = -c on the label channel; GD++ adds -gamma on the input channels.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from icl_lab.src.attn import merged_of
from icl_lab.src.checks import ConfigError
from icl_lab.src.config import Architecture, StackConfig


def gd_params(
    architecture: Architecture[StackConfig], step_sizes: float | Sequence[float], gammas: float | Sequence[float] = 0.0
) -> dict[str, dict[str, np.ndarray]]:
    """Parameters with which K layers are K steps of gradient descent from zero (or GD++ if gamma is not 0).

    W_Q = W_K = diag(I_x, 0), W_V = diag(I_x, -1), P = diag(-gamma I_x, c): the paper's Prop. 1 with W_0 = 0 and, for
    GD++, App. A.10; a step size is c = eta/N. Both are shared by all layers or, if these are not recurrent, one for
    each. A damped stack takes damped steps. Needs concatenated tokens and one head of full size without biases,
    layer norm or MLP; `ConfigError` otherwise. Positional encodings get no weight. Merged matrices are their products.
    """
    _check(architecture)
    width, dim = architecture.token_width, architecture.dim
    names = architecture.model.layer_names
    on_inputs = np.diag(np.arange(width) < dim).astype(float)
    on_label = np.diag(np.arange(width) == dim).astype(float)
    params = {}
    rates = (np.broadcast_to(values, len(names)) for values in (step_sizes, gammas))
    for name, step_size, gamma in zip(names, *rates, strict=True):
        factors = {
            "query": on_inputs[:, None, :],
            "key": on_inputs[:, None, :],
            "value": (on_inputs - on_label)[:, None, :],
            "projection": (step_size * on_label - gamma * on_inputs)[None],
        }
        params[f"{name}/attention"] = merged_of(factors) if architecture.model.merged else factors
    return params


def _check(architecture: Architecture[StackConfig]) -> None:
    model, width = architecture.model, architecture.token_width
    other = [kind for kind in map(model.kind, range(model.num_layers)) if kind != "linear"]
    obstacles = {
        "interleaved tokens": architecture.layout.rows_of_a_pair > 1,
        "a prediction in the positional encoding": architecture.prediction_channel >= architecture.data_width,
        f"{''.join(other[:1])} attention": bool(other),
        "several heads": model.num_heads != 1,
        "a key size below the token width": 0 < model.key_size < width,
        "a key size above the token width": model.key_size > width,
        "biases": model.bias,
        "layer norm": model.layer_norm,
        "an MLP": model.mlp_width > 0,
    }
    obstacle_names = [name for name, present in obstacles.items() if present]
    if obstacle_names:
        raise ConfigError(f"the construction of gradient descent is not defined for {' and '.join(obstacle_names)}")
