"""What the LLC over training measures: on runs whose development has sixteen chains a checkpoint, and branches.

Three things may say what an LLC is without it: the Hessian at the same checkpoint, the loss, and the training step.
Each is asked how much of the LLC's variance over a run's training it explains, the last two by what other seeds do. A
stage is more than these where its change differs from each of its nulls (`analysis.development.nulls`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from icl_lab.analysis.development import nulls
from icl_lab.analysis.development.found_stages import false_stages
from icl_lab.analysis.development.nulls import Estimates
from icl_lab.analysis.development.of_loss import FEWEST, OfLoss, fit
from icl_lab.analysis.development.smooth_curve import LEAST
from icl_lab.store import layout
from icl_lab.store.llc_rows import AT_THIS_NBETA, CURVATURE, LLC
from icl_lab.store.readers import read_csv
from icl_lab.store.rundir import read_config
from icl_lab.studies.stages.measures import facts, usable

SETTING = "default"
SIMULATED = 25  # curves of each run: 200 of eight


@lru_cache(maxsize=512)
def estimates(run: Path) -> Estimates:
    """The estimates of a run's checkpoints whose chains sampled."""
    own = facts(run)["estimates"][SETTING]
    every = Estimates(**{name: np.array(values, bool if name == "sampled" else float) for name, values in own.items()})
    return every.at(every.sampled)


@lru_cache(maxsize=512)
def of_loss(others: tuple[Path, ...]) -> OfLoss | None:
    """The function of the loss that these runs' LLCs follow; None where they have too few."""
    known = [estimates(run) for run in others]
    losses = np.concatenate([own.losses for own in known] or [np.zeros(0)])
    return fit(losses, np.concatenate([own.llc.mean(axis=1) for own in known])) if len(losses) >= FEWEST else None


# --- verdicts ---


def share_of_verdicts(*verdicts: str) -> Callable[[Path], float]:
    """The share of the usable checkpoints whose estimate has one of these verdicts; nan without any."""

    def measure(run: Path, *others: Path) -> float:
        said = usable(run, SETTING)[f"verdict_{SETTING}"]
        return float(said.isin(verdicts).mean()) if len(said) else math.nan

    return measure


curvatures, plateaus = share_of_verdicts(CURVATURE), share_of_verdicts(LLC, AT_THIS_NBETA)


# --- what explains it ---


def by_curvature(run: Path, *others: Path) -> float:
    """The share that the quadratic prediction explains, without a fit."""
    own = estimates(run)
    return _explained(own, own.predicted)


def by_rescaled_loss(run: Path, *others: Path) -> float:
    """The share that nbeta times the fall of the loss explains, which is the LLC of saturated chains."""
    own = estimates(run)
    nbeta = float(facts(run)["settings"][SETTING]["nbeta"])
    return _explained(own, own.llc[:1].mean(axis=1) + nbeta * (own.losses[:1] - own.losses))


def by_loss(run: Path, *others: Path) -> float:
    """The share that the loss explains, by a function fitted to the LLCs of other seeds; nan with too few of these."""
    own, function = estimates(run), of_loss(others)
    return math.nan if function is None else _explained(own, function.at(own.losses)[0])


def by_step(run: Path, *others: Path) -> float:
    """The share that the training step explains, by the mean LLC of other seeds at it."""
    own = estimates(run)
    by_run = [dict(zip(other.steps, other.llc.mean(axis=1), strict=True)) for other in map(estimates, others)]
    found = [[values[step] for values in by_run if step in values] for step in own.steps]
    return _explained(own, np.array([np.mean(values) if values else math.nan for values in found]))


def _explained(own: Estimates, said: np.ndarray) -> float:
    """1 - mean (LLC - said)^2 / var LLC over the sampled checkpoints at which something is said; nan for few."""
    known, llc = np.isfinite(said), own.llc.mean(axis=1)
    if known.sum() < LEAST:
        return math.nan
    return float(1 - np.mean((llc - said)[known] ** 2) / np.var(llc[known]))


# --- stages ---


def beyond(run: Path, *others: Path) -> float:
    """How many changes differ from all of their nulls: the largest one, and those over stages.

    nan where that is not known: without any change, and where one differs from all nulls but those that cannot be
    computed.
    """
    found = changes(run, *others)
    if not found or any(_is_open(one) for one in found):
        return math.nan
    return float(sum(one.differs for one in found))


def _is_open(one: nulls.Change) -> bool:
    """Whether a null of a change cannot be computed, and the change differs from the others."""
    tests = [
        (one.delta_llc, one.p_zero),
        (one.delta_predicted, one.p_predicted),
        (one.delta_of_loss, one.p_of_loss),
        (one.delta_annealed, one.p_annealed),
    ]
    known = [p for delta, p in tests if math.isfinite(delta)]
    return len(known) < len(tests) and all(p is not None and p < nulls.LEVEL for p in known)


def changes(run: Path, *others: Path) -> list[nulls.Change]:
    """The largest change of the LLC, and those over its stages, with the function of the loss of other seeds."""
    own, function = estimates(run), of_loss(others)
    rows = ([largest] if (largest := facts(run)["largest_changes"].get(SETTING)) else []) + stages(run)
    found = dict[tuple[float, float], nulls.Change]()
    for row in rows:
        start, end = (int(np.flatnonzero(own.steps == row[name])[0]) for name in ("start", "end"))
        one = nulls.change(SETTING, own, start, end, function)
        found[row["start"], row["end"]] = one._replace(
            delta_annealed=_number(row["delta_annealed"]),
            p_annealed=_number(row["p_annealed"]),
            p_of_loss=1.0 if function is None else one.p_of_loss,
        )
    return [*found.values()]


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


@lru_cache(maxsize=512)
def stages(run: Path) -> list[dict[str, Any]]:
    """The stages between the LLC's milestones, as stages.csv has them."""
    if not facts(run)["stages"]:
        return []
    numbers = ("start", "end", "delta_annealed", "p_annealed")
    rows = read_csv(run / layout.DEVELOP_STAGES, numbers, ("setting",))
    return [{str(name): row[name] for name in numbers} for row in rows[rows["setting"] == SETTING].to_dict("records")]


def annealed_over(run: Path, *others: Path) -> float:
    """The largest change once both ends are annealed, over the change itself; nan where a branch was not sampled."""
    largest = facts(run)["largest_changes"].get(SETTING)
    return math.nan if largest is None else _number(largest["delta_annealed"]) / largest["delta_llc"]


def false_by_curvature(run: Path, *others: Path) -> float:
    """The share of simulated curves of which something is claimed where the quadratic prediction is the truth."""
    own = estimates(run)
    if len(own.steps) < LEAST:
        return math.nan
    return false_stages(own, own.predicted, 0.0, of_loss(others), SIMULATED, _rng(run))


def false_by_loss(run: Path, *others: Path) -> float:
    """The same where the function of the loss that other seeds follow is the truth."""
    own, function = estimates(run), of_loss(others)
    if len(own.steps) < LEAST or function is None:
        return math.nan
    return false_stages(own, function.at(own.losses)[0], function.scatter, function, SIMULATED, _rng(run))


def _rng(run: Path) -> np.random.Generator:
    """A generator of the run's own: another for each seed."""
    return np.random.default_rng(int(read_config(run).init_seed))
