"""What is trained for the claims of task diversity: decoders on pools of M tasks.

Five seeds of the pools of 20 000 steps and of what is compared with them, else eight; three at the papers' size.
"""

from __future__ import annotations

import math
from typing import Any

from icl_lab.studies.runs import FEW_SEEDS, MANY_SEEDS, SOME_SEEDS, Runs, fresh

BUDGET, QUICK_BUDGET = 20_000, 5_000
GPU_M = (32, 256, 1024, 4096, 16_384, 65_536, math.inf)  # at the papers' size
M = (1, 4, 8, 16, 32, 64, 128, 256, 512, math.inf)  # tasks in the pool

# Four blocks: with the two of the preset a model of infinitely many tasks stays at a Delta to ridge of .06.
DEEP = {"num_layers": 4, "steps": BUDGET}
SHORT = {"steps": BUDGET // 4, "snapshots": False, "log_records": 20}


def _pools(seeds: tuple[int, ...], *tasks: float, **settings: Any) -> Runs:
    """Decoders on pools of so many tasks."""
    return Runs("tiny", DEEP | settings, seeds, axes={"num_tasks": tasks})


LONG = {"steps": 3 * BUDGET // 2, "schedule": "constant", "warmup_steps": 1000}

RUNS: dict[str, Runs] = {
    "pools_quick": _pools(MANY_SEEDS, 1, 8, 64, math.inf, steps=QUICK_BUDGET, log_records=20, eval_every=500),
    "pools": _pools(SOME_SEEDS, *M),
    "pools_4_main": _pools(fresh(16), 4),
    "pools_512_main": _pools(fresh(40, 20), 512),
    "pools_8_decided": _pools(fresh(43, 24), 8),
    "pools_short": _pools(SOME_SEEDS, 8, 16, 32, 64, 128, 512, **SHORT),
    "pools_long": _pools(MANY_SEEDS, 8, 16, **LONG),
    "pools_many_long": _pools(MANY_SEEDS, 64, 512, math.inf, **LONG),
    # at the mean learning rate of the triangle
    "pools_constant": _pools(SOME_SEEDS, 8, 16, 64, **SHORT, schedule="constant", lr=1.5e-3, warmup_steps=250),
    # what training again on other tasks changes
    "pools_short_again": Runs("tiny", DEEP | SHORT, SOME_SEEDS, {"num_tasks": (16,)}, data_offset=100),
    "twin": Runs("tiny", DEEP | {"num_tasks": math.inf}, SOME_SEEDS, data_offset=100),
    "two_blocks": Runs("tiny", {"num_tasks": math.inf, "steps": BUDGET, "snapshots": False}, SOME_SEEDS),
    "narrow": _pools(MANY_SEEDS, 16, **SHORT, d_model=16, mlp_width=64),
    "wide": _pools(MANY_SEEDS, 16, **SHORT, d_model=64, mlp_width=256),
    "decay": _pools(SOME_SEEDS, 16, **SHORT, weight_decay=0.1),
    "laplace": _pools(MANY_SEEDS, 4, math.inf, **SHORT, task_distribution="laplace"),
    "paper_scale": Runs("small", {"steps": 500_000, "batch_size": 512}, FEW_SEEDS, {"num_tasks": GPU_M}),
}
RUNS["pools_next"] = RUNS["pools"].of_next_seeds()  # the same runs, shifted by one seed: whose losses are a control
