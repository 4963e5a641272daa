"""Of a trained run, at its end: losses, comparisons with the algorithms, interpolation, other laws, weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path

import jax
import numpy as np
from jax.tree_util import Partial

from analysis import shifts
from analysis.alignment import compare
from analysis.copying import copying
from analysis.headline import half_squared_errors
from analysis.interpolation import interpolated
from analysis.subject import Subject, gd_steps, load_subject
from analysis.weights import products
from baselines.gd_plus_plus_fit import fit_gd_plus_plus, fitted_gd_plus_plus
from curricula.context import headline_batch

Measure = Callable[[Path], float]


@lru_cache(maxsize=64)
def subject_of(run: Path) -> Subject:
    """A finished run, loaded once for all claims on it."""
    return load_subject(run)


@lru_cache(maxsize=64)
def _headline(run: Path) -> dict[str, np.ndarray]:
    """Half the squared errors on the headline tasks of the transformer and of what it is held against."""
    subject = subject_of(run)
    predictors = {"tf": subject.predict, "gd": subject.gd.predict}
    if gd_steps(subject.config.model) > 1 and subject.config.model.tokens == "concatenated":
        predictors["gd_plus_plus"] = gd_plus_plus_of(run)
    return half_squared_errors(predictors, headline_batch(subject.config))


@lru_cache(maxsize=64)
def gd_plus_plus_of(run: Path) -> Partial:
    """GD++ with learned rates as a predictor, of as many steps as the run has layers; shared where its weights are."""
    config = subject_of(run).config
    return fitted_gd_plus_plus(config.data, gd_steps(config.model), config.model.recurrent, config.data_seed)


def loss_of(whose: str) -> Measure:
    """A loss on the headline tasks: of "tf", "gd" or "gd_plus_plus"."""
    return lambda run: float(_headline(run)[whose].mean())


loss = loss_of("tf")


def loss_over_that_of(run: Path, other: Path) -> float:
    """A run's loss over another's."""
    return loss(run) / loss(other)


def median_loss(run: Path) -> float:
    """The median over tasks: of deep stacks a few tasks are most of the mean."""
    return float(np.median(_headline(run)["tf"]))


def over(other: str) -> Measure:
    """The transformer's loss over another's, on the same tasks."""

    def measure(run: Path) -> float:
        errors = _headline(run)
        return float(errors["tf"].mean() / errors[other].mean())

    return measure


def against(other: str, name: str) -> Measure:
    """A comparison of `analysis.alignment.compare` with gradient descent or GD++ on the analysis batch."""

    def measure(run: Path) -> float:
        return _comparison(run, other)[name]

    return measure


@lru_cache(maxsize=64)
def _comparison(run: Path, other: str) -> dict[str, float]:
    subject = subject_of(run)
    predict = subject.gd.predict if other == "gd" else gd_plus_plus_of(run)
    return {name: float(value) for name, value in _compare(subject.predict, predict, subject.batch).items()}


_compare = jax.jit(compare)


def interpolation(run: Path) -> float:
    """The loss halfway between trained weights and construction, over the trained loss."""
    subject = subject_of(run)
    batch = headline_batch(subject.config)
    halfway = half_squared_errors({"halfway": interpolated(subject, *construction_of(run))}, batch)["halfway"]
    return float(halfway.mean() / _headline(run)["tf"].mean())


def construction_of(run: Path) -> tuple[float, float]:
    """The step size and gamma of the construction that a run is interpolated with."""
    subject = subject_of(run)
    if gd_steps(subject.config.model) == 1:
        return float(subject.gd.step_size), 0.0
    rates = fit_gd_plus_plus(subject.config.data, gd_steps(subject.config.model), True, subject.config.data_seed)
    return float(rates.step_sizes[0]), float(rates.gammas[0])


def furthest_under(shift: str, values: Sequence[float]) -> Measure:
    """The transformer's loss over gradient descent's (GD++'s for a stack) where it is furthest from 1."""

    def measure(run: Path) -> float:
        subject = subject_of(run)
        other = subject.gd.predict if gd_steps(subject.config.model) == 1 else gd_plus_plus_of(run)
        losses = shifts.shifted_losses(subject.config, {"tf": subject.predict, "other": other}, shift, values)
        ratios = losses["tf"].mean(axis=1) / losses["other"].mean(axis=1)
        return float(ratios[np.argmax(np.abs(np.log(ratios)))])

    return measure


def cancelling_heads(run: Path) -> float:
    """How diagonal eta_1 W1_KQ + eta_2 W2_KQ is: mean |off-diagonal| over mean |diagonal| of its input block.

    Two softmax heads of opposite sign cancel the offset that one has over linear attention. App. A.9.
    """
    subject = subject_of(run)
    dim = subject.config.data.dim
    kq, pv = products(subject.config, subject.params)
    summed = sum(pv[0, head, dim, dim] * kq[0, head, :dim, :dim] for head in range(subject.config.model.num_heads))
    diagonal = np.abs(np.diag(summed)).mean()
    return float((np.abs(summed).sum() - np.abs(np.diag(summed)).sum()) / (dim * (dim - 1)) / diagonal)


def sensitivity_to(which: str) -> Measure:
    """The first layer's sensitivity to its own, the next or other tokens, the gradient averaged before the norm."""
    return lambda run: float(copying(subject_of(run))["averaged_before_norm"][which])
