"""Collapse of embeddings: the singular values of a model's maps of tokens and positions, and what the two share.

Hoogland et al. 2024, Sec. 4: in the regression transformer both lose directions late in training.
"""

from __future__ import annotations

import numpy as np

from icl_lab.src.model import Params

ROUNDING = 1e-5  # times the largest singular value, in single precision: smaller ones count as zero


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
