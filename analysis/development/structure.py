"""Collapse of a model's parts over training: embeddings, layer norms, and the unembedding. Hoogland et al. 2024.

Embeddings (Sec. 4): the singular values of the maps of tokens and positions, and what the two share; in the regression
transformer both lose directions late in training. Layer norms: which channels' scales gamma and offsets beta have gone
to zero. Unembedding: on how few of the stream's normalised channels a prediction rests,

    y^ = W_U[:, 0] . (gamma * z + beta) + b[0] = (W_U[:, 0] * gamma) . z + (W_U[:, 0] . beta + b[0])

with z [d] the normalised stream: the first bracket is the effective weight, the second the effective bias.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from icl_lab.src.model import Params

ROUNDING = 1e-5  # times the largest singular value, in single precision: smaller ones count as zero
SMALL = 0.1  # a scale or an offset below it in size counts as gone
LINEAR, NORM = "read_out/linear", "read_out/norm"
FEW = 4  # coordinates


def singular_shares(matrix: np.ndarray) -> np.ndarray:
    """S_i^2 / sum_j S_j^2 of a matrix, from the largest; all zero for a matrix of zeros."""
    squares = np.linalg.svd(np.asarray(matrix, float), compute_uv=False) ** 2
    total = squares.sum()
    return squares / total if total > 0 else squares


def overlaps(tokens: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """||P u_i|| / ||u_i|| for each singular direction u_i of tokens [C, d], P onto the span of positions [T, d].

    0 where a token's direction is orthogonal to all positions, 1 where it lies among them, as it must for T >= d;
    a random direction has about sqrt(T / d). The published notebook has the cosine of u and U u in place of it.
    """
    directions = np.linalg.svd(np.asarray(tokens, float), full_matrices=False)[2]
    _, sizes, basis = np.linalg.svd(np.asarray(positions, float), full_matrices=False)
    basis = basis[sizes > ROUNDING * sizes[0]]
    norms: np.ndarray = np.linalg.norm(directions @ basis.T, axis=1)
    return norms


def token_matrix(params: Params) -> np.ndarray | None:
    """The map [C, d] from a token's channels into the stream; None where a model has none."""
    matrix = params.get("embed/linear", {}).get("w", params.get("embed", {}).get("w"))
    return None if matrix is None else np.asarray(matrix)


def position_matrix(params: Params) -> np.ndarray | None:
    """The learned positions [T, d]; None where a model has none."""
    positions = params.get("embed", {}).get("positions")
    return None if positions is None else np.asarray(positions)


def embeddings(params: Params) -> dict[str, float]:
    """embedding_share_i and embedding_smallest_share; position_share_i; embedding_in_positions_i; of what there is."""
    tokens, positions = token_matrix(params), position_matrix(params)
    values: dict[str, float] = {}
    if tokens is not None:
        shares = singular_shares(tokens)
        values |= _numbered("embedding_share", shares) | {"embedding_smallest_share": float(shares[-1])}
    if positions is not None:
        shares = singular_shares(positions)
        values |= _numbered("position_share", shares) | {"position_top_share": float(shares[0])}
    if tokens is not None and positions is not None:
        values |= _numbered("embedding_in_positions", overlaps(tokens, positions))
    return values


def _numbered(name: str, values: np.ndarray) -> dict[str, float]:
    return {f"{name}_{number}": float(value) for number, value in enumerate(values, start=1)}


def norms_of(params: Params) -> list[str]:
    """The modules that are layer norms: they have a scale and an offset."""
    return [module for module, arrays in params.items() if {"scale", "offset"} <= set(arrays)]


def small_share(values: np.ndarray) -> float:
    """The fraction of values [d] with |value| < .1."""
    return float(np.mean(np.abs(values) < SMALL))


def layer_norms(params: Params) -> dict[str, float]:
    """Of each layer norm: gamma_mean, and gamma_small and beta_small, the fractions with |gamma|, |beta| < .1."""
    values: dict[str, float] = {}
    for module in norms_of(params):
        gamma, beta = (np.asarray(params[module][name], float) for name in ("scale", "offset"))
        statistics = {
            "gamma_mean": float(gamma.mean()),
            "gamma_small": small_share(gamma),
            "beta_small": small_share(beta),
        }
        values |= {f"{module.replace('/', '_')}_{name}": value for name, value in statistics.items()}
    return values


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
