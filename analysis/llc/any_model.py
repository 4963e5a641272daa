"""The local learning coefficient of any model: a loss for each sample, parameters of any pytree, data of any pytree.

    import icl_lab

    def loss(params, batch):  # [B] of B samples
        x, y = batch
        return 0.5 * (x @ params["w"] - y) ** 2

    found = icl_lab.llc(loss, params, (x, y), nbeta=100.0, gamma=10.0)
    print(found)  # the LLC with its interval, the quadratic prediction, and what it measures

docs/llc.md says what the numbers mean and how settings are chosen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jax import Array

from icl_lab.analysis.llc import descent, sampling
from icl_lab.analysis.llc.estimate import Estimate, of_traces
from icl_lab.analysis.llc.loss import PerSampleLoss, Split, check, finite_losses, measured_losses, split
from icl_lab.analysis.llc.mask import mask_vector
from icl_lab.analysis.llc.settings import MOST_KEPT, Settings
from icl_lab.analysis.llc.spectrum import Spectrum, ends_of, spectrum_of
from icl_lab.analysis.llc.verdict import REJECTED
from icl_lab.src.checks import require

STEP = 0.1  # of the stability bound 1 / (nbeta h_max + gamma), where eps is chosen
MET = 1.5  # times that: the curvature that draws meet is known as well as they are
SHORTER, TRIES = 4, 6  # what eps is divided by where chains diverge, or their steps are rejected; how often
FLAT = 1e-6  # of the largest eigenvalue: below it a direction is flat, which gamma = 0 does not bound


class Problem(NamedTuple):
    """The inputs of an LLC: split parameters, n samples, the mask of sampled parameters, the null predictor's loss.

    asked: what else is measured on draws (`sampling.Asked`). arguments: what the source of steps is given.
    """

    split: Split
    data: Any
    size: int
    mask: np.ndarray | None = None
    null_loss: float | None = None
    measured_on: Any = None
    asked: sampling.Asked = sampling.Asked()
    arguments: Any = ()

    @property
    def moving(self) -> np.ndarray:
        """w* of what moves."""
        vector = np.asarray(self.split.vector)
        return vector if self.mask is None else vector[self.mask > 0]


def llc(
    per_sample_loss: PerSampleLoss,
    params: Any,
    data: Any,
    *,
    nbeta: float,
    gamma: float,
    eps: float | None = None,
    batch_size: int | None = 64,
    chains: int = 8,
    burn_in: int = 200,
    draws: int = 400,
    thin: int = 1,
    sampler: str = "sgld",
    friction: float = 0.1,
    mask: Any = None,
    null_loss: float | None = None,
    descend: int = 0,
    measured_on: Any = None,
    per_sample: bool = False,
    observe: Callable[[Any], Any] | None = None,
    predict: bool = True,
    seed: int = 0,
) -> Estimate:
    """The LLC of a model at params: nbeta (mean over draws of L(w) - L(w*)), w ~ exp(-nbeta L - gamma/2 |w - w*|^2).

    per_sample_loss(params, batch) -> [B], one loss for each of B samples, of JAX operations. For sequences a sample is
    one sequence: give the mean over its tokens for a loss per token, or the sum for a loss per sequence; nbeta has the
    unit of 1 / that loss. L is the mean over samples and nbeta multiplies that mean. params: any pytree (Haiku, Flax,
    Equinox, plain), whose leaves that are not floating-point arrays are held fixed. data: a pytree of arrays with a
    leading axis of samples.

    eps: the step size in w - eps/2 (nbeta g + gamma (w - w*)) + N(0, eps); None takes a tenth of the stability bound,
    or less where that is too much.
    batch_size: samples in a step, drawn with replacement; None, or n or more, takes all samples. chains, burn_in,
    draws, thin: chains from w*, draws left out, draws kept, steps between two. sampler: "sgld", "rmsprop", "sghmc"
    (with friction) or "hmc" (all samples, needs blackjax).
    mask: which parameters move: a regular expression of leaf names "a/b/c", or a pytree of booleans or boolean arrays.
    null_loss: the loss of a predictor that ignores the input, needed to measure saturation; without it saturation is
    not checked. descend: steps of full-batch descent from w* before the chains. measured_on: a second data set, on
    which the draws' loss is measured too. per_sample: keep all samples' losses at each draw, traces["losses"]
    [C, T, n]. observe(params) -> an array to keep at each draw, traces["observed"]. predict: False skips the quadratic
    prediction, so that the estimate is not compared with it; with eps given and gamma above 0 the Hessian is then not
    needed at all.

    `ConfigError` if the loss is not one number for each sample, or is nan at w*, if there are no samples, if the mask
    has another structure, and for gamma = 0 with a flat or negative direction. (Lau et al. 2023, Eq. 15.)
    """
    problem, n = _problem(per_sample_loss, params, data, mask, null_loss, measured_on, observe, per_sample)
    full = batch_size is None or batch_size >= n or sampler == "hmc"
    settings = Settings(
        eps=eps,
        nbeta=nbeta,
        gamma=gamma,
        batch_size=n if batch_size is None or full else batch_size,
        tasks=n,
        data="full" if full else "fixed",
        chains=chains,
        burn_in=burn_in,
        draws=draws,
        thin=thin,
        sampler=sampler,
        friction=friction,
        descend=descend,
        mask=mask if isinstance(mask, str) else "",
        seed=seed,
    )
    if per_sample:
        require(
            n * chains * (burn_in + draws) <= MOST_KEPT,
            f"{chains} chains of {burn_in + draws} draws keep the losses of {n} samples each, more than 2^26 values; "
            "take fewer draws or samples",
        )
    return estimate(problem, settings, predict=predict)


def _problem(
    loss: PerSampleLoss,
    params: Any,
    data: Any,
    mask: Any,
    null_loss: float | None,
    measured_on: Any,
    observe: Callable[[Any], Any] | None,
    per_sample: bool,
) -> tuple[Problem, int]:
    taken = split(loss, params)
    n = check(taken, data)
    if measured_on is not None:
        check(taken, measured_on, "measured_on")
    asked = sampling.Asked(observe, per_sample)
    return Problem(taken, data, n, mask_vector(taken, params, mask), null_loss, measured_on, asked), n


def estimate(
    problem: Problem,
    settings: Settings,
    predict: bool = True,
    root: Array | None = None,
    step: int = 0,
    spectrum: Spectrum | None = None,
) -> Estimate:
    """The estimate of a problem; spectrum: that at w*, if it is known. root, step: of the chains' keys."""
    moved = descent.Descended(problem.split, 0.0, 0.0)
    if settings.descend:
        moved = descent.descended(problem.split, problem.data, problem.mask, settings.descend)
        problem, spectrum = problem._replace(split=moved.split), None
    losses = np.asarray(measured_losses(problem.split.form, problem.split.fixed, problem.split.vector, problem.data))
    loss = float(finite_losses(losses.astype(np.float64)).mean())
    if predict and spectrum is None:
        spectrum = spectrum_at(problem)
    top = math.nan
    if spectrum is None and (settings.eps is None or settings.gamma == 0):
        low, top = ends_of(problem.split, problem.data, problem.mask)
    elif spectrum is not None:
        low, top = spectrum.h_min, spectrum.h_max
    if settings.gamma == 0:
        require_no_flat_direction(low, top)
    drawn_with = settings if settings.eps is not None else replace(settings, eps=chosen_eps(settings, top))
    target = sampling.Target(problem.split, problem.data, problem.mask, problem.measured_on, problem.arguments)
    traces = sampling.draws(target, drawn_with, root, step, problem.asked)
    for _ in range(TRIES if settings.eps is None and settings.sampler != "hmc" else 0):
        if (shorter := shorter_eps(traces, drawn_with)) is None:
            break
        drawn_with = replace(drawn_with, eps=shorter)
        traces = sampling.draws(target, drawn_with, root, step, problem.asked)
    moving = problem.moving
    return of_traces(
        traces,
        drawn_with,
        loss,
        problem.null_loss,
        float(np.linalg.norm(moving)),
        len(moving),
        spectrum if predict else None,
        top,
        (moved.distance, moved.gain),
    )


