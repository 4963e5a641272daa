"""Collapse of the unembedding: on how few of the stream's normalised channels a prediction rests. Hoogland et al. 2024.

    y^ = W_U[:, 0] . (gamma * z + beta) + b[0] = (W_U[:, 0] * gamma) . z + (W_U[:, 0] . beta + b[0])

with z [d] the normalised stream: the first bracket is the effective weight, the second the effective bias.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from icl_lab.src.model import Params

LINEAR, NORM = "read_out/linear", "read_out/norm"
FEW = 4  # coordinates


class Effective(NamedTuple):
    """A prediction as weight . z + bias of the normalised stream z: weight [d], and the bias."""

    weight: np.ndarray
    bias: float


def effective(params: Params) -> Effective:
    """The effective weight and bias; without a layer norm gamma is 1 and beta 0, without a bias b is 0."""
    column = np.asarray(params[LINEAR]["w"], float)[:, 0]
    norm = params.get(NORM, {"scale": np.ones_like(column), "offset": np.zeros_like(column)})
    bias = float(params[LINEAR]["b"][0]) if "b" in params[LINEAR] else 0.0
    return Effective(column * np.asarray(norm["scale"], float), float(column @ norm["offset"]) + bias)


def participation(weight: np.ndarray) -> float:
    """(sum u^2)^2 / (d sum u^4) of u [d]: 1 where all coordinates are as large, 1/d where one alone is not zero."""
    squares = np.asarray(weight, float) ** 2
    return float(squares.sum() ** 2 / (squares.size * (squares**2).sum()))


def top_share(weight: np.ndarray, few: int = FEW) -> float:
    """The share of sum u^2 on the `few` largest coordinates."""
    squares = np.sort(np.asarray(weight, float) ** 2)
    return float(squares[-few:].sum() / squares.sum())


def unembedding(params: Params) -> dict[str, float]:
    """Norm of the effective weight, its participation and the share of its 4 largest coordinates; the effective bias.

    Nothing for a model that reads a channel of its tokens.
    """
    if LINEAR not in params:
        return {}
    weight, bias = effective(params)
    return {
        "unembedding_norm": float(np.linalg.norm(weight)),
        "unembedding_bias": bias,
        "unembedding_participation": participation(weight),
        "unembedding_top_share": top_share(weight),
    }
