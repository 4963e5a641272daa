"""Collapse of layer norms: which channels' scales gamma and offsets beta have gone to zero. Hoogland et al. 2024."""

from __future__ import annotations

import numpy as np

from icl_lab.src.model import Params

SMALL = 0.1  # a scale or an offset below it in size counts as gone


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
