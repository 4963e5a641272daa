"""Measures on runs of symbols, which read their records, summaries and analyses."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from icl_lab.analysis.development.change_points import change_points_if_noisy
from icl_lab.analysis.development.llc_curve import standard_errors
from icl_lab.analysis.development.smooth_curve import LEAST
from icl_lab.analysis.development.token_metrics import tempered_divergence
from icl_lab.families.tokens.task import make_eval_set
from icl_lab.store import layout
from icl_lab.store.llc_rows import AT_THIS_NBETA, LLC, SAID, read_table, usable
from icl_lab.store.metrics import read_metrics
from icl_lab.store.readers import read_csv
from icl_lab.store.rundir import read_config
from icl_lab.studies.language_model.runs import CHAINS
from icl_lab.studies.runs import summary_part

if TYPE_CHECKING:
    import pandas as pd

Measure = Callable[..., float]
OfSeed = Sequence[Path]
NEAREST = ("uniform", "unigram", "bayes")  # what a decoder is nearest to in the phases, in their order
KL = "eval_kl_"
ENDS = ("llc_low", "llc_high")
ON_A_PLATEAU = (LLC, AT_THIS_NBETA)  # verdicts
MATTERS = 0.05  # nats, from which on positions matter


@lru_cache(maxsize=512)
def records(run: Path) -> list[dict[str, Any]]:
    """The records of a run's training, with the divergences that phases are told by."""
    return read_metrics(run, [f"{KL}{name}" for name in NEAREST])


def value(name: str) -> Measure:
    """A number of the summary's test set."""

    def measure(run: Path) -> float:
        number = summary_part(run, "headline").get(name)
        return math.nan if number is None else float(number)

    return measure


# --- phases ---


@lru_cache(maxsize=512)
def unigram_bound(run: Path) -> float:
    """The least KL from the context's unigrams to what lies between uniform and Bayes, on the evaluation sequences."""
    references = make_eval_set(read_config(run)).references
    return tempered_divergence(references["unigram"], references["bayes"])


def nearest(run: Path, record: Mapping[str, Any]) -> str:
    """Which of uniform, unigrams of the context and Bayes has the least KL to the model.

    Unigrams count below `unigram_bound` alone: so near to them is also what only becomes surer of what Bayes says.
    """
    distances = {name: float(record[f"{KL}{name}"]) for name in NEAREST}
    if distances["unigram"] >= unigram_bound(run):
        del distances["unigram"]
    return min(distances, key=distances.__getitem__)


def first_step(run: Path, name: str) -> float:
    """The first record from which on a predictor is the nearest; infinite if there is none by the last."""
    steps = [record["step"] for record in records(run)]
    others = [index for index, record in enumerate(records(run)) if nearest(run, record) != name]
    first = others[-1] + 1 if others else 0
    return float(steps[first]) if first < len(steps) else math.inf


def log2_bigram_step(run: Path) -> float:
    """log2 of the step from which on Bayes is the nearest."""
    return math.log2(first_step(run, "bayes"))


def log2_later_bigrams(run: Path, other: Path) -> float:
    """log2 of a run's bigram step over another's; infinite where it has none by its end."""
    return log2_bigram_step(run) - log2_bigram_step(other)


def phases_in_order(run: Path) -> float:
    """1 if uniform is the nearest first, then unigrams, then Bayes, in the order of their first records; else 0."""
    return float([*dict.fromkeys(nearest(run, record) for record in records(run))] == [*NEAREST])


# --- the local learning coefficient ---


@lru_cache(maxsize=512)
def coefficients(run: Path) -> pd.DataFrame:
    """The rows of a run's LLCs, in order."""
    return read_table(run / layout.LLC, ("step", "llc", *ENDS, "chains"), (*SAID,)).sort_values("step")


def plateaus(run: Path) -> pd.DataFrame:
    """Those that are usable and depend neither on the pull to w* nor on the temperature."""
    rows = coefficients(run)
    return rows[usable(rows) & rows["verdict"].isin(ON_A_PLATEAU)]


def plateau_share(run: Path) -> float:
    """The share of a run's LLCs that are on a plateau: of these alone a change would be one of the LLC."""
    return len(plateaus(run)) / len(coefficients(run))


def change_beyond_chance(run: Path) -> float:
    """How near changes of the LLC are to the phases' boundaries, less how near as many are that chance has placed.

    The mean over both boundaries of min |log2 step of a change - log2 step of the boundary|, less its mean over all
    choices of as many of the checkpoints between the first and the last. nan where fewer LLCs are on a plateau than a
    curve needs, where it has no change, and where a phase never begins.
    """
    rows = plateaus(run)
    if len(rows) < LEAST:
        return math.nan
    steps = rows["step"].to_numpy(float)
    errors = standard_errors(*(rows[name].to_numpy(float) for name in (*ENDS, "chains")))
    found = change_points_if_noisy(steps, rows["llc"].to_numpy(float), errors)
    boundaries = np.log2([first_step(run, "bayes"), entered(run, "unigram")])
    if found is None or not found.points or not np.isfinite(boundaries).all():
        return math.nan

    def distance(places: Iterable[float]) -> float:
        return float(np.abs(np.log2([*places])[None] - boundaries[:, None]).min(axis=1).mean())

    by_chance = [distance(places) for places in combinations(steps[1:-1], len(found.points))]
    return distance(point.step for point in found.points) - float(np.mean(by_chance))


