"""The exact posterior of a class whose functions can be enumerated, each a row of a table; sign vectors are one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from icl_lab.baselines.functions.finite import Likelihood, gaussian, pool_posterior
from icl_lab.baselines.functions.posterior import NOISE_FREE, Posterior, in_blocks
from icl_lab.baselines.functions.prefixes import pairs
from icl_lab.src.checks import require

MOST_FUNCTIONS = 2**16

# products of functions and inputs [B, M, N] -> what the functions give [B, M, N]
Labels = Callable[[np.ndarray], np.ndarray]
# what they give -> log p(x | f) [B, M, N], up to what is the same for all functions
Inputs = Callable[[np.ndarray], np.ndarray]


def posterior_over(
    table: np.ndarray,
    x: ArrayLike,
    y: ArrayLike,
    labels_of: Labels,
    likelihood: Likelihood,
    log_prior: np.ndarray | None = None,
    inputs_of: Inputs | None = None,
) -> Posterior:
    """`pool_posterior` of functions that are given by the products of a row of the table [M, D] and the input.

    x [B, N, D], y [B, N]; some prompts at a time, as the labels [B, M, N] of all would not fit into memory.
    """
    inputs, labels = pairs(x, y)

    def of_block(x: np.ndarray, y: np.ndarray) -> Posterior:
        given = labels_of(table @ np.moveaxis(x, 1, 2))
        return pool_posterior(given, y, likelihood, log_prior, inputs_of and inputs_of(given))

    return in_blocks(of_block, len(table) * labels.shape[1], inputs, labels)


def vectors(dim: int, values: tuple[int, ...]) -> np.ndarray:
    """All vectors [M, D] of these values; `ConfigError` for more than 65 536."""
    count = len(values) ** dim
    require(
        count <= MOST_FUNCTIONS,
        f"there are {count} functions of {dim} dimensions; at most {MOST_FUNCTIONS} are enumerated",
    )
    return np.stack(np.meshgrid(*[values] * dim, indexing="ij"), axis=-1).reshape(-1, dim).astype(float)


def sign_vector_posterior(x: ArrayLike, y: ArrayLike, noise_variance: float = NOISE_FREE) -> Posterior:
    """The posterior of y = w.x + noise, w uniform on {-1, 1}^D, for D up to 16: over all 2^D vectors.

    x [B, N, D], y [B, N]. Cost: 1.4 s at D = 10, 110 s at D = 16.
    """
    return posterior_over(vectors(np.shape(x)[-1], (-1, 1)), x, y, lambda products: products, gaussian(noise_variance))
