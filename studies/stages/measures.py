"""Measures on runs whose development is in analysis/develop/: claims read these tables, and estimate little besides.

A setting is a name of `analysis.develop.SETTINGS`; a checkpoint is healthy where its chains are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from analysis.measures.llc_health import HEALTHY
from analysis.measures.llc_run import estimate_run
from analysis.measures.llc_settings import Settings
from store import layout
from store.lock import locked
from store.readers import read_csv, read_json
from store.rundir import read_config, read_metrics

if TYPE_CHECKING:
    import pandas as pd

Measure = Callable[..., float]
OfSeed = Sequence[Path]
FEWEST = 3  # checkpoints that a rank correlation says something of


@lru_cache(maxsize=512)
def facts(run: Path) -> dict[str, Any]:
    """develop.json of a run."""
    return dict(read_json(run / layout.DEVELOP))


@lru_cache(maxsize=512)
def table(run: Path) -> pd.DataFrame:
    """A run's checkpoints, in order."""
    health = [f"health_{name}" for name in facts(run)["settings"]]
    return read_csv(run / layout.DEVELOP_TABLE, ("step", "loss"), health).sort_values("step").reset_index(drop=True)


def healthy(run: Path, setting: str) -> pd.DataFrame:
    """Its healthy checkpoints at a setting."""
    rows = table(run)
    return rows[rows[f"health_{setting}"] == HEALTHY]


# --- the LLC ---


def loss_slope(setting: str) -> Measure:
    """The slope of the LLC in the loss over -nbeta: 1 where draws have one loss at every checkpoint."""
    return lambda run: float(facts(run)["lines"][setting]["slope_over_minus_nbeta"])


def loss_slope_of_rise(setting: str) -> Measure:
    """The same up to the checkpoint of the largest LLC."""

    def measure(run: Path) -> float:
        rows = table(run).iloc[: _peak(run, setting) + 1]
        slope = np.polyfit(rows[f"loss_{setting}"].to_numpy(float), rows[f"llc_{setting}"].to_numpy(float), 1)[0]
        return float(-slope / facts(run)["settings"][setting]["nbeta"])

    return measure


def end_llc(setting: str) -> Measure:
    """The LLC at the last checkpoint; nan where that is not healthy."""

    def measure(run: Path) -> float:
        last = table(run).iloc[-1]
        return float(last[f"llc_{setting}"]) if last[f"health_{setting}"] == HEALTHY else math.nan

    return measure


def end_llc_over(setting: str) -> Measure:
    """A run's LLC at the end over another's, whatever their health, which stands in the tables."""
    return lambda run, other: float(table(run)[f"llc_{setting}"].iloc[-1] / table(other)[f"llc_{setting}"].iloc[-1])


def end_over_largest(setting: str) -> Measure:
    """The LLC at the end over the largest of the healthy checkpoints."""
    return lambda run: float(table(run)[f"llc_{setting}"].iloc[-1] / healthy(run, setting)[f"llc_{setting}"].max())


def claimed_stages(run: Path) -> float:
    """How many stages leave their nulls at both unsaturated settings."""
    return float(facts(run)["claimed"])


def claimed_stages_any_health(run: Path) -> float:
    """The same by the rule committed first: ends are the checkpoints nearest to milestones, healthy or not."""
    return float(facts(run)["claimed_any_health"])


def decline(setting: str) -> Measure:
    """How far the LLC falls from its largest to the end, over the largest."""

    def measure(run: Path) -> float:
        values = table(run)[f"llc_{setting}"].to_numpy(float)
        return float(1 - values[-1] / values.max())

    return measure


