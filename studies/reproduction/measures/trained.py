"""Measures on the final checkpoint: losses, alignment with the algorithms, interpolation, shifts, weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.tree_util import Partial

from icl_lab.analysis import shifts
from icl_lab.analysis.copying import copying, first_layer_gradients
from icl_lab.analysis.loaded_run import ComparedRun, baselines_of
from icl_lab.analysis.over_training import descents_of
from icl_lab.analysis.paired_losses import half_squared_errors
from icl_lab.analysis.weights import interpolated, products
from icl_lab.baselines.comparison import compare
from icl_lab.baselines.gd_plus_plus import fit_gd_plus_plus
from icl_lab.baselines.gradient_descent import Predictor
from icl_lab.families.layerwise.config import UNTRAINED
from icl_lab.families.regression.baselines import defined
from icl_lab.families.regression.config import RegressionConfig, gd_steps
from icl_lab.families.regression.task import make_test_batch
from icl_lab.families.task import task_key
from icl_lab.src.data import sample_batch
from icl_lab.src.prng import Purpose
from icl_lab.src.registries import MODEL
from icl_lab.studies.algorithm_distances import Measure, compared_run

CONTEXTS, DRAWS = 512, 64  # of medians over contexts


@lru_cache(maxsize=64)
def _test_set_errors(run: Path) -> dict[str, np.ndarray]:
    """Half the squared errors on the test tasks, of the transformer and of what it is compared with."""
    loaded = compared_run(run)
    predictors = {"tf": loaded.predict} | defined_baselines(loaded)
    return half_squared_errors(predictors, make_test_batch(loaded.config))


def defined_baselines(loaded: ComparedRun) -> dict[str, Partial]:
    """`analysis.over_training.descents_of`, less those that are not defined."""
    return {name: predict for name, predict in descents_of(loaded).items() if not isinstance(predict, str)}


def gd_plus_plus_of(run: Path) -> Partial:
    """GD++ with learned rates as a predictor, of as many steps as the run has layers; shared where its weights are."""
    return defined_baselines(compared_run(run))["gd_plus_plus"]


def loss_of(whose: str) -> Measure:
    """A loss on the test tasks: of "tf", "gd" or "gd_plus_plus"."""
    return lambda run: float(_test_set_errors(run)[whose].mean())


loss = loss_of("tf")


def loss_over_that_of(run: Path, other: Path) -> float:
    """A run's loss over another's."""
    return loss(run) / loss(other)


def median_loss(run: Path) -> float:
    """The median over contexts of the loss averaged over teachers and queries; a few contexts are most of a mean."""
    loaded = compared_run(run)
    return float(np.median(context_losses({"tf": loaded.predict}, loaded.config)["tf"]))


def median_over(other: str) -> Measure:
    """That median over an algorithm's, on the same contexts, teachers and queries."""

    def measure(run: Path) -> float:
        loaded = compared_run(run)
        predict = defined(baselines_of(loaded, (other,)))[other]
        losses = context_losses({"tf": loaded.predict, "other": predict}, loaded.config)
        return float(np.median(losses["tf"]) / np.median(losses["other"]))

    return measure


def context_losses(predictors: Mapping[str, Predictor], config: RegressionConfig) -> dict[str, np.ndarray]:
    """Half the squared error [CONTEXTS] of each context, averaged over `DRAWS` teachers and queries, without noise."""
    context_key, draw_key = jax.random.split(task_key(config, Purpose.TEST_SET))
    x = np.repeat(np.asarray(_sample(context_key, config.data, CONTEXTS).x), DRAWS, axis=0)
    draws = _sample(draw_key, config.data, CONTEXTS * DRAWS)
    y, y_query = np.einsum("bnd,bd->bn", x, draws.w), np.einsum("bd,bd->b", draws.x_query, draws.w)
    errors = half_squared_errors(predictors, draws._replace(x=x, y=y, y_query=y_query))
    return {name: values.reshape(CONTEXTS, DRAWS).mean(axis=1) for name, values in errors.items()}


_sample = partial(jax.jit, static_argnums=(1, 2))(sample_batch)


def below_zero(run: Path) -> float:
    """1 for a run whose loss is below .9 of that of predicting zero, which falls short of having trained, else 0."""
    return float(loss(run) < UNTRAINED * zero_loss(run))


def zero_loss(run: Path) -> float:
    """The loss of predicting zero on the test tasks."""
    targets = np.asarray(make_test_batch(compared_run(run).config).y_query, np.float64)
    return float(0.5 * np.mean(targets**2))


def over(other: str, whose: str = MODEL) -> Measure:
    """The transformer's loss over another's, on the same tasks; or that of a baseline in the transformer's place."""

    def measure(run: Path) -> float:
        errors = _test_set_errors(run)
        own = errors[whose] if whose in errors else _errors_of(run, whose)
        return float(own.mean() / errors[other].mean())

    return measure


@lru_cache(maxsize=64)
def _errors_of(run: Path, whose: str) -> np.ndarray:
    """Half the squared errors of a registered baseline on the test tasks."""
    return half_squared_errors({whose: predictor_of(run, whose)}, make_test_batch(compared_run(run).config))[whose]


def predictor_of(run: Path, whose: str) -> Predictor:
    """The transformer, or a registered baseline in its place."""
    loaded = compared_run(run)
    return loaded.predict if whose == MODEL else defined(baselines_of(loaded, (whose,)))[whose]


