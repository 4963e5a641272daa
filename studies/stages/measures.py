"""Measures on runs whose development is in analysis/develop/: claims read these tables, and estimate little besides.

A setting is a name of `analysis.develop.SETTINGS`; a checkpoint is usable where its estimate is (`store.llc_rows`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from icl_lab.analysis.llc.checkpoints import estimate_run
from icl_lab.analysis.llc.settings import Settings
from icl_lab.store import layout
from icl_lab.store.llc_rows import read_development, read_table
from icl_lab.store.llc_rows import usable as usable_rows
from icl_lab.store.lock import locked
from icl_lab.store.metrics import read_metrics
from icl_lab.store.readers import read_csv
from icl_lab.store.rundir import read_config

if TYPE_CHECKING:
    import pandas as pd

Measure = Callable[..., float]
OfSeed = Sequence[Path]
FEWEST = 3  # checkpoints that a slope says something of
FEWEST_RANKS = 5  # the same of a partial rank correlation
LATE = 2 / 3  # of training


@lru_cache(maxsize=512)
def facts(run: Path) -> dict[str, Any]:
    """develop.json of a run."""
    return read_development(run)


@lru_cache(maxsize=512)
def table(run: Path) -> pd.DataFrame:
    """A run's checkpoints, in order."""
    suffixes = [f"_{name}" for name in facts(run)["settings"]]
    rows = read_table(run / layout.DEVELOP_TABLE, ("step", "loss"), suffixes=suffixes)
    return rows.sort_values("step").reset_index(drop=True)


@lru_cache(maxsize=512)
def metrics(run: Path) -> pd.DataFrame:
    """The metrics of all checkpoints of a run, in order: more of them than have an LLC."""
    return read_csv(run / layout.DEVELOPMENTAL_METRICS, ("step",)).sort_values("step").reset_index(drop=True)


def usable(run: Path, setting: str) -> pd.DataFrame:
    """Its usable checkpoints at a setting."""
    rows = table(run)
    return rows[usable_rows(rows, f"_{setting}")]


# --- the LLC ---


def loss_slope(setting: str) -> Measure:
    """The slope of the LLC in the loss over -nbeta: 1 where all draws have one loss; nan where chains diverge."""
    return lambda run: float(facts(run)["lines"].get(setting, {}).get("slope_over_minus_nbeta", math.nan))


def loss_slope_over(setting: str, usable_only: bool = False, after_first: bool = False) -> Measure:
    """The same over some checkpoints: those that are usable, or all after the first, which is far from the others.

    nan for fewer than three.
    """

    def measure(run: Path) -> float:
        rows = usable(run, setting) if usable_only else table(run)
        return _slope(run, setting, rows[rows["step"] > 0] if after_first else rows)

    return measure


def loss_slope_of_rise(setting: str) -> Measure:
    """The same up to the checkpoint of the largest LLC; nan where that leaves fewer than three checkpoints."""
    return lambda run: _slope(run, setting, table(run).iloc[: _peak(run, setting) + 1])


def _slope(run: Path, setting: str, rows: pd.DataFrame) -> float:
    rows = rows.dropna(subset=[f"llc_{setting}"])
    if len(rows) < FEWEST:
        return math.nan
    slope = np.polyfit(rows[f"loss_{setting}"].to_numpy(float), rows[f"llc_{setting}"].to_numpy(float), 1)[0]
    return float(-slope / facts(run)["settings"][setting]["nbeta"])


def late_llc(setting: str) -> Callable[[Path], float]:
    """The mean LLC of the usable checkpoints in the last third of training; nan if there is none."""

    def measure(run: Path) -> float:
        rows, last = usable(run, setting), read_config(run).training.steps
        return float(rows[rows["step"] >= LATE * last][f"llc_{setting}"].mean())

    return measure


def late_llc_over(setting: str) -> Measure:
    """A run's late LLC over another's."""
    return lambda run, other: late_llc(setting)(run) / late_llc(setting)(other)


def late_over_largest(setting: str) -> Measure:
    """The late LLC over the largest of the usable checkpoints."""
    return lambda run: late_llc(setting)(run) / float(usable(run, setting)[f"llc_{setting}"].max())


