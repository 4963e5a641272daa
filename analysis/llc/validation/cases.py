"""The losses of `models` by the estimator of any model.

A loss that is a function of the weights, without data, is that of one task. Losses are made once for each shape, so
that cases which differ in numbers alone share a compiled program.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial, wraps
from typing import Any, NamedTuple, ParamSpec

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from icl_lab.analysis.llc import any_model, sgld
from icl_lab.analysis.llc.loss import Losses, split
from icl_lab.analysis.llc.sampling import Asked, SourceOf
from icl_lab.analysis.llc.settings import Settings
from icl_lab.analysis.llc.validation import models
from icl_lab.analysis.llc.validation.models import KnownLoss


class Case(NamedTuple):
    """A loss around w* [d]: its tasks, a pytree with a leading axis, and the null predictor's loss if it has one."""

    name: str
    losses: Losses
    tasks: Any
    centre: np.ndarray
    null_loss: float = math.inf


def of(model: KnownLoss) -> Case:
    """The case of a model, in the numbers of JAX."""
    tasks, centre = jax.tree.map(np.float32, model.data), np.asarray(model.point, np.float32)
    return Case(model.name, model.losses, tasks, centre, model.null_loss)


P = ParamSpec("P")


def _case(function: Callable[P, KnownLoss]) -> Callable[P, Case]:
    @wraps(function)
    def case(*arguments: P.args, **named: P.kwargs) -> Case:
        return of(function(*arguments, **named))

    return case


quadratic, powers, crossing = _case(models.quadratic), _case(models.powers), _case(models.crossing)
relu_unit, regression, well = _case(models.relu_unit), _case(models.regression), _case(models.well)
deep_linear, generic = _case(models.deep_linear), _case(models.generic)


def estimate(
    case: Case, settings: Settings, source_of: SourceOf | None = None
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The row and the traces of a case, as `llc.Estimator` gives them for a run.

    source_of makes the steps' tasks; None, as the settings say.
    """
    found = any_model.estimate(problem(case, source_of), settings)
    return {"step": 0} | found.row(), dict(found.traces)


def problem(case: Case, source_of: SourceOf | None = None) -> any_model.Problem:
    """A case as what an LLC is of."""
    null_loss = case.null_loss if math.isfinite(case.null_loss) else None
    taken = split(case.losses, np.asarray(case.centre))
    return any_model.Problem(
        taken, case.tasks, len(jax.tree.leaves(case.tasks)[0]), None, null_loss, asked=Asked(source_of=source_of)
    )


def losses_at_centre(case: Case) -> np.ndarray:
    """The loss of each task at w* [n]."""
    return np.asarray(case.losses(jnp.asarray(case.centre), case.tasks), np.float64)


def hessian_eigenvalues(case: Case) -> np.ndarray:
    """All eigenvalues of the mean loss's Hessian at w*, in ascending order: of a few hundred parameters."""
    return np.linalg.eigvalsh(np.asarray(_hessian(case.losses, case.centre, case.tasks), np.float64))


@partial(jax.jit, static_argnums=0)
def _hessian(losses: sgld.Losses, centre: Array, tasks: Any) -> Array:
    matrix: Array = jax.hessian(lambda w: losses(w, tasks).mean())(centre)
    return matrix


def chain_means(traces: dict[str, np.ndarray], settings: Settings) -> np.ndarray:
    """The estimate of each chain [C]."""
    return np.asarray(settings.nbeta * traces["excess"][:, settings.burn_in :].mean(axis=1))
