"""The order and noise study: which runs it needs. One factor at a time around the clean run in random order.

python -m report.study --seeds 5,6,7,8,9
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import cli
from src.checks import ConfigError
from src.config import PLACEMENTS
from src.registries import ORDERINGS
from store.readers import StoreError
from sweeps.command import add_execution_flags, carry_out, execution, fields_of, planned
from sweeps.grid import Grid

MODELS = ("lsa1", "lsa1_pe", "twolayer")
SEEDS = (5, 6, 7, 8, 9)  # the questions were put into words on others, 0 to 4
RATES = (0.1, 0.25, 0.5)
SIGMA = 0.5
RATE = 0.25  # where one rate stands for all
SORTED = tuple(name for name in ORDERINGS if name != "random")
NOISE = ("label_noise", "random_pairs")

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


def grids(models: Sequence[str] = MODELS, seeds: Sequence[int] = SEEDS, **settings: Any) -> list[Grid]:
    """The grids of all questions; `settings` are config fields that are the same everywhere."""
    found = [grid for grids_of_question in QUESTIONS.values() for grid in grids_of_question]
    return [Grid(tuple(models), axes, tuple(seeds), {**settings, **own}) for axes, own in found]


def main(argv: list[str]) -> int:
    """The command line."""
    rest, overrides = cli.split_config_flags(argv)
    built = cli.Parser("report.study", "Trains what the order and noise study needs, as far as it is not done.")
    cli.add_list(built, "--models", str, MODELS, "models")
    cli.add_list(built, "--seeds", int, SEEDS, "seeds of data and initialisation")
    cli.add_config_help(built)
    add_execution_flags(built, "runs/study.csv", "runs/study")
    flags = built.parse(rest)
    asked = grids(flags.models, flags.seeds, **overrides)
    if flags.config_help:
        print(fields_of(flags.models, overrides))
        return 0
    return carry_out(planned(asked, flags.quiet), execution(flags))


if __name__ == "__main__":
    cli.launch(main, StoreError, ConfigError)
