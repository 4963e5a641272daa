"""Curves of which the plateaus are known: sums of sigmoids in log step, and the published one."""

import numpy as np
from scipy.special import expit

from icl_lab.analysis.development.smooth_curve import log_step
from icl_lab.studies.stages.published import LLC

# The mean range of five normal values is 2.326 standard deviations, and the mean of five has one over sqrt(5).
OF_A_MEAN = 2 / 2.326 / 5**0.5


def published() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Steps, midpoints and half ranges."""
    low, high = np.array(list(LLC.values()), float).T
    return np.array(list(LLC), float), (low + high) / 2, (high - low) / 2


def spaced(count: int, last: float = 5e5) -> np.ndarray:
    """Step 0 and logarithmically spaced ones."""
    return np.unique(np.round([0, *np.geomspace(1, last, count)]))


def stairs(steps: np.ndarray, rises: dict[float, float], width: float = 0.35) -> np.ndarray:
    """Rises of these heights at these log steps; the plateaus are in the middle between them."""
    at = log_step(steps)
    return np.sum([height * expit((at - place) / width) for place, height in rises.items()], axis=0)


def noise(count: int, seed: int, size: float = 1.0) -> np.ndarray:
    """Normal noise."""
    return np.random.default_rng(seed).normal(0, size, count)
