"""Retrieval and learning of tasks: decoders trained on a mixture of Gaussians, and what its exact posterior predicts.

Decoders of four blocks on fresh tasks of the mixture (D = 4, centres +-2 e_1 and +-2 e_2, deviation 1/4, label noise
.5), and as their control on Gaussian tasks of the same total variance, whose posterior mean is ridge. Both are measured
on the same 8192 sequences of the mixture's tasks, and on as many of the task 2 e_3, which lies outside it.

Ranges were fixed before the seeds 0 to 4 were run. They follow from the exact posteriors; pilots of seed 99 chose what
is measured after one or two pairs and how wide ranges are, and are in the comments. Each range lies ten of its half
widths or more from what the alternative in brackets would give.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from icl_lab.analysis import dual_modes
from icl_lab.analysis.dual_modes import BAYES, DMMSE, RIDGE, TF, Compared
from icl_lab.analysis.loaded_run import load_run
from icl_lab.src.data_config import PoolData
from icl_lab.studies.claim import Claim, Rival
from icl_lab.studies.curve_rows import Series
from icl_lab.studies.figure import AnyFigure, Figure
from icl_lab.studies.runs import SOME_SEEDS, Runs, fresh

LIN = "Lin and Lee 2024, arXiv 2402.18819"
PANWAR = "Panwar et al. 2024, arXiv 2306.04891"
SEQUENCES = 8192
MOST = 16  # pairs in the longest context

MIXTURE = PoolData(
    dim=4,
    num_pairs=MOST + 1,
    input_distribution="gaussian",
    noise_std=0.5,
    weight_scale=2.0,
    task_distribution="mixture",
)

# --- what is trained ---

DECODER: dict[str, Any] = {
    "num_tasks": float("inf"),
    "num_layers": 4,
    "num_pairs": MIXTURE.num_pairs,
    "noise_std": MIXTURE.noise_std,
    "steps": 10_000,
    "snapshots": False,
}
RUNS: dict[str, Runs] = {
    "mixture": Runs(
        "tiny", DECODER | {"task_distribution": "mixture", "data.weight_scale": MIXTURE.weight_scale}, SOME_SEEDS
    ),
    "mixture_main": Runs(
        "tiny", DECODER | {"task_distribution": "mixture", "data.weight_scale": MIXTURE.weight_scale}, fresh(14)
    ),
    "gaussian": Runs("tiny", DECODER | {"data.weight_scale": MIXTURE.task_variance**0.5}, SOME_SEEDS),
}

# --- what is measured ---

Measure = Callable[[Path], float]
OF_MIXTURE, OF_OUTSIDE = "tasks of the mixture", "the task 2 e₃, outside it"


@lru_cache(maxsize=64)
def compared(run: Path, where: str) -> Compared:
    """A run and the exact predictors, on tasks of the mixture or on the one outside it."""
    measure = {OF_MIXTURE: dual_modes.of_mixture, OF_OUTSIDE: dual_modes.of_outside}[where]
    return measure(load_run(run), MIXTURE, SEQUENCES)


def over_bayes(where: str, pairs: int) -> Measure:
    """The loss after so many pairs over the exact posterior mean's."""

    def measure(run: Path) -> float:
        comparison = compared(run, where)
        return float(comparison.losses(TF)[pairs] / comparison.losses(BAYES)[pairs])

    return measure


def nearer(near: str, far: str, where: str, *pairs: int, whose: str = TF) -> Measure:
    """The mean squared distance of predictions from one predictor over that from another, after so many pairs.

    whose: the transformer's, or those of a predictor in its place.
    """

    def measure(run: Path) -> float:
        comparison = compared(run, where)
        one, other = (np.sum(comparison.distances(name, whose)[list(pairs)]) for name in (near, far))
        return float(one / other)

    return measure


def peak(run: Path) -> float:
    """The number of pairs after which the loss on the task outside is largest."""
    return float(compared(run, OF_OUTSIDE).losses(TF).argmax())


def ascent(run: Path) -> float:
    """The largest loss on the task outside over that before the first pair."""
    return dual_modes.ascent(compared(run, OF_OUTSIDE).losses(TF))


def learnt(pairs: int) -> Measure:
    """The slope of predictions on noiseless labels of the task outside, after so many pairs."""
    return lambda run: float(compared(run, OF_OUTSIDE).learnt()[pairs])


# --- what is claimed ---


def _claim(
    name: str, says: str, expected: float, low: float, high: float, measure: Measure, runs: str, **more: Any
) -> Claim:
    place: dict[str, Any] = {"about": "ours", "paper": LIN, "profile": "full"}
    return Claim(f"prior_{name}", "dual_modes", says, expected, low, high, "theory", measure, runs, **{**place, **more})


