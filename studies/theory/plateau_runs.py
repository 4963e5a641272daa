"""What is trained for the claims on plateaus: two layers, scales of initial weights, and runs that stay.

Initial weights have the variance init_scale / layers / fan-in. The fan-in of one layer at D = 10 is 11, so init_scale s
is a standard deviation of (s / 11)^1/2: .02 is .043, 1e-10 is 3.0e-6.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from icl_lab.studies.runs import Runs, fresh

TEN_SEEDS = tuple(range(10))
ONE = "lsa1"

# by the name of runs: initial scales
MERGED = {f"plateau_merged_{name}": float(name) for name in ("1e-4", "1e-6", "1e-8", "1e-10")}  # .003 to 3e-6
FACTORS = {f"plateau_factors_{name}": float(name) for name in ("2e-2", "6e-3", "2e-3")}  # .043 to .0135
ADAM = {f"plateau_adam_{name}": float(name) for name in ("2e-2", "2e-3", "2e-4", "2e-5", "1e-8")}  # .043 to 3.0e-5
ADAM_MERGED = {f"plateau_adam_merged_{name}": float(name) for name in ("1e-4", "1e-6", "1e-8", "1e-10")}
FLOOR = "plateau_adam_1e-8"  # where gradients are below Adam's epsilon

SMALL: dict[str, Any] = {"batch_size": 512, "test_tasks": 2048}
DESCENT = SMALL | {"optimizer": "sgd", "grad_clip": 0.0}
OF_MERGED = DESCENT | {"merged": True, "lr": 0.1, "steps": 1200, "eval_every": 5}
OF_FACTORS = DESCENT | {"lr": 0.5, "eval_tasks": 8192}
STEPS = dict(zip(FACTORS, (4000, 10_000, 25_000), strict=True))
OF_ADAM = SMALL | {"steps": 1000, "eval_every": 10}
OF_FLOOR = SMALL | {"steps": 20_000, "eval_every": 100}

# of five input dimensions, where weights grow in one direction first in nearly half of the seeds
IN_FIVE = OF_FACTORS | {"dim": 5, "num_pairs": 10, "init_scale": 4e-3, "steps": 15_000, "eval_every": 75}

TWO_LAYERS = {"num_layers": 2, "recurrent": True, "steps": 3000, "eval_every": 100, "snapshots": True}


def _scales(scales: dict[str, float], settings: dict[str, Any]) -> dict[str, Runs]:
    """One layer from initial weights of these scales."""
    return {name: Runs(ONE, settings | {"init_scale": scale}, TEN_SEEDS) for name, scale in scales.items()}


def _sizes(dim: int, num_pairs: int, **changes: Any) -> Runs:
    """The default recipe of one layer, in batches of 512, at other sizes."""
    return Runs(
        ONE, SMALL | {"dim": dim, "num_pairs": num_pairs, "eval_every": 25, "log_records": 100} | changes, TEN_SEEDS
    )


SIZES = {f"plateau_{dim}_{pairs}": _sizes(dim, pairs) for dim in (10, 20) for pairs in (10, 20)}
CHANGED = {
    "plateau_scale": _sizes(20, 20, init_scale=0.02),
    "plateau_rate": _sizes(20, 20, lr=3e-3),
    "plateau_unclipped": _sizes(20, 20, grad_clip=0.0),
}

BASE: dict[str, Runs] = {
    "plateau_two_layers": Runs(ONE, TWO_LAYERS, TEN_SEEDS),
    **_scales(MERGED, OF_MERGED),
    **{
        name: Runs(
            ONE, OF_FACTORS | {"init_scale": scale, "steps": STEPS[name], "eval_every": STEPS[name] // 200}, TEN_SEEDS
        )
        for name, scale in FACTORS.items()
    },
    **_scales(ADAM, OF_ADAM),
    **_scales(ADAM_MERGED, OF_ADAM | {"merged": True}),
    FLOOR: Runs(ONE, OF_FLOOR | {"init_scale": ADAM[FLOOR]}, TEN_SEEDS),
    "plateau_five": Runs(ONE, IN_FIVE, TEN_SEEDS),
    **SIZES,
    **CHANGED,
}

# of a main result, and of claims that were undecided, on fresh seeds: runs -> those that are run again, their seeds
FRESH = {
    "plateau_factors_2e-3_main": ("plateau_factors_2e-3", fresh(13)),
    "plateau_factors_2e-3_error": ("plateau_factors_2e-3", fresh(57)),
    "plateau_10_10_decided": ("plateau_10_10", fresh(24, 23)),
    "plateau_scale_decided": ("plateau_scale", fresh(27, 22)),
    "plateau_20_20_decided": ("plateau_20_20", fresh(27, 22)),
}
RUNS = BASE | {name: replace(BASE[of], seeds=seeds) for name, (of, seeds) in FRESH.items()}