def against(other: str, name: str, whose: str = MODEL) -> Measure:
    """A comparison of `baselines.comparison.compare` with gradient descent or GD++ on the analysis batch."""

    def measure(run: Path) -> float:
        return _comparison(run, other, whose)[name]

    return measure


@lru_cache(maxsize=64)
def _comparison(run: Path, other: str, whose: str) -> dict[str, float]:
    pair = predictor_of(run, whose), OTHERS[other](run)
    return {name: float(value) for name, value in _compare(*pair, compared_run(run).batch).items()}


OTHERS: Mapping[str, Callable[[Path], Predictor]] = {
    "gd": lambda run: compared_run(run).gd.predict,
    "gd_plus_plus": lambda run: gd_plus_plus_of(run),
}


_compare = jax.jit(compare)


def interpolation(run: Path) -> float:
    """The loss halfway between trained weights and construction, over the trained loss."""
    loaded = compared_run(run)
    batch = make_test_batch(loaded.config)
    halfway = half_squared_errors({"halfway": interpolated(loaded, *construction_of(run))}, batch)["halfway"]
    return float(halfway.mean() / _test_set_errors(run)["tf"].mean())


def construction_of(run: Path) -> tuple[float, float]:
    """The step size and gamma of the construction that a run is interpolated with."""
    loaded = compared_run(run)
    if gd_steps(loaded.config.model) == 1:
        return float(loaded.gd.step_size), 0.0
    rates = fit_gd_plus_plus(loaded.config.data, gd_steps(loaded.config.model), True, loaded.config.data_seed)
    return float(rates.step_sizes[0]), float(rates.gammas[0])


def furthest_under(shift: str, values: Sequence[float], other: str = "", whose: str = MODEL) -> Measure:
    """The largest |ratio - 1| of the transformer's loss to another's, over contexts of other distributions.

    The other is gradient descent for one step, else GD++, if it is not named. whose: a baseline in the transformer's
    place.
    """
    return lambda run: max(abs(ratio - 1) for ratio in _ratios_under(run, shift, tuple(values), other, whose=whose))


def ratio_under(shift: str, value: float, other: str = "") -> Measure:
    """The transformer's loss over another's on contexts of another distribution."""
    return lambda run: _ratios_under(run, shift, (value,), other)[0]


def median_ratio_under(shift: str, value: float, other: str = "") -> Measure:
    """The median over tasks of the transformer's loss over another's median, on contexts of another distribution."""
    return lambda run: _ratios_under(run, shift, (value,), other, np.median)[0]


def _ratios_under(
    run: Path,
    shift: str,
    values: Sequence[float],
    other: str,
    over_tasks: Callable[..., np.ndarray] = np.mean,
    whose: str = MODEL,
) -> list[float]:
    loaded = compared_run(run)
    name = other or ("gd" if gd_steps(loaded.config.model) == 1 else "gd_plus_plus")
    predictors: dict[str, Predictor] = {"tf": predictor_of(run, whose), "other": defined_baselines(loaded)[name]}
    losses = shifts.shifted_losses(loaded.config, predictors, shift, values)
    ratios = over_tasks(losses["tf"], axis=1) / over_tasks(losses["other"], axis=1)
    return [float(ratio) if np.isfinite(ratio) else float("inf") for ratio in ratios]


def cancelling_heads(run: Path) -> float:
    """The off-diagonal norm of eta_1 W1_KQ + eta_2 W2_KQ, input block, over the sum of its terms' off-diagonal norms.

    Softmax has an offset over linear attention; two heads of opposite sign cancel theirs. App. A.9. Infinite unless the
    etas have opposite signs.
    """
    loaded = compared_run(run)
    dim = loaded.config.data.dim
    kq, pv = products(loaded.config, loaded.params)
    etas = pv[0, :, dim, dim]
    if not (etas.min() < 0 < etas.max()):
        return float("inf")
    heads = etas[:, None, None] * kq[0, :, :dim, :dim] * (1 - np.eye(dim))
    return float(np.linalg.norm(heads.sum(axis=0)) / sum(np.linalg.norm(head) for head in heads))


def diagonal_of_heads(run: Path) -> float:
    """How diagonal that sum is: its mean |off-diagonal| over its mean |diagonal|."""
    loaded = compared_run(run)
    dim = loaded.config.data.dim
    kq, pv = products(loaded.config, loaded.params)
    summed = np.einsum("h,hij->ij", pv[0, :, dim, dim], kq[0, :, :dim, :dim])
    diagonal = np.abs(np.diag(summed)).mean()
    return float((np.abs(summed).sum() - np.abs(np.diag(summed)).sum()) / (dim * (dim - 1)) / diagonal)


def sensitivity_to(which: str, channels: str = "") -> Measure:
    """The first layer's sensitivity to its own, the next or other tokens, the gradient averaged before the norm.

    In all channels of the data, or in those of x alone ("_x").
    """
    return lambda run: float(_copying(run)[f"averaged_before_norm{channels}"][which])


def next_over_other(channels: str = "") -> Measure:
    """Its sensitivity to the next token over that to the others, as published: at most 2N - 1."""
    return lambda run: float(_copying(run)[f"averaged_before_norm{channels}"]["next_over_other_with_next"])


def before_over_other(run: Path) -> float:
    """The same of the token before in place of the next one."""
    norms, _ = first_layer_gradients(compared_run(run))[""]
    rows, columns = np.indices(norms.shape)
    return float(norms[columns == rows - 1].mean() / norms[columns != rows].mean())


@lru_cache(maxsize=64)
def _copying(run: Path) -> dict[str, Any]:
    return copying(compared_run(run))
