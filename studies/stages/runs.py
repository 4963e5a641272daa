"""What is trained for the claims of how models develop, and what is measured in each run.

hoogland is the decoder of Hoogland et al. 2024, D = 4 and K = 8, of 51 717 parameters; a run of 70 000 steps of 64
sequences takes about four minutes on two cores. An estimate of a narrow decoder's LLC takes five seconds of a core.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from icl_lab.analysis.llc.settings import SETTINGS, Settings
from icl_lab.store.lock import locked
from icl_lab.studies.runs import FEW_SEEDS, FURTHER_SEEDS, MANY_SEEDS, SOME_SEEDS, Runs, fresh

LENGTHS = (70_000, 200_000, 500_000)  # steps of the schedules
M = (1, 4, 16, 64, math.inf)

NARROW = {"d_model": 16, "mlp_width": 16, "steps": 3000, "eval_every": 500, "log_records": 7, "test_tasks": 512}
DENSE = {"eval_every": 50}  # 67 records, which forms need; of these the LLC is estimated at few
UNIT_TASKS = {"task_distribution": "sphere", "noise_std": 0.0}  # noise-free tasks of length 1
# of a decoder of 64 channels or four layers one estimate with sixteen chains takes four minutes of a core, here one
NARROW_POOL = NARROW | UNIT_TASKS | {"log_records": 10}
DISTINCT = UNIT_TASKS | {"steps": 5000, "eval_every": 500, "log_records": 18, "test_tasks": 512}
# 72 to 107 records of 70 000 to 500 000 steps: as many as forms need, 1.2 times a step apart
REGRESSION = {"num_tasks": math.inf, "eval_every": 12_500, "log_records": 72}
SHORT = REGRESSION | {"steps": LENGTHS[0]}
# in 5000 steps a decoder on infinitely many tasks does not leave its plateau
POOLS = {"num_layers": 4, "steps": 20_000, "log_records": 8, "eval_every": 2000}
# those of rules that were revised after seeds 0 to 23, of narrow decoders 0 to 2 and 8 to 17, had been read
FRESH_SEEDS, FRESH_NARROW = tuple(range(24, 32)), tuple(range(18, 26))
LINEAR = {"snapshots": True, "eval_every": 1000, "log_records": 30}

RUNS: dict[str, Runs] = {
    # one and two tasks
    "narrow_two_tasks": Runs("hoogland", NARROW | DENSE | UNIT_TASKS | {"num_tasks": 2}, FRESH_NARROW),
    "narrow_two_tasks_main": Runs("hoogland", NARROW | DENSE | UNIT_TASKS | {"num_tasks": 2}, fresh(17)),
    "narrow_one_task": Runs("hoogland", NARROW | UNIT_TASKS | {"num_tasks": 1}, FRESH_NARROW),
    "narrow_one_task_again": Runs("hoogland", NARROW | UNIT_TASKS | {"num_tasks": 1}, FRESH_NARROW, data_offset=100),
    "two_unit_tasks": Runs("hoogland", DISTINCT | {"num_tasks": 2}, MANY_SEEDS),
    "one_unit_task": Runs("hoogland", DISTINCT | {"num_tasks": 1}, MANY_SEEDS),
    "one_unit_task_again": Runs("hoogland", DISTINCT | {"num_tasks": 1}, MANY_SEEDS, data_offset=100),
    "two_unit_tasks_constant": Runs(
        "hoogland", DISTINCT | {"num_tasks": 2, "schedule": "constant", "lr": 1.5e-3}, MANY_SEEDS
    ),
    # the regression transformer
    "schedules": Runs("hoogland", REGRESSION, FEW_SEEDS, {"steps": LENGTHS}),
    "long_schedule": Runs("hoogland", REGRESSION | {"steps": LENGTHS[-1]}, SOME_SEEDS),
    "short_schedule": Runs("hoogland", SHORT, FEW_SEEDS),
    "short_schedule_stages": Runs("hoogland", SHORT, (6, 7, 8)),  # 3 to 5 were read at other settings
    "constant_rate": Runs("hoogland", SHORT | {"schedule": "constant", "lr": 1.5e-3}, FEW_SEEDS),
    "no_layer_norm": Runs("hoogland", SHORT | {"layer_norm": False}, FEW_SEEDS),
    "doubled_residual": Runs("hoogland", SHORT | {"doubled_residual": True}, FEW_SEEDS),
    "large_batch": Runs("hoogland", REGRESSION | {"steps": LENGTHS[-1], "batch_size": 256}, FEW_SEEDS),
    # pools of M tasks
    "pools_of_tasks": Runs("tiny", POOLS, FEW_SEEDS, {"num_tasks": M}),
    # linear attention
    "linear_layer": Runs("lsa1", LINEAR, FRESH_SEEDS),
    "linear_layers": Runs("lsa1", LINEAR | {"num_layers": 2, "recurrent": True}, FURTHER_SEEDS),
    "linear_layer_of_20": Runs("lsa1", LINEAR | {"dim": 20, "num_pairs": 20}, FURTHER_SEEDS),
}

# --- what the LLC over training measures: eight seeds of each model, four where a seed takes a quarter of an hour of a
# core or more; nothing else is claimed of them ---
MEASURED: dict[str, Runs] = {
    "linear": Runs("lsa1", LINEAR, fresh(140)),
    "one_task": Runs("hoogland", NARROW | DENSE | UNIT_TASKS | {"num_tasks": 1}, fresh(141)),
    "two_tasks": Runs("hoogland", NARROW | DENSE | UNIT_TASKS | {"num_tasks": 2}, fresh(142)),
    "few_tasks": Runs("hoogland", NARROW_POOL | {"num_tasks": 4, "steps": 5000}, fresh(143, 4)),
    "regression": Runs("hoogland", NARROW_POOL | {"num_tasks": math.inf, "steps": 20_000}, fresh(145, 4)),
}
RUNS |= {f"measured_{name}": runs.beside_others() for name, runs in MEASURED.items()}

# the same runs shifted by one seed: the other seed of claims on two curves of a run
_PAIRED = ("linear_layer", "linear_layers", "linear_layer_of_20", "pools_of_tasks")
RUNS |= {f"{name}_next": RUNS[name].of_next_seeds() for name in _PAIRED}

QUICK = {"chains": 4, "burn_in": 150, "draws": 300, "tasks": 2048}
FULL = {"chains": 4, "burn_in": 200, "draws": 400, "tasks": 2048}
# linear layers: the cells that analysis.llc_calibrate recommends on seed 0, and others of another gamma / nbeta
OF_LINEAR: dict[str, dict[str, Any]] = {
    "default": {"eps": 1.9e-4, "nbeta": 133.3, "gamma": 1333.0},
    "tight": {"eps": 1e-4, "nbeta": 133.3, "gamma": 4000.0},
    "published": SETTINGS["published"],
}
OF_TWO_LAYERS = OF_LINEAR | {
    "default": {"eps": 4e-6, "nbeta": 133.3, "gamma": 13_330.0},
    "tight": {"eps": 4e-6, "nbeta": 133.3, "gamma": 40_000.0},
}
OF_20_INPUTS = OF_LINEAR | {
    "default": {"eps": 1e-4, "nbeta": 133.3, "gamma": 1333.0},
    "tight": {"eps": 3e-5, "nbeta": 133.3, "gamma": 4000.0},
}
# the regression transformer: at gamma 667, of 21 checkpoints of seeds 3 to 5, 3 to 8 were usable; most others had not
# mixed; of the first thousand steps chains are saturated or above the null predictor, at gamma 2000 too
OF_REGRESSION = {
    "default": {"eps": 3.5e-5, "nbeta": 133.3, "gamma": 2000.0},
    "tight": {"eps": 3.5e-5, "nbeta": 133.3, "gamma": 6000.0},
}
# pools: of eps 3.5e-5 chains mix slowly, and 1e-4 is as long as the steepest direction allows, at 6000, 12 000 and
# 20 000 steps of M = 16 and M = infinity, seed 100; of chains half as long every other one has not mixed
OF_POOLS = {"default": {"eps": 7e-5, "nbeta": 133.3, "gamma": 1333.0}}
AT_TWO, AT_ONE = "0,208,500,790,2000,2500,3000", "2000,2500,3000"  # steps of the narrow decoders
OVER_POOLS = "6000,8000,12000,16000,18000,20000"  # after the steep fall of the loss
# 24 of the 35 records of 70 000 steps from 1006 on; at 12 no curve had a plateau that its checkpoints show
FROM_1000 = (
    "1006,1377,1612,1886,2207,2583,3536,4138,4842,5666,7758,9078,10622,12429,14544,17019,23303,27268,31908,37337,43689,"
    "51123,59821,70000"
)
OVER_LONG = "log:20:50"  # of the regression transformer, whatever the length of its schedule
OF_CONTROLS = "log:10:50"  # enough for how far the LLC falls from its largest
# 25 of the 28 records of one and two tasks at full width: all but those right after the first
OF_UNIT_TASKS = "0,4,7,12,20,33,55,91,150,247,408,500,674,1000,1112,1500,1836,2000,2500,3000,3030,3500,4000,4500,5000"
LATE = "3500,4000,4500,5000"  # the last third of training on one task, which its twin is compared in


# --- what the LLC over training measures ---
# eight chains find stages and eight are tested; settings are those above at which most checkpoints are usable, of the
# linear layer with shorter steps, which add less than a tenth to the estimate
SIXTEEN: dict[str, Any] = {"chains": 16, "burn_in": 200, "draws": 400, "tasks": 2048}
ANNEAL = 0.5  # of the steps so far
OF_MEASURED: dict[str, tuple[dict[str, Any], str]] = {
    "linear": (OF_LINEAR["default"] | {"eps": 6e-5}, "all"),
    "one_task": (SETTINGS["default"], "log:16:10"),
    "two_tasks": (SETTINGS["default"], "log:16:10"),
    "few_tasks": (SETTINGS["default"], "log:10:100"),
    "regression": (SETTINGS["default"], "log:10:100"),
}


def _settings(chains: Mapping[str, Any], named: Mapping[str, Mapping[str, Any]] = SETTINGS) -> dict[str, Settings]:
    return {name: Settings(**fields, **chains) for name, fields in named.items()}


def _at(chains: Mapping[str, Any], *names: str) -> dict[str, Settings]:
    return {name: setting for name, setting in _settings(chains).items() if name in names}


CONTROLS = ("constant_rate", "no_layer_norm", "doubled_residual")
# an estimate of the regression transformer takes 20 seconds of a core, so most of its runs have one setting
AT_ONE_SETTING = ("short_schedule", "schedules", "long_schedule", "large_batch")
# runs -> the recipe of `analysis.develop`
RECIPES: Mapping[str, dict[str, Any]] = {
    "narrow_two_tasks": {"settings": _settings(QUICK), "checkpoints": AT_TWO},
    "narrow_two_tasks_main": {"settings": _settings(QUICK), "checkpoints": AT_TWO},
    "narrow_one_task": {"settings": _at(QUICK, "default"), "checkpoints": AT_ONE},
    "narrow_one_task_again": {"settings": _at(QUICK, "default"), "checkpoints": AT_ONE},
    "linear_layer": {"settings": _settings(FULL, OF_LINEAR)},
    "two_unit_tasks": {"settings": _settings(FULL), "checkpoints": OF_UNIT_TASKS},
    "one_unit_task": {"settings": _settings(FULL), "checkpoints": OF_UNIT_TASKS},
    "one_unit_task_again": {"settings": _at(FULL, "default"), "checkpoints": LATE},
    "two_unit_tasks_constant": {"settings": _at(FULL, "default"), "checkpoints": OF_UNIT_TASKS},
    "short_schedule_stages": {"settings": _settings(FULL, OF_REGRESSION), "checkpoints": FROM_1000},
    **{name: {"settings": _at(FULL, "published"), "checkpoints": OVER_LONG} for name in AT_ONE_SETTING},
    **{name: {"settings": _at(FULL, "published"), "checkpoints": OF_CONTROLS} for name in CONTROLS},
    "pools_of_tasks": {"settings": _settings(FULL, OF_POOLS), "checkpoints": OVER_POOLS},
    "linear_layers": {"settings": _settings(FULL, OF_TWO_LAYERS)},
    "linear_layer_of_20": {"settings": _settings(FULL, OF_20_INPUTS)},
    **{
        f"measured_{name}": {
            "settings": {"default": Settings(**setting, **SIXTEEN)},
            "checkpoints": checkpoints,
            "anneal": ANNEAL,
        }
        for name, (setting, checkpoints) in OF_MEASURED.items()
    },
}


def _analyse(recipe: Mapping[str, Any], run: Path) -> None:
    """All that claims and figures read of a run, in its analysis/develop/."""
    from icl_lab.analysis.develop import Recipe, develop, is_developed
    from icl_lab.plots.develop import draw_development

    with locked(run, timeout=math.inf):
        if not is_developed(run, Recipe(**recipe)):
            develop(run, Recipe(**recipe))
            draw_development(run)


ANALYSES: Mapping[str, Callable[[Path], None]] = {name: partial(_analyse, recipe) for name, recipe in RECIPES.items()}