def spectrum_at(problem: Problem) -> Spectrum:
    """The spectrum at w*, once for all nbeta and gamma."""
    return spectrum_of(problem.split, problem.data, problem.mask)


def chosen_eps(settings: Settings, top: float) -> float:
    """A tenth of the bound of stability, at which the step size adds about 1 / 40."""
    return STEP / (settings.nbeta * max(top, 0.0) + settings.gamma)


def shorter_eps(traces: Mapping[str, np.ndarray], settings: Settings) -> float | None:
    """A smaller eps where the one chosen by the Hessian at w* is too large where the chains go; None where it is not.

    The Hessian bounds eps for a quadratic loss alone. Where w^4 decides the draws meet another curvature: along u it is
    about (D - 1) E[u.grad L] / E|u|^2 of a loss of degree D. A quarter where a chain diverged, or steps are rejected.
    """
    eps, acceptance = settings.step_size, traces["acceptance"]
    if not np.isfinite(traces["excess"]).all():
        return eps / SHORTER
    if np.isfinite(acceptance).any() and float(np.nanmean(acceptance)) < REJECTED:
        return eps / SHORTER
    slope, excess, distance = (traces[name][:, settings.burn_in :] for name in ("slope", "excess", "distance"))
    if not (excess.mean() > 0 and slope.mean() > 0):
        return None  # off a minimum the degree says nothing
    met = settings.nbeta * (slope.mean() / excess.mean() - 1) * slope.mean() / np.mean(distance**2) + settings.gamma
    return STEP / met if eps * met > MET * STEP else None


def require_no_flat_direction(low: float, high: float) -> None:
    """`ConfigError` unless the smallest eigenvalue is above a millionth of the largest, as gamma 0 needs."""
    require(
        low > FLAT * high,
        f"with gamma 0 nothing bounds the flat directions at these parameters (Hessian eigenvalues from {low:.2g} to "
        f"{high:.2g}); choose gamma above 0",
    )


# --- several checkpoints ---


def llc_over_training(
    per_sample_loss: PerSampleLoss,
    checkpoints: Iterable[tuple[int, Any]],
    data: Any,
    *,
    keep: str | Path | None = None,
    **settings: Any,
) -> list[Estimate]:
    """The LLC at each of several (step, params), by one compiled program; settings are those of `llc`.

    keep: a folder in which each estimate is stored as it is made, one file for each step; repeating the call continues
    after the last of them. A file of other parameters, data or settings is refused (`StoreError`), never trusted by its
    name.
    """
    from icl_lab.analysis.llc import kept

    found = []
    for step, params in checkpoints:
        stored = None if keep is None else kept.read(Path(keep), step, kept.digest(params, data, settings))
        if stored is None:
            stored = llc(per_sample_loss, params, data, **settings)
            if keep is not None:
                kept.write(Path(keep), step, kept.digest(params, data, settings), stored)
        found.append(stored)
    return found
