"""What is trained: one factor at a time around the clean run in random order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from icl_lab.src.config import PLACEMENTS
from icl_lab.src.registries import ORDERINGS
from icl_lab.studies.runs import Runs, fresh
from icl_lab.sweeps.grid import Grid

MODELS = ("lsa1", "lsa1_pe", "twolayer")
SEEDS = {"quick": (5, 6), "full": (5, 6, 7, 8, 9)}  # by profile; the questions were formulated on seeds 0 to 4
RATES = (0.1, 0.25, 0.5)
SIGMA = 0.5
RATE = 0.25  # where one rate stands for all
SORTED = tuple(name for name in ORDERINGS if name != "random")
NOISE = ("label_noise", "random_pairs")

# For the step sizes that models take at positions: the cells of the conditions below, and three seeds more.
STEP_SEEDS = tuple(range(5, 13))
RUNS: dict[str, Runs] = {
    **{f"twolayer_{order}": Runs("twolayer", {"base.ordering": order}, STEP_SEEDS) for order in ORDERINGS},
    "twolayer_easy2hard_main": Runs("twolayer", {"base.ordering": "easy2hard"}, fresh(15, 10)),
    "lsa1_pe_easy2hard": Runs("lsa1_pe", {"base.ordering": "easy2hard"}, STEP_SEEDS),
    "three_layers_easy2hard": Runs("twolayer", {"base.ordering": "easy2hard", "num_layers": 3}, STEP_SEEDS),
}

CLEAN_TRAINED: dict[str, Sequence[Any]] = {"train_ordering": ["random"], "train_noise_mode": ["clean"]}
LABEL_NOISE: dict[str, Sequence[Any]] = {"noise_mode": ["label_noise"], "noise_p": [RATE], "noise_sigma": [SIGMA]}

# question -> the grids that answer it: axes, and settings that are no axis
QUESTIONS: dict[str, list[tuple[Mapping[str, Sequence[Any]], Mapping[str, Any]]]] = {
    "ordering at evaluation only": [({**CLEAN_TRAINED, "eval_ordering": tuple(ORDERINGS)}, {})],
    "ordering in training and evaluation": [({"ordering": SORTED}, {})],
    "ordering in training only": [({"train_ordering": SORTED, "eval_ordering": ["random"]}, {})],
    "noise at evaluation only": [
        ({**CLEAN_TRAINED, "noise_mode": NOISE, "noise_p": RATES, "noise_sigma": [SIGMA]}, {}),
    ],
    "noise in training and evaluation": [({"noise_mode": NOISE, "noise_p": RATES, "noise_sigma": [SIGMA]}, {})],
    "noise in training only": [
        ({"noise_mode": NOISE, "noise_p": RATES, "noise_sigma": [SIGMA], "eval_noise_mode": ["clean"]}, {}),
    ],
    "placement at evaluation only": [
        (
            {
                **CLEAN_TRAINED,
                "noise_mode": NOISE,
                "noise_p": [RATE],
                "noise_sigma": [SIGMA],
                "noise_placement": PLACEMENTS,
            },
            {},
        ),
    ],
    "placement trained x placement tested": [
        ({**LABEL_NOISE, "train_noise_placement": PLACEMENTS, "eval_noise_placement": PLACEMENTS}, {}),
    ],
    "ordering x noise, at evaluation": [
        ({**CLEAN_TRAINED, **LABEL_NOISE, "eval_ordering": tuple(ORDERINGS)}, {}),
        (
            {**CLEAN_TRAINED, **LABEL_NOISE, "eval_ordering": ["easy2hard", "hard2easy"]},
            {"eval.difficulty": "gd_error"},
        ),
    ],
}


def grids(seeds: Sequence[int], models: Sequence[str] = MODELS) -> list[Grid]:
    """The grids of all questions."""
    definitions = [grid for grids_of_question in QUESTIONS.values() for grid in grids_of_question]
    return [Grid(tuple(models), axes, tuple(seeds), settings) for axes, settings in definitions]


# Does the gap to the best step sizes close? A seed has a run for each order. Two layers on tokens (x, y), which copy
# nothing, are no further arm: a pilot took two steps, with two thirds of the loss of one.
LONGER = {"steps": 15_000}
CLOSING: dict[str, dict[str, Any]] = {
    "closing_short": {},
    "closing_long": LONGER,
    "closing_annealed": LONGER | {"schedule": "cosine"},
}
RUNS |= {
    name: Runs("twolayer", settings, fresh(block), {"ordering": tuple(ORDERINGS)})
    for block, (name, settings) in enumerate(CLOSING.items(), 74)
}
