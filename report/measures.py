"""What the ledger's claims measure: pure functions of a trained run, or of a seed where nothing is trained."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial

from analysis import rollout, shifts
from analysis.alignment import compare
from analysis.copying import copying
from analysis.headline import half_squared_errors
from analysis.interpolation import interpolated
from analysis.subject import Subject, gd_steps, load_subject
from analysis.weights import products
from baselines import spectrum
from baselines.gd_plus_plus_fit import fit_gd_plus_plus, fitted_gd_plus_plus, gd_plus_plus_losses
from baselines.gd_step import gd, one_step_size, search_step_size
from curricula.context import headline_batch
from src.config import DataConfig
from src.data import sample_batch
from store.rundir import read_metrics

TASKS = 10_000
ROLLED = 50  # applications
LEARNT = 0.3  # a loss below the plateau at .4

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


def steps_until_learnt(run: Path) -> float:
    """The first logged step whose test loss is below the plateau; infinite if none is."""
    return next((float(r["step"]) for r in read_metrics(run) if r["test_loss"] < LEARNT), float("inf"))


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


@lru_cache(maxsize=64)
def rolled_out(run: Path, damping: float) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Half the squared errors [K, B] of rolled-out layers and the unstable tasks [B], of the run and of descent."""
    subject = subject_of(run)
    batch = headline_batch(subject.config)
    kq, pv = (part[0, 0].astype(np.float32) for part in products(subject.config, subject.params))
    descent = rollout.gd_products(subject.config.data.dim, one_step_size(subject.config.data))
    found = {}
    for name, pair in (("tf", (kq, pv)), ("gd", descent)):
        rolled = rollout.rollout(*pair, batch, ROLLED, damping)
        predictions = np.asarray(rolled.predictions, np.float64)
        errors = np.where(np.isfinite(predictions), predictions, np.inf) - np.asarray(batch.y_query, np.float64)
        found[name] = (0.5 * errors**2, np.asarray(rolled.unstable))
    return found


def rollout_furthest(damping: float) -> Measure:
    """Trimmed means of the rolled-out transformer over gradient descent's, where they are furthest from 1."""

    def measure(run: Path) -> float:
        found = rolled_out(run, damping)
        ratios = rollout.trimmed_mean(found["tf"][0]) / rollout.trimmed_mean(found["gd"][0])
        return float(ratios[np.argmax(np.abs(np.log(ratios)))])

    return measure


def rollout_end(damping: float) -> Measure:
    """The trimmed mean after all applications."""
    return lambda run: float(rollout.trimmed_mean(rolled_out(run, damping)["tf"][0])[-1])


def rollout_unstable(damping: float, whose: str = "tf") -> Measure:
    """The share of tasks whose updates grow."""
    return lambda run: float(rolled_out(run, damping)[whose][1].mean())


def sensitivity_to(which: str) -> Measure:
    """The first layer's sensitivity to its own, the next or other tokens, the gradient averaged before the norm."""
    return lambda run: float(copying(subject_of(run))["averaged_before_norm"][which])


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


def inputs_of(seed: int, data: DataConfig, count: int = TASKS) -> np.ndarray:
    """The inputs [B, N, D] of sampled contexts, in double precision."""
    return np.asarray(_tasks(seed, data, count).x, np.float64)


def _tasks(seed: int, data: DataConfig, count: int = TASKS) -> Any:
    return jax.jit(sample_batch, static_argnums=(1, 2))(jax.random.key(seed), data, count)


def tuned_gd(steps: int) -> Callable[[int], float]:
    """The loss of gradient descent of so many steps, at the step size that is best on other tasks."""

    def measure(seed: int) -> float:
        data = DataConfig()
        step_size = search_step_size(_tasks(2 * seed, data, 8192), steps)
        batch = _tasks(2 * seed + 1, data, 32_768)
        errors = jax.jit(partial(gd, steps=steps))(batch, step_size) - batch.y_query
        return float(0.5 * jnp.mean(errors**2))

    return measure


def best_step(seed: int) -> float:
    """The step size eta/N of one step with the least loss on sampled tasks."""
    return search_step_size(_tasks(seed, DataConfig(), 65_536), 1)


def learned_gd_plus_plus(steps: int, shared: bool, statistic: Callable[..., Any] = np.mean) -> Callable[[int], float]:
    """The loss of GD++ with learned rates on fresh tasks."""

    def measure(seed: int) -> float:
        rates = fit_gd_plus_plus(DataConfig(), steps, shared, seed)
        return float(statistic(gd_plus_plus_losses(rates, DataConfig(), 1000 + seed, 32_768)))

    return measure


def learned_gamma(steps: int) -> Callable[[int], float]:
    """The shared gamma of GD++."""
    return lambda seed: float(fit_gd_plus_plus(DataConfig(), steps, True, seed).gammas[0])


def eigenvalue(num_pairs: int, which: str) -> Callable[[int], float]:
    """The smallest ("min") or largest ("max") eigenvalue of the scatter matrices of 10 000 contexts."""

    def measure(seed: int) -> float:
        values = spectrum.eigenvalues(inputs_of(seed, DataConfig(num_pairs=num_pairs)))
        return float(values.min() if which == "min" else values.max())

    return measure


def condition_change(num_pairs: int, gamma: float) -> Callable[[int], float]:
    """The median condition number after a step of GD++ on the inputs over that before."""

    def measure(seed: int) -> float:
        values = spectrum.eigenvalues(inputs_of(seed, DataConfig(num_pairs=num_pairs)))
        after = spectrum.condition_number(np.abs(spectrum.after_a_step(values, gamma)))
        return float(np.median(after / spectrum.condition_number(values)))

    return measure
