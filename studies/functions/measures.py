"""What the claims on function classes measure of a run: losses by position, excesses, shifts, and pools of a seed.

Losses of numbers are squared errors over the variance of the class's labels, for linear functions error / D; of labels
-1 and 1 and of classes they are log losses in nats. Entry k of a list has seen k pairs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from icl_lab.analysis.loaded_run import load_run
from icl_lab.baselines.functions.mixture import class_probabilities
from icl_lab.families.functions import task
from icl_lab.families.functions.classes.mixtures import members_posteriors
from icl_lab.families.functions.config import FunctionsConfig
from icl_lab.families.functions.outputs import LEARNT
from icl_lab.src.prng import Purpose
from icl_lab.src.registries import MODEL
from icl_lab.store import layout
from icl_lab.store.metrics import read_metrics
from icl_lab.store.readers import expecting, read_csv
from icl_lab.store.rundir import read_config
from icl_lab.studies.runs import summary_part

ERROR = 0.1  # error / D at which a curriculum and training without one are compared
HALF = 0.5  # of the pool's posterior's distance to the reference
OPEN = (0.2, 0.8)  # posterior weights between which two noise levels are not told apart
PROMPTS = 4000  # on which a mixture's predictions are compared
EARLIER = 5000  # steps, at which pools are read too

Measure = Callable[[Path], float]


@lru_cache(maxsize=512)
def config_of(run: Path) -> FunctionsConfig:
    """A run's config."""
    config: FunctionsConfig = read_config(run)
    return config


def losses(run: Path, who: str = MODEL, where: str = "id") -> np.ndarray:
    """The losses [K] of the model, or of a predictor, on prompts as in training or outside of the pool."""
    return np.array(summary_part(run, "headline")[f"{where}_{who}_losses"], float)


def excesses(run: Path, over: str) -> np.ndarray:
    """By how much the model's loss is above a predictor's [K], on the prompts that both have."""
    return np.array(summary_part(run, "headline")[f"id_{over}_excesses"], float)


def error_at(times: int, who: str = MODEL) -> Measure:
    """The loss after so many times D pairs."""
    return lambda run: float(losses(run, who)[times * config_of(run).data.dim])


def largest_error_from(beyond: int) -> Measure:
    """The largest loss after D and so many pairs or more."""
    return lambda run: float(losses(run)[config_of(run).data.dim + beyond :].max())


def largest_excess(over: str, first: int = 0, below_dim: bool = False) -> Measure:
    """The largest excess over a predictor from a position on, or up to D pairs."""

    def measure(run: Path) -> float:
        end = config_of(run).data.dim if below_dim else None
        return float(excesses(run, over)[first:end].max())

    return measure


def largest_excess_of(who: str, over: str, first: int = 0) -> Measure:
    """The same of another predictor than the model."""
    return lambda run: float((losses(run, who) - losses(run, over))[first:].max())


def last_excess(over: str) -> Measure:
    """The excess over a predictor at the last position."""
    return lambda run: float(excesses(run, over)[-1])


def gain(run: Path, where: str = "id") -> float:
    """What a model gains from the context over what the reference gains, over all positions."""
    return float(summary_part(run, "headline")[f"{where}_scale"])


def least_gain(runs: Sequence[Path]) -> float:
    """The least gain of a seed's runs, one for each class."""
    return min(gain(run) for run in runs)


def learns_others(run: Path) -> float:
    """1 where a model gains half of what the reference gains, on functions that training did not have."""
    return float(gain(run, "ood") >= LEARNT)


# --- shifts ---


@lru_cache(maxsize=128)
def shifts(run: Path) -> Mapping[str, Mapping[str, np.ndarray]]:
    """Under each shift, its positions, and excesses over the best baseline over the variance of labels."""
    numbers, texts = ("position", "loss", "excess"), ("shift", "predictor")
    table = read_csv(run / layout.FUNCTION_SHIFTS, numbers, texts)
    found = {}
    for name, part in table.groupby("shift", sort=False):
        model, prior = (part[part["predictor"] == who] for who in (MODEL, "prior"))
        found[str(name)] = {
            "position": model["position"].to_numpy(int),
            "excess": model["excess"].to_numpy(float) / prior["loss"].to_numpy(float),
        }
    return found


def last_under(shift: str) -> Measure:
    """The excess over the best baseline under a shift at the last position at which it is defined."""
    return lambda run: float(shifts(run)[shift]["excess"][-1])


# --- two noise levels ---


