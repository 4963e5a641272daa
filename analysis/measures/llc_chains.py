"""The LLC of a case by the estimator that runs are measured with: same chains, same diagnostics, same row."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from icl_lab.analysis import sgld
from icl_lab.analysis.measures import llc
from icl_lab.analysis.measures.llc_cases import Case
from icl_lab.analysis.measures.llc_health import diagnose
from icl_lab.analysis.measures.llc_settings import Settings
from icl_lab.analysis.reference_sampler import HmcDraws, hamiltonian
from icl_lab.src.prng import key

SourceOf = Callable[[sgld.Losses, Array, Any], sgld.Source]  # of losses, w* and tasks


def estimate(
    case: Case, settings: Settings, source_of: SourceOf | None = None
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The row and the traces of a case, as `llc.Estimator` gives them for a run.

    source_of makes the steps' tasks; None, as the settings say.
    """
    sizes = map(np.float32, (settings.eps, settings.nbeta, settings.gamma))
    keys = jax.random.split(key(settings.seed), settings.chains)
    shape = sgld.Steps(settings.burn_in, settings.draws, settings.thin, settings.check_every)
    source_of = source_of or (_minibatches(settings.batch_size) if settings.data == "fixed" else sgld.all_tasks)
    drawn = _chains(case.losses, shape, source_of, keys, case.centre, case.tasks, *sizes)
    traces = {name: np.asarray(values, np.float64) for name, values in drawn._asdict().items()}
    loss = losses_at_centre(case).mean()
    diagnostics = diagnose(traces, settings, loss, case.null_loss, float(hessian_eigenvalues(case)[-1]), case.centre)
    return llc.row(0, traces, settings, loss, case.null_loss, diagnostics), traces


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


@lru_cache
def _minibatches(size: int) -> SourceOf:
    return partial(sgld.minibatches, size=size)


def reference(case: Case, nbeta: float, gamma: float, chains: int, burn_in: int, draws: int) -> HmcDraws:
    """HMC on the same posterior, with trajectories as long as the localisation is wide."""
    numbers = map(np.float32, (nbeta, gamma, 1 / np.sqrt(gamma), 0.1 / np.sqrt(nbeta + gamma)))
    drawn: HmcDraws = _reference(case.losses, chains, burn_in, draws, case.centre, case.tasks, *numbers)
    return drawn


def chain_means(traces: dict[str, np.ndarray], settings: Settings) -> np.ndarray:
    """The estimate of each chain [C]."""
    return np.asarray(settings.nbeta * traces["excess"][:, settings.burn_in :].mean(axis=1))


@partial(jax.jit, static_argnames=("losses", "steps", "source_of"))
def _chains(
    losses: sgld.Losses,
    steps: sgld.Steps,
    source_of: SourceOf,
    keys: Array,
    centre: Array,
    tasks: Any,
    eps: Array,
    nbeta: Array,
    gamma: Array,
) -> sgld.Draws:
    target = sgld.Target(losses, centre, nbeta, gamma)
    source = source_of(losses, centre, tasks)
    return jax.vmap(lambda chain_key: sgld.chain(chain_key, target, source, tasks, eps, steps))(keys)


@partial(jax.jit, static_argnames=("losses", "chains", "burn_in", "draws"))
def _reference(
    losses: sgld.Losses,
    chains: int,
    burn_in: int,
    draws: int,
    centre: Array,
    tasks: Any,
    nbeta: Array,
    gamma: Array,
    length: Array,
    step_size: Array,
) -> HmcDraws:
    target = sgld.Target(losses, centre, nbeta, gamma)
    return hamiltonian(key(0), target, tasks, chains, burn_in, draws, length, step_size)