CLAIMS: tuple[Claim, ...] = (
    # few pairs: the prior decides. Pilots: 1.042; .090; .011
    _claim(
        "one_pair",
        "trained on the mixture, one pair: loss over that of the exact posterior mean (ridge: 1.6)",
        1.0,
        0.99,
        1.08,
        over_bayes(OF_MIXTURE, 1),
        "mixture",
    ),
    _claim(
        "mixture_is_nearest",
        "trained on the mixture, one and two pairs: squared distance from the mixture's posterior mean over that from "
        "ridge (a decoder that is ridge: infinite; equally near: 1)",
        0.05,
        0.0,
        0.15,
        nearer(BAYES, RIDGE, OF_MIXTURE, 1, 2),
        "mixture_main",
        control=Rival("the posterior over the centres alone", nearer(BAYES, RIDGE, OF_MIXTURE, 1, 2, whose=DMMSE)),
        tier="main",
        paper=PANWAR,
    ),
    _claim(
        "gaussian_is_nearest",
        "trained on Gaussian tasks, the same sequences: squared distance from ridge over that from the mixture's "
        "posterior mean (equally near: 1)",
        0.03,
        0.0,
        0.15,
        nearer(RIDGE, BAYES, OF_MIXTURE, 1, 2),
        "gaussian",
        control=Rival("decoders trained on the mixture", runs=("mixture",)),
        paper=PANWAR,
    ),
    # a task outside the prior. Pilots: .24, exact posterior .27; 1.055; 2; 1.000
    _claim(
        "retrieves",
        "trained on the mixture, tested on 2 e_3, two pairs: squared distance from dMMSE on the centres over that from "
        "ridge (trained on Gaussian tasks: above 28)",
        0.25,
        0.0,
        0.5,
        nearer(DMMSE, RIDGE, OF_OUTSIDE, 2),
        "mixture",
        control=Rival("decoders trained on Gaussian tasks", runs=("gaussian",)),
    ),
    _claim(
        "ascent_height",
        "trained on the mixture, tested on 2 e_3, two pairs: loss over the exact posterior mean's (ridge: .35)",
        1.0,
        0.99,
        1.11,
        over_bayes(OF_OUTSIDE, 2),
        "mixture",
        control=Rival("decoders trained on Gaussian tasks", runs=("gaussian",)),
    ),
    _claim(
        "ascent_place",
        "trained on the mixture, tested on 2 e_3: pairs after which the loss is largest (trained on Gaussian tasks: 0)",
        2.0,
        1.9,
        2.1,
        peak,
        "mixture",
        scale="nonnegative",
        every=True,
        control=Rival("decoders trained on Gaussian tasks", runs=("gaussian",)),
    ),
    _claim(
        "gaussian_has_no_ascent",
        "trained on Gaussian tasks, tested on 2 e_3: largest loss over that before the first pair (mixture: 1.62)",
        1.0,
        0.99,
        1.03,
        ascent,
        "gaussian",
        control=Rival("decoders trained on the mixture", runs=("mixture",)),
    ),
    # many pairs: the context decides. What the exact posterior has stands here; pilots: .00 and 2.9, so 10 000 steps
    # of four blocks may be too few for it
    _claim(
        "learns_outside",
        "trained on the mixture, tested on 2 e_3, 16 pairs: slope of predictions on labels (dMMSE on the centres: 0)",
        0.72,
        0.66,
        0.78,
        learnt(MOST),
        "mixture",
        scale="linear",
    ),
    _claim(
        "many_pairs",
        "trained on the mixture, 16 pairs: loss over that of the exact posterior mean (dMMSE on the centres: 4.1)",
        1.0,
        0.97,
        1.25,
        over_bayes(OF_MIXTURE, MOST),
        "mixture",
    ),
)

# fmt: off
REMARKS: dict[str, str] = {
    "prior_mixture_is_nearest": "All eight decoders are ten times nearer to the mixture's posterior than to ridge; but the posterior over the centres alone is so too, at .063 [.061, .065], so that this measure does not tell the two apart.",
    "prior_ascent_place": "In three of five runs after two pairs, in two after three.",
    "prior_learns_outside": "After 10 000 steps the decoders retrieve and do not learn: the slope is 0 in all five runs, as in the pilot. Whether a longer training brings the second mode is not measured.",
    "prior_many_pairs": "In all five runs 2.9 to 3.1: nearer to retrieval alone, 4.1, than to the posterior, which goes on learning within a component (see prior_learns_outside).",
}
# fmt: on

# --- figures ---

WORDS = {
    "mixture": "Trained Transformer",
    "gaussian": "trained on Gaussian tasks",
    BAYES: "posterior of the mixture",
    RIDGE: "Ridge",
    DMMSE: "dMMSE",
}


def loss_curves(run: Path, name: str) -> Series:
    """Losses against the number of pairs, a panel for each kind of task; the exact predictors with the first runs."""
    return _curves(run, name, lambda comparison, who: comparison.losses(who), (OF_MIXTURE, OF_OUTSIDE))


def learnt_curves(run: Path, name: str) -> Series:
    """Slopes of predictions on labels of the task outside against the number of pairs."""
    return _curves(run, name, lambda comparison, who: comparison.learnt(who), (OF_OUTSIDE,))


def _curves(run: Path, name: str, values: Callable[[Compared, str], np.ndarray], panels: tuple[str, ...]) -> Series:
    exact = {who: WORDS[who] for who in (BAYES, RIDGE, DMMSE)} if name == "mixture" else {}
    pairs = np.arange(MIXTURE.num_pairs)
    return {
        (panel, series): (pairs, values(compared(run, panel), who))
        for panel in panels
        for who, series in {TF: WORDS[name], **exact}.items()
    }


PAIRS, LOSS = "pairs seen, n", "loss (half MSE, noiseless)"
FIGURES: tuple[AnyFigure, ...] = (
    Figure(
        "dual_modes",
        "Trained on a mixture, a decoder is near its posterior for a pair or two, then stops learning",
        ("mixture", "gaussian"),
        loss_curves,
        PAIRS,
        LOSS,
        log_y=(OF_MIXTURE,),
        profile="full",
    ),
    Figure(
        "learnt_outside",
        "A task outside the mixture: slope of predictions on labels, from 0 (nothing learnt) to 1",
        ("mixture", "gaussian"),
        learnt_curves,
        PAIRS,
        "slope",
        profile="full",
        scale="linear",
    ),
)