def share_of_averaging(run: Path) -> float:
    """Where a model lies between the likelier ridge, 0, and the average of both that Bayes predicts, 1.

    The slope of (model - likelier) on (Bayes - likelier), without a constant, over predictions at which the posterior
    weight of a noise level is .2 to .8.
    """
    loaded = load_run(run)
    batch = task.prompts(loaded.config, Purpose.TEST_SET, PROMPTS)
    parts = members_posteriors(loaded.config.function.members, np.asarray(batch.x), np.asarray(batch.y))
    weights, means = class_probabilities(parts), np.stack([part.mean for part in parts], axis=1)  # [B, C, K]
    average = (weights * means).sum(axis=1)
    likelier = np.take_along_axis(means, weights.argmax(axis=1)[:, None], axis=1)[:, 0]
    is_open = (weights[:, 0] >= OPEN[0]) & (weights[:, 0] <= OPEN[1])
    way = (average - likelier)[is_open]
    said = (task.predictions_of(loaded.model, loaded.params, batch) - likelier)[is_open]
    return float((said * way).sum() / (way**2).sum())


# --- training with and without a curriculum ---


@lru_cache(maxsize=512)
def history(run: Path) -> tuple[np.ndarray, np.ndarray]:
    """The steps of a run's records, and the loss after 2 D pairs at each."""
    at = 2 * config_of(run).data.dim
    with expecting(run / layout.METRICS, "metrics with losses by position"):
        records = [(record["step"], float(record["eval_id_errors"][at])) for record in read_metrics(run)]
    steps, errors = zip(*records, strict=True)
    return np.array(steps), np.array(errors)


def steps_to_error(run: Path) -> float:
    """The first recorded step at which the loss after 2 D pairs is at most .1; infinite if there is none."""
    steps, errors = history(run)
    below = steps[errors <= ERROR]
    return float(below[0]) if len(below) else math.inf


def is_sooner(run: Path, other: Path) -> float:
    """1 where a run comes to the error at an earlier step than the other, else 0."""
    return float(steps_to_error(run) < steps_to_error(other))


# --- sizes ---


def error_over(dim: int) -> Callable[[Sequence[Path], Sequence[Path]], float]:
    """The loss after 2 D pairs over that of another size, of linear functions of so many inputs."""

    def measure(runs: Sequence[Path], others: Sequence[Path]) -> float:
        mine, other = (next(run for run in group if config_of(run).data.dim == dim) for group in (runs, others))
        return error_at(2)(mine) / error_at(2)(other)

    return measure


# --- pools ---


def pool_size(run: Path) -> float:
    """M."""
    return config_of(run).data.num_functions


def reference_of(run: Path) -> str:
    """What stands for Bayes on fresh functions."""
    return str(summary_part(run, "headline")["ood_reference"])


def distance_over_pool(run: Path, step: int | None = None) -> float:
    """On fresh functions, the model's excess over the reference, divided by the excess of the pool's posterior.

    1 where it memorises; infinite where the pool's posterior is no worse than the reference, as with very many
    functions. An excess of squared errors over Bayes is the squared distance to Bayes. At a step it is that of the
    record's prompts, fewer than those of the test.
    """
    headline: dict[str, Any] = summary_part(run, "headline")
    model, best, pool = (headline[f"ood_{who}_loss"] for who in (MODEL, reference_of(run), "pool"))
    if step is not None:
        (model,) = (r["eval_ood_loss"] for r in read_metrics(run, ["step", "eval_ood_loss"]) if r["step"] == step)
    return float((model - best) / (pool - best)) if pool > best else math.inf


def log2_half(runs: Sequence[Path], step: int | None = None) -> float:
    """log2 of the number of functions at which the distance first falls to half of the pool's posterior's.

    Interpolated in log2 M; 0, the least M, where it is below from the beginning, infinite where it never is.
    """
    ordered = sorted(runs, key=pool_size)
    return crossing([math.log2(pool_size(run)) for run in ordered], [distance_over_pool(run, step) for run in ordered])


def crossing(at: Sequence[float], ratios: Sequence[float]) -> float:
    """Where the ratios first fall to one half, linear between points; those that are not finite are left out."""
    points = [point for point in zip(at, ratios, strict=True) if math.isfinite(point[1])]
    if points and points[0][1] <= HALF:
        return float(points[0][0])
    for (x, high), (after, low) in pairwise(points):
        if low <= HALF:
            return float(x + (after - x) * (high - HALF) / (high - low))
    return math.inf
