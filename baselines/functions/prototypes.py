"""The exact posterior of Gaussian prototypes: an input is Gaussian about the prototype of its class."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from icl_lab.baselines.functions.posterior import before, log_normal
from icl_lab.baselines.functions.prefixes import pairs
from icl_lab.src.checks import in_range, require, size


class ClassPosterior(NamedTuple):
    """log P(y_k = c | all that entry k has seen) [B, N, C], and the logarithm of the density of what it has seen.

    log_evidence [B, N] is of the labels before k and the inputs up to k, relative to inputs from N(0, I).
    """

    log_probabilities: np.ndarray
    log_evidence: np.ndarray


def prototype_posterior(
    x: ArrayLike, y: ArrayLike, num_classes: int, prototype_variance: float = 1.0, variance: float = 1.0
) -> ClassPosterior:
    """The posterior of labels y [B, N], 0 to C - 1, for prototypes m_c ~ N(0, s^2 I) and x | y = c ~ N(m_c, v I).

    Classes are equally probable. After n inputs of class c, of sum S, its next one is

        N(s^2 S / (n s^2 + v), (s^2 v / (n s^2 + v) + v) I)

    so P(y_k = c | x_k, pairs before) follows from Bayes' rule. s^2 = `prototype_variance`, v = `variance`.
    """
    size("num_classes", num_classes, least=2)
    in_range("prototype_variance", prototype_variance, 0, open_low=True)
    in_range("variance", variance, 0, open_low=True)
    inputs, labels = pairs(x, y)
    is_class = labels[:, :, None] == np.arange(num_classes)  # [B, N, C]
    require(bool(is_class.any(axis=2).all()), f"labels must be whole numbers from 0 to {num_classes - 1}")
    count = before(np.moveaxis(is_class, 1, 2).astype(float))  # [B, C, N]
    total = before(np.einsum("bnc,bnd->bcdn", is_class, inputs))  # [B, C, D, N]
    shrunk = count * prototype_variance + variance
    mean = prototype_variance * total / shrunk[:, :, None]
    spread = prototype_variance * variance / shrunk + variance
    query = np.moveaxis(inputs, 1, 2)[:, None]  # [B, 1, D, N]
    density = (log_normal(query - mean, spread[:, :, None]) - log_normal(query, 1.0)).sum(axis=2)
    joint = np.moveaxis(density, 1, 2) - np.log(num_classes)  # log p(x_k, y_k = c | pairs before), [B, N, C]
    of_input = logsumexp(joint, axis=2)
    seen = np.where(is_class, joint, 0).sum(axis=2)
    return ClassPosterior(joint - of_input[:, :, None], before(seen) + of_input)