def decline_over_norm_null(setting: str) -> Measure:
    """The LLC's change from its largest to the end over what the growth of |w*| alone makes of it.

    The latter is the change at the peak when gamma is multiplied by (|w_end| / |w_peak|)^2.
    """

    def measure(run: Path) -> float:
        settings, rows = Settings(**facts(run)["settings"][setting]), table(run)
        peak, end = rows.iloc[_peak(run, setting)], rows.iloc[-1]
        gamma = settings.gamma * float(end[f"norm_{setting}"] / peak[f"norm_{setting}"]) ** 2
        with locked(run, timeout=math.inf):
            tighter = next(estimate_run(run, replace(settings, gamma=gamma), str(int(peak["step"]))))
        changes = (end[f"llc_{setting}"] - peak[f"llc_{setting}"], tighter["llc"] - peak[f"llc_{setting}"])
        return float(changes[0] / changes[1])

    return measure


def _peak(run: Path, setting: str) -> int:
    return int(np.argmax(table(run)[f"llc_{setting}"].to_numpy(float)))


# --- over runs of different length ---


def moves_with_length(step_of: Callable[[Path], float]) -> Measure:
    """The exponent of a milestone's step in the schedule's length, by least squares of the logarithms.

    0: at one step whatever the schedule; 1: at one fraction of it; 1/2: at one integral of a learning rate that rises
    in proportion to step / length.
    """

    def measure(runs: OfSeed) -> float:
        lengths = [read_config(run).training.steps for run in runs]
        return float(np.polyfit(np.log(lengths), np.log([step_of(run) for run in runs]), 1)[0])

    return measure


def peak_step(setting: str) -> Callable[[Path], float]:
    """The step of the checkpoint with the largest LLC."""
    return lambda run: float(table(run)["step"].iloc[_peak(run, setting)])


def dip_step(run: Path) -> float:
    """The step of the checkpoint with the least squared prediction."""
    rows = table(run)
    return float(rows["step"].iloc[int(np.argmin(rows["id_squared_prediction"]))])


# --- behaviour and structure ---


def end_of(column: str, times: float = 1.0) -> Measure:
    """A metric at the last checkpoint."""
    return lambda run: float(table(run)[column].iloc[-1]) * times


def least_of(column: str) -> Measure:
    """A metric's least value over training."""
    return lambda run: float(table(run)[column].min())


# --- essential dynamics ---


def first_share_over_walks(run: Path) -> float:
    """The first component's share of the variance over that of random walks of the same steps."""
    dynamics = facts(run)["dynamics"]
    return float(dynamics["explained"][0] / dynamics["null"]["explained"][0])


def forms_over_walks(run: Path) -> float:
    """How many forms there are, over how many random walks of the same steps have on average."""
    dynamics = facts(run)["dynamics"]
    return float(len(dynamics["forms"]) / dynamics["null"]["forms"])


# --- over pools of M tasks ---


def rank_with_tasks(setting: str) -> Measure:
    """Spearman's correlation, over pools, of the LLC at the end and M."""
    from scipy.stats import spearmanr

    def measure(runs: OfSeed) -> float:
        tasks = [read_config(run).data.num_tasks for run in runs]
        order = np.argsort(tasks)
        llcs = np.array([table(runs[one])[f"llc_{setting}"].iloc[-1] for one in order], float)
        return float(spearmanr(np.arange(len(order)), llcs).statistic)

    return measure


def few_over_infinite(setting: str, num_tasks: int) -> Measure:
    """The LLC at the end of a pool of so many tasks over that of infinitely many."""

    def measure(runs: OfSeed) -> float:
        by_tasks = {read_config(run).data.num_tasks: table(run)[f"llc_{setting}"].iloc[-1] for run in runs}
        return float(by_tasks[num_tasks] / by_tasks[math.inf])

    return measure


# --- beside alignment ---


def rank_with_alignment(setting: str) -> Measure:
    """Spearman's correlation, over healthy checkpoints, of the LLC and the cosine with one step of gradient descent.

    0 for fewer than three of these.
    """
    from scipy.stats import spearmanr

    def measure(run: Path) -> float:
        cosines = {row["step"]: row["model_cos"] for row in read_metrics(run, ["step", "model_cos"])}
        rows = healthy(run, setting)
        if len(rows) < FEWEST:
            return 0.0
        return float(spearmanr([cosines[step] for step in rows["step"]], rows[f"llc_{setting}"]).statistic)

    return measure