def decline(setting: str) -> Measure:
    """How far the LLC falls from its largest to the end, over the largest."""

    def measure(run: Path) -> float:
        values = table(run)[f"llc_{setting}"].to_numpy(float)
        return float(1 - values[-1] / np.nanmax(values))

    return measure


def decline_over_norm_null(setting: str, with_loss: bool = False) -> Measure:
    """The LLC's change from its largest to the end over that due to the growth of |w*|, alone or with the loss.

    The growth: the change at the peak when gamma is multiplied by (|w_end| / |w_peak|)^2; nan where that diverges. The
    loss, which still falls: nbeta (L_peak - L_end), which raises the LLC of saturated chains.
    """

    def measure(run: Path) -> float:
        settings, rows = Settings(**facts(run)["settings"][setting]), table(run)
        peak, end = rows.iloc[_peak(run, setting)], rows.iloc[-1]
        null_settings = rescaled_settings(settings, float(end[f"norm_{setting}"] / peak[f"norm_{setting}"]))
        with locked(run, timeout=math.inf):
            rescaled = next(estimate_run(run, null_settings, str(int(peak["step"]))))
        of_norm = rescaled["llc"] - peak[f"llc_{setting}"]
        of_loss = settings.nbeta * (peak[f"loss_{setting}"] - end[f"loss_{setting}"]) if with_loss else 0.0
        return float((end[f"llc_{setting}"] - peak[f"llc_{setting}"]) / (of_norm + of_loss))

    return measure


def rescaled_settings(settings: Settings, growth: float) -> Settings:
    """The settings of the same radius relative to weights `growth` times as large; eps gamma is kept."""
    eps = None if settings.eps is None else settings.eps / growth**2
    return replace(settings, gamma=settings.gamma * growth**2, eps=eps)


def _peak(run: Path, setting: str) -> int:
    return int(np.nanargmax(table(run)[f"llc_{setting}"].to_numpy(float)))


# --- over runs of different length ---


def moves_with_length(step_of: Callable[[Path], float]) -> Measure:
    """The exponent of a milestone's step in the schedule's length, by least squares of the logarithms.

    0: at one step whatever the schedule; 1: at one fraction of it; 1/2: at one integral of a learning rate that rises
    in proportion to step / length. nan where a run has no such milestone.
    """

    def measure(runs: OfSeed) -> float:
        lengths = [read_config(run).training.steps for run in runs]
        steps = np.array([step_of(run) for run in runs])
        return float(np.polyfit(np.log(lengths), np.log(steps), 1)[0]) if np.isfinite(steps).all() else math.nan

    return measure


def peak_step(setting: str) -> Callable[[Path], float]:
    """The step of the checkpoint with the largest LLC."""
    return lambda run: float(table(run)["step"].iloc[_peak(run, setting)])


def dip_step(run: Path) -> float:
    """The step of the record with the least squared prediction."""
    rows = metrics(run)
    return float(rows["step"].iloc[int(np.argmin(rows["id_squared_prediction"]))])


def step_of_half(column: str) -> Callable[[Path], float]:
    """The step of the first record at which a metric is half of what it ends at, or more."""

    def step_of(run: Path) -> float:
        rows = metrics(run)
        values = rows[column].to_numpy(float) / float(rows[column].iloc[-1])
        return float(rows["step"].iloc[int(np.argmax(values >= 0.5))])

    return step_of


# --- behaviour and structure ---


def end_of(column: str, times: float = 1.0) -> Measure:
    """A column of `table` at the last checkpoint."""
    return lambda run: float(table(run)[column].iloc[-1]) * times


def least_of(column: str) -> Measure:
    """A metric's least value over training."""
    return lambda run: float(metrics(run)[column].min())


def largest(column: str) -> Measure:
    """A column's largest value over the checkpoints of `table`."""
    return lambda run: float(table(run)[column].max())


def off_losses_by_position(published: Sequence[float]) -> Measure:
    """max_k |l_k / published_k - 1| of the squared errors l_k, on noisy labels, at the last checkpoint."""

    def measure(run: Path) -> float:
        last = table(run).iloc[-1]
        losses = np.array([last[f"id_mse_noisy_{k}"] for k in range(1, len(published) + 1)], float)
        return float(np.abs(losses / np.array(published) - 1).max())

    return measure


# --- essential dynamics ---


