"""Where a decoder's rows stand: vectors that are added to them, or the turning of queries and keys."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array

BASE = 10_000  # of the wavelengths, as in both papers


def sinusoids(num_rows: int, width: int) -> np.ndarray:
    """Vectors [R, d] that are added to rows: channel 2i has sin(r / 10000^(2i/d)), channel 2i + 1 the cosine.

    Vaswani et al. 2017, Sec. 3.5.
    """
    angles = _angles(num_rows, width)
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(num_rows, width)


def rotated(vectors: Array) -> Array:
    """Queries or keys [B, R, H, C], channels (2i, 2i + 1) of row r turned by the angle r / 10000^(2i/C).

    The product of a query and a key then depends on their rows by the difference alone. Su et al. 2021, Eq. 34.
    """
    angles = _angles(vectors.shape[1], vectors.shape[-1])[None, :, None]
    sine, cosine = (jnp.asarray(part, vectors.dtype) for part in (np.sin(angles), np.cos(angles)))
    even, odd = vectors[..., 0::2], vectors[..., 1::2]
    turned = jnp.stack([even * cosine - odd * sine, even * sine + odd * cosine], axis=-1)
    return turned.reshape(vectors.shape)


def _angles(num_rows: int, channels: int) -> np.ndarray:
    """[R, channels / 2], from a whole turn in 2 pi rows to one in nearly 2 pi BASE."""
    return np.arange(num_rows)[:, None] / BASE ** (np.arange(0, channels, 2)[None] / channels)
