"""What several questions share: measures on runs of linear regression, and how a claim of theory is written."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from icl_lab.analysis.paired_losses import half_squared_errors
from icl_lab.analysis.shifts import losses_on, model_on, shifted
from icl_lab.analysis.weights import learnt_preconditioners, relative_distance
from icl_lab.baselines.preconditioned import loss, preconditioner, scaled
from icl_lab.families.regression.task import make_test_batch
from icl_lab.src.covariance import fixed_eigenvalues
from icl_lab.src.data_config import DataConfig
from icl_lab.store.rundir import read_config
from icl_lab.studies.algorithm_distances import compared_run
from icl_lab.studies.claim import OURS, THEORY, Claim
from icl_lab.studies.runs import summary_part

Measure = Callable[..., float]
AHN = "Ahn et al. 2023, arXiv 2306.00297"
# no theory says how many runs train: the majority, after earlier seeds of which some did not
SHARE: dict[str, Any] = {"scale": "share", "source": "ours", "about": "ours", "paper": OURS}


def claim(
    name: str,
    figure: str,
    says: str,
    expected: float,
    low: float,
    high: float,
    measure: Any,
    runs: str,
    profile: str = "quick",
    source: str = THEORY,
    **more: Any,
) -> Claim:
    """A claim whose range theory gives, unless it has another source; the paper is Ahn et al. 2023 unless another."""
    return Claim(name, figure, says, expected, low, high, source, measure, runs, profile, **{"paper": AHN, **more})


def headline(name: str) -> Measure:
    """A number of the summary's test set."""
    return lambda run: float(summary_part(run, "headline")[name])


def closed_form_over_best(power: float) -> Measure:
    """The loss of the step preconditioned by L^power at its best size, over that of the best step, in closed form."""

    def measure(run: Path) -> float:
        data = read_config(run).data
        eigenvalues = fixed_eigenvalues(data)
        if eigenvalues is None:
            raise ValueError("each context draws its own covariance, so no power of it can precondition all of them")
        noise = data.noise_std**2 / 2
        other, best = (
            loss(diagonal, data) + noise for diagonal in (scaled(eigenvalues**power, data), preconditioner(data))
        )
        return float(other / best)

    return measure


def over(name: str, other: str, unit: float = 1.0) -> Measure:
    """A number of the test set over another, in units of a third."""
    return lambda run: headline(name)(run) / headline(other)(run) / unit


def over_paired(name: str) -> Measure:
    """A number of the test set over the same of the paired run."""
    return lambda run, other: headline(name)(run) / headline(name)(other)


@lru_cache(maxsize=512)
def shifted_losses(run: Path, shift: str) -> dict[str, float]:
    """Mean losses on test tasks of a shift ("" for none), by predictor: `analysis.shifts.losses_on`."""
    loaded = compared_run(run)
    data = shifted(loaded.config.data, shift) if shift else loaded.config.data
    return {name: float(errors.mean()) for name, errors in losses_on(loaded, data).items()}


def on_shift(shift: str, expected: float) -> Measure:
    """The transformer's loss on a shift over a number, such as one in closed form."""
    return lambda run: shifted_losses(run, shift)["tf"] / expected


def grows_by(shift: str) -> Measure:
    """The factor by which the loss grows on a shift."""
    return lambda run: shifted_losses(run, shift)["tf"] / shifted_losses(run, "")["tf"]


def share_left(shift: str) -> Measure:
    """The loss on a shift over that of predicting zero there, over the same without the shift."""

    def of(run: Path, where: str) -> float:
        losses = shifted_losses(run, where)
        return losses["tf"] / losses["zero"]

    return lambda run: of(run, shift) / of(run, "")


def preconditioner_distance(target: str, layer: int = 0) -> Measure:
    """The relative distance of a layer's learnt preconditioner from the closed form, the identity or the inverse."""
    diagonal = TARGETS[target]

    def measure(run: Path) -> float:
        loaded = compared_run(run)
        learnt = learnt_preconditioners(loaded.config, loaded.params)[layer].sum(axis=0)
        return relative_distance(learnt, np.diag(diagonal(loaded.config.data)))

    return measure


def _identity(data: DataConfig) -> np.ndarray:
    return np.ones(data.dim)


def _inverse_covariance(data: DataConfig) -> np.ndarray:
    eigenvalues = fixed_eigenvalues(data)
    if eigenvalues is None:
        raise ValueError("covariances that are drawn have no one inverse")
    return 1 / eigenvalues


# a preconditioner's name -> its diagonal [D]
TARGETS = {"closed form": preconditioner, "identity": _identity, "inverse covariance": _inverse_covariance}


@lru_cache(maxsize=256)
def _looped(run: Path, layers: int) -> tuple[float, float]:
    """The median and the mean loss of recurrent layers at a depth."""
    loaded = compared_run(run)
    predict = model_on(loaded, loaded.config.data.num_pairs, layers)
    errors = half_squared_errors({"tf": predict}, make_test_batch(loaded.config))["tf"]
    return float(np.median(errors)), float(errors.mean())


def looped(layers: int, over: int, mean: bool = False) -> Measure:
    """The median loss over tasks, or the mean, of recurrent layers at a depth over that at another."""
    return lambda run: _looped(run, layers)[mean] / _looped(run, over)[mean]
