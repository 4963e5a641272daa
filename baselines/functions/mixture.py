"""Bayes for a mixture of classes: each class's mean, weighted by its posterior probability."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from icl_lab.baselines.functions.posterior import Posterior, Sampled, weighted
from icl_lab.src.checks import require


def mixture(parts: Sequence[Posterior | Sampled], priors: Sequence[float] | None = None) -> Posterior:
    """The posterior of functions whose class is drawn first: mean_k = sum_c p_ck mean_ck, p_ck ~ pi_c evidence_ck.

    priors [C] are equal if not given. The evidences must be densities of the same things: labels that are numbers, or
    labels -1 and 1. A mixture is a part of further mixtures.
    """
    return weighted(_log_weights(parts, priors), np.stack([part.mean for part in parts], axis=1))


def class_probabilities(parts: Sequence[Posterior | Sampled], priors: Sequence[float] | None = None) -> np.ndarray:
    """p_ck [B, C, N]: the probability of each class given what entry k has seen."""
    log_weights = _log_weights(parts, priors)
    weights = np.exp(log_weights - log_weights.max(axis=1, keepdims=True))
    probabilities: np.ndarray = weights / weights.sum(axis=1, keepdims=True)
    return probabilities


def _log_weights(parts: Sequence[Posterior | Sampled], priors: Sequence[float] | None) -> np.ndarray:
    """log pi_c + log evidence [B, C, N]."""
    given = [1 / len(parts)] * len(parts) if priors is None else list(priors)
    fits = len(given) == len(parts) and min(given) > 0 and abs(sum(given) - 1) < 1e-6
    require(fits, f"priors are {given} for {len(parts)} classes; they must be one each, above 0, and sum to 1")
    evidence = np.stack([part.log_evidence for part in parts], axis=1)
    return evidence + np.log(given)[None, :, None]
