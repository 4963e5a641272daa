"""What the figures on function classes show of a run, or of a seed's runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from icl_lab.src.registries import MODEL
from icl_lab.studies.curve_rows import Series
from icl_lab.studies.dot_figure import Numbers
from icl_lab.studies.functions import measures
from icl_lab.studies.functions.runs import RUNS
from icl_lab.studies.runs import summary_part

MODELS, REFERENCE, BASELINE, NEIGHBOURS = (
    "Trained Transformer",
    "Bayes, or the best known",
    "baseline",
    "3 nearest neighbours",
)
# runs -> its panel, the reference and the baseline
BESIDE = {
    "linear": ("linear: Bayes is least squares; baseline: averaging", "bayes", "averaging"),
    "sparse_linear": ("sparse linear; baseline: lasso", "bayes", "lasso"),
    "decision_tree": ("trees; baseline: boosted trees on signs", "bayes", "boosted_trees_on_signs"),
    "relu_network": ("two-layer networks; baseline: network by Adam", "arc_cosine_regression", "adam_network"),
}
SHOWN = 2.5  # a loss that is too large for the figure: that of averaging is 6 after one pair and 3 after two
LEAST_GAINED = 0.02  # of the constant's loss, by the reference: a share of less says nothing
PARTS = {0.25: "after a quarter of the pairs", 0.5: "after half", 1.0: "after all but the query"}
# class -> its words
WORDS = {
    "linear": "linear",
    "noisy_linear": "noisy linear",
    "sparse_linear": "sparse linear",
    "sign_vector": "sign vector",
    "quadratic": "quadratic",
    "relu_network": "two-layer network",
    "decision_tree": "decision tree",
    "fourier": "Fourier series",
    "linear_classification": "linear classification",
    "logistic_regression": "logistic regression",
    "nearest_neighbour": "nearest neighbour",
    "prototypes": "prototypes",
    "conjunctions": "conjunctions",
    "disjunctions": "disjunctions",
    "majority": "majority",
    "parities": "parities, those not trained on",
    "two_noise_levels": "two noise levels",
    "regression_or_classification": "regression or classification",
    "fourier_orders": "Fourier series of several orders",
}
FURTHER = "further"  # runs of several classes


def class_of(run: Path) -> str:
    """The class of a run, in words."""
    return WORDS[measures.config_of(run).function.kind]


CLASSES: Mapping[str, Callable[[Path], str]] = dict.fromkeys(
    (*[kind for kind in WORDS if kind in RUNS], FURTHER), class_of
)
AT = {None: "20 000 steps", measures.EARLIER: "5000 steps"}
GAINED = f"gain / gain of the reference, {AT[None]}"
DISTANCES = {step: f"distance / distance of the pool's posterior, {at}" for step, at in AT.items()}
CURRICULA = {"all_inputs": "all inputs", "from_two_inputs": "curriculum"}
SIZE_WORDS = {
    "one_layer": "one block, 32 channels",
    "two_layers": "two blocks, 48 channels",
    "three_layers": "three blocks, 64 channels",
}
SHIFTS = {
    "none": "none",
    "random_quadrants": "context in one orthant",
    "orthogonal_query": "orthogonal query",
    "half_subspace": "half of the dimensions",
    "skewed_covariance": "skewed covariance",
    "x_a_third": "inputs / 3",
    "x_three_times": "inputs x 3",
    "y_a_third": "labels / 3",
    "y_three_times": "labels x 3",
    "noisy_labels": "noisy labels",
    "permuted_labels": "permuted labels",
}


def beside_baselines(run: Path, name: str) -> Series:
    """Losses by position of the model, the reference, a baseline, 3 nearest neighbours, each once it is small."""
    panel, reference, baseline = BESIDE[name]
    who = {MODELS: MODEL, REFERENCE: reference, BASELINE: baseline, NEIGHBOURS: "nearest_neighbours"}
    found = {}
    for series, predictor in who.items():
        values = measures.losses(run, predictor)
        first = 1 + max(np.flatnonzero(values > SHOWN), default=-1)
        at = first + np.flatnonzero(np.isfinite(values[first:]))
        found[panel, series] = (at, values[at])
    return found


SETTINGS = {"quick": "all linear functions", "quick_pool": "four linear functions"}
PREDICTORS = {MODELS: MODEL, "Bayes": "bayes", "the pool's posterior": "pool"}


def on_fresh_functions(run: Path, name: str) -> Series:
    """Losses by position on functions that training did not have, of the model and of what it could be."""
    where = "id" if name == "quick" else "ood"
    headline = summary_part(run, "headline")
    return {
        (f"trained on {SETTINGS[name]}", series): (
            np.arange(len(headline["id_tf_losses"])),
            measures.losses(run, who, where),
        )
        for series, who in PREDICTORS.items()
        if f"{where}_{who}_losses" in headline
    }


def gains(run: Path) -> Numbers:
    """The gain over that of the reference at three positions, where that is no small part of the constant's loss.

    Of pools that leave functions out, on these.
    """
    headline = summary_part(run, "headline")
    where = "ood" if "ood_scales" in headline else "id"
    scales = headline[f"{where}_scales"]
    constant = measures.losses(run, "prior", where)
    gained = (constant - measures.losses(run, headline[f"{where}_reference"], where)) / constant
    at = {words: round(part * (len(scales) - 1)) for part, words in PARTS.items()}
    return {(words, ""): float(scales[k]) for words, k in at.items() if gained[k] >= LEAST_GAINED}


def after_pools(run: Path, name: str) -> Series:
    """On fresh functions against M: the gain over the reference's, and distances over those of the pool's posterior."""
    shown = {GAINED: measures.gain(run, "ood")}
    shown |= {panel: measures.distance_over_pool(run, step) for step, panel in DISTANCES.items()}
    at = [measures.pool_size(run)]
    return {(panel, class_of(run)): (at, [value]) for panel, value in shown.items() if math.isfinite(value)}


def excesses_under_shifts(run: Path) -> dict[tuple[str, str, str], float]:
    """The excess over the best baseline, over the labels' variance, at the last position of each shift."""
    found = measures.shifts(run)
    return {
        (class_of(run), words, "excess"): float(found[name]["excess"][-1])
        for name, words in SHIFTS.items()
        if name in found
    }


def errors_of_training(run: Path, name: str) -> Series:
    """The loss after 2 D pairs over training."""
    steps, errors = measures.history(run)
    return {("", CURRICULA[name]): (steps[1:], errors[1:])}


def errors_by_dim(run: Path, name: str) -> Series:
    """The loss after 2 D pairs of a size, against D."""
    return {("", SIZE_WORDS[name]): ([measures.config_of(run).data.dim], [measures.error_at(2)(run)])}