def entered(run: Path, name: str) -> float:
    """The first record at which a predictor is the nearest; infinite if it never is."""
    steps = (float(record["step"]) for record in records(run) if nearest(run, record) == name)
    return next(steps, math.inf)


# --- which prior ---


@lru_cache(maxsize=512)
def prior_facts(run: Path) -> dict[str, Any]:
    """implied_prior.json of a run."""
    facts: dict[str, Any] = json.loads((run / layout.IMPLIED_PRIOR).read_text(encoding="utf-8"))
    return facts


def implied_alpha(run: Path) -> float:
    """The prior's parameter that predictions imply."""
    return float(prior_facts(run)["alpha"])


def distance_over(name: str) -> Measure:
    """KL from Bayes to the model over that from another predictor, at the last record."""

    def measure(run: Path) -> float:
        (record,) = read_metrics(run, (f"{KL}bayes", f"{KL}{name}"))[-1:]
        return float(record[f"{KL}bayes"]) / float(record[f"{KL}{name}"])

    return measure


def own_over_theirs(prior: str) -> Measure:
    """On chains of another prior: |excess over the own prior's rule| over that over the rule of theirs."""

    def measure(run: Path) -> float:
        numbers = prior_facts(run)["priors"][prior]
        return abs(float(numbers["over_own_prior"])) / abs(float(numbers["over_their_prior"]))

    return measure


def beyond_over_trained(run: Path) -> float:
    """On sequences of twice the length: the excess over Bayes at later positions over that at trained ones."""
    longer = prior_facts(run)["longer"]
    return float(longer["beyond"]) / float(longer["trained"])


# --- text ---


@lru_cache(maxsize=512)
def developed(run: Path) -> pd.DataFrame:
    """The metrics of a run's checkpoints, in order."""
    return read_csv(run / layout.DEVELOPMENTAL_METRICS, ("step",)).sort_values("step").reset_index(drop=True)


def least_bigram_divergence(run: Path) -> float:
    """The least bigram divergence over training."""
    return float(developed(run)["bigram_divergence"].min())


def step_of_bigrams(run: Path) -> float:
    """The step of the least bigram divergence."""
    rows = developed(run)
    return float(rows["step"][rows["bigram_divergence"].idxmin()])


def positions_over_bigrams(run: Path) -> float:
    """The first step whose positional ablation is above .05 nats, over the step of the least bigram divergence."""
    rows = developed(run)
    matter = rows["step"][rows["positional_ablation"] > MATTERS]
    return (float(matter.iloc[0]) if len(matter) else math.inf) / step_of_bigrams(run)


def score_since_bigrams(length: int) -> Measure:
    """The last n-gram score over that at the step of the least bigram divergence."""

    def measure(run: Path) -> float:
        scores = developed(run)[f"ngram_score_{length}"]
        return float(scores.iloc[-1] / scores[developed(run)["bigram_divergence"].idxmin()])

    return measure


def last(name: str) -> Measure:
    """A metric of the last checkpoint."""
    return lambda run: float(developed(run)[name].iloc[-1])


def best_head(name: str) -> Measure:
    """The largest of all heads' scores at the last checkpoint."""

    def measure(run: Path) -> float:
        rows = developed(run)
        heads = [column for column in rows if column.startswith("layer_") and column.endswith(f"_{name}")]
        return float(rows[heads].iloc[-1].max())

    return measure


def over_kneser_ney(order: int) -> Measure:
    """The cross-entropy on test windows less that of Kneser-Ney of an order."""
    return lambda run: value("loss")(run) - value(f"kneser_ney_{order}_loss")(run)


# --- pools ---


def log_ratio(run: Path) -> float:
    """log of KL from the pool's posterior to the model over KL from Bayes: below 0 it retrieves, above 0 it infers."""
    (record,) = read_metrics(run, (f"{KL}pool", f"{KL}bayes"))[-1:]
    return math.log(float(record[f"{KL}pool"]) / float(record[f"{KL}bayes"]))


def log2_turn(runs: OfSeed) -> float:
    """log2 of the number of chains at which both are as near, between the sizes of pools by a line in log M.

    Of several such numbers the first; infinite if there is none.
    """
    sizes, ratios = np.log2(CHAINS), np.array([log_ratio(run) for run in runs])
    for index in range(len(sizes) - 1):
        if ratios[index] < 0 <= ratios[index + 1]:
            share = -ratios[index] / (ratios[index + 1] - ratios[index])
            return float(sizes[index] + share * (sizes[index + 1] - sizes[index]))
    return math.inf


def at(index: int, measure: Measure) -> Measure:
    """A measure of one of a seed's runs."""
    return lambda runs: measure(runs[index])
