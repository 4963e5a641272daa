"""Scores of heads of a decoder of symbols: what they attend to, and how those of two layers compose.

Maps a [B, H, R, R] are distributions over the rows up to one's own, of B sequences and H heads. With a start symbol,
which is row 0, symbol t stands in row t + 1. The null of a score of maps is its value for uniform attention.
Olsson et al. 2022 (arXiv 2209.11895), App.; Elhage et al. 2021, "K-composition".
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from icl_lab.src.model import Params

FIRST = 9  # symbol: earlier ones see so few that any head attends to the one before
DRAWS = 8  # of random weights, for the null of a composition


def uniform(rows: int) -> np.ndarray:
    """Uniform attention [1, 1, R, R]: a_tj = 1 / (t + 1)."""
    found: np.ndarray = np.tril(np.ones((rows, rows))) / np.arange(1, rows + 1)[:, None]
    return found[None, None]


def late_rows(rows: int, start: int) -> np.ndarray:
    """The rows of symbols from the tenth on; of short sequences those of the later half."""
    return np.arange(start + min(FIRST, (rows - start) // 2), rows)


def previous_token(maps: np.ndarray, start: int = 0) -> np.ndarray:
    """Previous-token score [H]: the mean of a[t, t - 1] over late rows. 1: it attends to the one before alone."""
    rows = late_rows(maps.shape[-1], start)
    return _mean(maps[:, :, rows, rows - 1])


def start_attention(maps: np.ndarray) -> np.ndarray:
    """Attention to the start symbol [H]: the mean of a[t, 0] over the same rows."""
    return _mean(maps[:, :, late_rows(maps.shape[-1], 1), 0])


def prefix_matching(maps: np.ndarray, half: int, start: int = 0) -> np.ndarray:
    """Prefix-matching score [H] on r r, r of `half` distinct symbols: the mean of a[t, t - |r| + 1] in the second r.

    1: it attends to what followed the same symbol alone.
    """
    rows = np.arange(start + half, min(start + 2 * half, maps.shape[-1]))
    return _mean(maps[:, :, rows, rows - half + 1])


def matches(x: np.ndarray, order: int = 1) -> np.ndarray:
    """[B, T, T]: whether the n symbols before x_j are those up to x_t, j <= t; n = 1: x_{j-1} = x_t."""
    length = x.shape[1]
    place = np.arange(length)
    # row t has n symbols up to it, and row j as many before it
    within = (place[:, None] >= place[None]) & (place[:, None] >= order - 1) & (place[None] >= order)
    found: np.ndarray = within[None].repeat(len(x), axis=0)
    for lag in range(order):
        earlier, own = np.roll(x, lag + 1, axis=1)[:, None], np.roll(x, lag, axis=1)
        found &= own[..., None] == earlier
    return found


def match_mass(maps: np.ndarray, matching: np.ndarray, start: int = 0) -> np.ndarray:
    """Match mass [H]: the attention to matches [B, T, T], the mean over the rows that have any."""
    mass = np.einsum("bhtj,btj->bht", maps[:, :, start:, start:], matching)
    weights = matching.sum(axis=-1)[:, None] > 0
    return np.asarray((mass * weights).sum(axis=(0, 2)) / weights.sum())


def uniform_match_mass(matching: np.ndarray, start: int = 0) -> float:
    """The same of uniform attention: the mean fraction of visible rows that match."""
    shares = matching.sum(axis=-1) / (np.arange(matching.shape[-1]) + 1 + start)
    return float(shares[matching.any(axis=-1)].mean())


def _mean(chosen: np.ndarray) -> np.ndarray:
    found: np.ndarray = chosen.mean(axis=(0, 2), dtype=float)
    return found


# --- weights ---


class Circuits(NamedTuple):
    """A layer's W_OV [H, d, d], from a key's row to its update, and W_QK [H, d, d], from queries (left) to keys.

    Rows are x, so a head adds a x W_OV and its scores are x W_QK x^T. Scales of layer norms are left out.
    """

    ov: np.ndarray
    qk: np.ndarray


def circuits(params: Params, layer: int, heads: int) -> Circuits:
    """The circuits of a layer of a decoder; without an output matrix values stay in their head's channels."""
    module = f"layer_{layer}/attention"
    if f"{module}/query_key" in params:
        parts = [*np.split(_weight(params, f"{module}/query_key"), 2, axis=1), _weight(params, f"{module}/value")]
    else:
        parts = np.split(_weight(params, f"{module}/query_key_value"), 3, axis=1)
    width = len(parts[0])
    query, key, value = (part.reshape(width, heads, -1).swapaxes(0, 1) for part in parts)  # [H, d, C]
    output = _weight(params, f"{module}/output") if f"{module}/output" in params else np.eye(width)
    return Circuits(value @ output.reshape(heads, -1, width), query @ key.swapaxes(1, 2))


def _weight(params: Params, module: str) -> np.ndarray:
    return np.asarray(params[module]["w"], float)


def k_composition(ov: np.ndarray, qk: np.ndarray) -> np.ndarray:
    """|W_OV W_QK^T|_F / (|W_OV|_F |W_QK|_F) [H', H]: of each head of a layer [H'] with each of the one below [H].

    By |A B^T|_F^2 = <A^T A, B^T B>, a product a head and not a pair.
    """
    below, above = (matrices.swapaxes(1, 2) @ matrices for matrices in (ov, qk))
    composed = np.sqrt(np.tensordot(above, below, axes=((1, 2), (1, 2))))
    sizes = np.linalg.norm(qk, axis=(1, 2))[:, None] * np.linalg.norm(ov, axis=(1, 2))[None]
    found: np.ndarray = np.divide(composed, sizes, out=np.zeros_like(sizes), where=sizes > 0)
    return found


def random_k_composition(width: int, heads: int) -> float:
    """The mean of the same at standard normal weights of these shapes, always the same ones: about 1 / sqrt(d)."""
    rng, channels = np.random.default_rng(0), width // heads
    drawn = []
    for _ in range(DRAWS):
        query, key, value, output = rng.normal(size=(4, heads, width, channels))
        drawn.append(k_composition(value @ output.swapaxes(1, 2), query @ key.swapaxes(1, 2)).mean())
    return float(np.mean(drawn))