def rank_of_first_share(run: Path) -> float:
    """The share of random walks, of the run's own steps, whose first component has less of the variance."""
    return float(facts(run)["dynamics"]["explained_rank"][0])


def p_of_forms(run: Path) -> float:
    """The share of random walks, of the run's own steps, that have as many forms; nan below fifty checkpoints."""
    share = facts(run)["dynamics"]["p_forms"]
    return math.nan if share is None else float(share)


# --- over pools of M tasks ---


def rank_with_tasks(setting: str, most: float) -> Measure:
    """Spearman's correlation of the late LLC and M over pools of at most so many tasks; nan where a pool has none."""
    from scipy.stats import spearmanr

    def measure(runs: OfSeed) -> float:
        by_tasks = {tasks: run for run in runs if (tasks := read_config(run).data.num_tasks) <= most}
        rank = spearmanr([*by_tasks], [late_llc(setting)(run) for run in by_tasks.values()]).statistic
        return round(float(rank), 12)  # .8, and not a little less

    return measure


def pool_over_infinite(setting: str, num_tasks: int) -> Measure:
    """The late LLC of a pool of so many tasks over that of infinitely many."""

    def measure(runs: OfSeed) -> float:
        return float(late_llc_over(setting)(_of_tasks(runs, num_tasks), _of_tasks(runs, math.inf)))

    return measure


# --- with alignment ---


def beyond_other_seed(rank: Callable[[Any, Any], float]) -> Measure:
    """A correlation within a run less that of its LLC with another seed's curve.

    Seeds develop alike, so their curves correlate even where a run's own LLC carries no information.
    """
    return lambda run, other: rank(run, run) - rank(run, other)


def rank_with_alignment(setting: str, after_peak: bool = False) -> Callable[[Path, Path], float]:
    """Spearman's partial correlation of the LLC and the cosine with gradient descent of as many steps, given the step.

    Of the first run's usable checkpoints and the second's cosine, which may be its own; after_peak: from the first's
    largest cosine on.
    """

    def measure(run: Path, of_cosine: Path) -> float:
        rows, cosines = usable(run, setting), _cosines(of_cosine)
        rows = rows.assign(cosine=[cosines[step] for step in rows["step"]])
        if after_peak:
            run_cosines = _cosines(run)
            rows = rows[rows["step"] >= max(run_cosines, key=lambda step: run_cosines[step])]
        return _rank_given_step(rows, f"llc_{setting}", "cosine")

    return measure


def _cosines(run: Path) -> dict[int, float]:
    return {row["step"]: row["eval_model_cos"] for row in read_metrics(run, ["eval_model_cos"])}


def rank_with_distance(setting: str, num_tasks: int) -> Callable[[OfSeed, OfSeed], float]:
    """The same of the LLC and the distance to ridge, of the pool of so many tasks."""

    def measure(runs: OfSeed, of_distance: OfSeed) -> float:
        run, other = (_of_tasks(seed_runs, num_tasks) for seed_runs in (runs, of_distance))
        rows, distances = usable(run, setting), metrics(other).set_index("step")["id_delta_ridge"]
        rows = rows.assign(distance=distances.reindex(rows["step"]).to_numpy()).dropna(subset=["distance"])
        return _rank_given_step(rows, f"llc_{setting}", "distance")

    return measure


def _of_tasks(runs: OfSeed, num_tasks: float) -> Path:
    return {read_config(run).data.num_tasks: run for run in runs}[num_tasks]


def _rank_given_step(rows: pd.DataFrame, one: str, other: str) -> float:
    """Spearman's partial correlation of two columns a and b, given the step s.

        r = (r_ab - r_as r_bs) / sqrt((1 - r_as^2) (1 - r_bs^2)):

    0 for two curves whose ranks share only a linear trend in the step's rank; curves with the same bend still
    correlate. nan for fewer than five rows, and where the ranks of a or b are those of the step or their reverse.
    """
    from scipy.stats import spearmanr

    if len(rows) < FEWEST_RANKS:
        return math.nan
    (_, together, of_one), (_, _, of_other), _ = spearmanr(rows[[one, other, "step"]].to_numpy(float)).statistic
    left = (1 - of_one**2) * (1 - of_other**2)
    return float((together - of_one * of_other) / math.sqrt(left)) if left > 0 else math.nan
