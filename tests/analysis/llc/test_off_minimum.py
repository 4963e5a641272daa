"""Draws below L(w*) say that w* is no local minimum: such an estimate is not usable."""

import numpy as np

from icl_lab.analysis.llc.health import diagnose, off_minimum
from icl_lab.analysis.llc.settings import Settings
from icl_lab.store.llc_rows import NONE


def excess(mean: float) -> np.ndarray:
    """Eight chains of 100 draws whose means spread by .1."""
    return mean + 0.1 * np.linspace(-1, 1, 8)[:, None] + np.sin(np.arange(100.0))[None]


def test_draws_clearly_below_are_off_a_minimum_and_others_are_not() -> None:
    """The standard error of the mean of eight such chains is .023."""
    assert off_minimum(excess(-0.1)) == ["off minimum: the draws lie below L(w*)"]
    assert off_minimum(excess(-0.03)) == off_minimum(excess(0.1)) == []


def test_a_negative_estimate_is_not_usable() -> None:
    values = excess(-0.5)
    settings = Settings(burn_in=0, draws=100)
    traces = {"excess": values, "distance": abs(values), "fixed_loss": values[:, ::10], "acceptance": 0 * values + 0.9}
    found = diagnose(traces, settings, loss=1.0, null_loss=4.0, top_eigenvalue=1.0, weights=np.ones(3))
    assert "off minimum: the draws lie below L(w*)" in found.reasons
    assert found.verdict == NONE
    assert found.saturation < 0
