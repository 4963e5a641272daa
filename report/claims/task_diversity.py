"""The claims of Raventos et al. 2023 (task diversity) and Carroll et al. 2025 (the transient ridge), as data.

What counts as reproduced stands here before it is measured. Models are much smaller and trained for much shorter than the
papers', on D = 4, K = 8, noise variance .125, so where a threshold lies is ours alone: a claim says what happens below it
and above. Losses are squared errors of noiseless labels over D, Delta the same of two predictors' difference. Sources of
ranges as in `report.claims.von_oswald`; the table of exact predictors is derived, from pools of other seeds.
"""

from __future__ import annotations

from typing import Any

from report.ledger import CARROLL, RAVENTOS, Claim, Runs
from report.measures import pools
from report.measures.pools import INFINITE

DERIVED, TEXT, OURS = "derived", "text", "ours"
ANY = 1e6
BUDGET, QUICK_BUDGET = 20_000, 5_000
GPU_M = (32, 256, 1024, 4096, 16_384, 65_536, 0)  # at the papers' size
M = (1, 4, 8, 16, 32, 64, 128, 256, 512, 0)  # tasks in the pool; 0 is infinity

# Four blocks: with the two of the preset a model of infinitely many tasks stays at a Delta to ridge of .06.
DEEP = {"num_layers": 4, "steps": BUDGET}
SHORT = {"steps": BUDGET // 4, "snapshots": False, "log_records": 20}


def _pools(*tasks: int, **settings: Any) -> Runs:
    """Decoders on pools of so many tasks."""
    return Runs("tiny", DEEP | settings, axes={"num_tasks": tasks})


# name -> what is trained
RUNS: dict[str, Runs] = {
    "pools_quick": _pools(1, 8, 64, 0, steps=QUICK_BUDGET, log_records=20, eval_every=500),
    "pools": _pools(*M),
    "pools_short": _pools(8, 16, 32, 64, 128, 512, **SHORT),
    "pools_long": _pools(8, 16, steps=3 * BUDGET // 2, schedule="constant", warmup_steps=1000),
    # at the mean learning rate of the triangle
    "pools_constant": _pools(8, 16, 64, **SHORT, schedule="constant", lr=1.5e-3, warmup_steps=250),
    "twin": Runs("tiny", DEEP | {"num_tasks": 0}, data_offset=100),
    "two_blocks": Runs("tiny", {"num_tasks": 0, "steps": BUDGET, "snapshots": False}),
    "narrow": _pools(16, **SHORT, d_model=16, mlp_width=64),
    "wide": _pools(16, **SHORT, d_model=64, mlp_width=256),
    "decay": _pools(16, **SHORT, weight_decay=0.1),
    "laplace": _pools(4, 0, **SHORT, task_distribution="laplace"),
    "paper_scale": Runs("small", {"steps": 500_000, "batch_size": 512}, axes={"num_tasks": GPU_M}),
}


def _around(value: float, share: float) -> tuple[float, float]:
    return value * (1 - share), value * (1 + share)


# fmt: off
CLAIMS: tuple[Claim, ...] = (
    # the exact predictors: D = 4, K = 8, noise variance 1/8; a pool's own luck moves its losses by a tenth at M = 16
    Claim("exact_ridge", "2", "ridge's loss on fresh tasks, D = 4, K = 8", 0.389, *_around(0.389, 0.04), DERIVED, pools.exact(4, 128, "ood_ridge"), paper=RAVENTOS),
    *(
        Claim(f"exact_{where}_{m}", "2", f"dMMSE's loss on {words}, M = {m}", value, *_around(value, share), DERIVED, pools.exact(4, m, f"{where}_dmmse"), paper=RAVENTOS)
        for where, words, m, value, share in (
            ("ood", "fresh tasks", 16, 0.803, 0.12), ("ood", "fresh tasks", 128, 0.544, 0.06),
            ("id", "the pool's tasks", 16, 0.213, 0.12), ("id", "the pool's tasks", 128, 0.306, 0.06),
        )
    ),
    Claim("exact_gap_closes", "3", "what dMMSE gains over ridge on the pool's tasks shrinks with M: at 128 over at 16", 0.46, 0.0, 0.99, TEXT, pools.memorising(4, 128, 16), paper=CARROLL),
    Claim("exact_gap_by_dimension", "6", "at M = 2^15 dMMSE is further from ridge in 16 dimensions than in 8, ratio", 2.0, 1.0, ANY, TEXT, pools.gap_by_dimension(8, 16, 2**15), profile="full", paper=RAVENTOS),
    # where training ends
    Claim("quick_one_task", "2", "trained on one task it is dMMSE: its share of the way to ridge", 0.0, 0.0, 0.1, OURS, pools.from_dmmse(1), "pools_quick", paper=RAVENTOS),
    Claim("quick_infinite", "2", "trained on infinitely many tasks it is ridge: Delta", 0.03, 0.0, 0.06, OURS, pools.from_ridge(INFINITE), "pools_quick", paper=RAVENTOS),
    Claim("quick_dip", "2", "trained on 8 tasks its loss on fresh ones falls and then rises, by", 0.05, 0.02, ANY, OURS, pools.rise_of(8), "pools_quick", errors=3.0, paper=CARROLL),
    Claim("few_tasks", "2", "trained on 4 tasks it is dMMSE: its share of the way to ridge", 0.05, 0.0, 0.1, OURS, pools.from_dmmse(4), "pools", "full", paper=RAVENTOS),
    Claim("some_tasks", "2", "trained on 8 tasks it is dMMSE: its share of the way to ridge", 0.05, 0.0, 0.1, OURS, pools.from_dmmse(8), "pools", "full", paper=CARROLL),
    Claim("many_tasks", "2", "trained on 512 tasks it is ridge: its share of the way to dMMSE", 0.1, 0.0, 0.25, OURS, pools.from_ridge(512), "pools", "full", paper=RAVENTOS),
    Claim("infinite_tasks", "2", "trained on infinitely many tasks it is ridge: Delta", 0.02, 0.0, 0.03, OURS, pools.from_ridge(INFINITE), "pools", "full", paper=RAVENTOS),
    Claim("two_blocks", "2", "so it is with two blocks, the preset's: Delta", 0.02, 0.0, 0.03, OURS, pools.last_delta, "two_blocks", "full", paper=RAVENTOS),
    Claim("beyond_the_threshold", "10", "trained on 512 tasks it is as on infinitely many: loss on fresh tasks, ratio", 1.0, 0.95, 1.05, TEXT, pools.over_infinite(512), "pools", "full", paper=RAVENTOS),
    # two budgets
    Claim("more_training_few_tasks", "2", "8 tasks: four times the training takes it away from ridge, ratio of Deltas", 1.2, 1.0, ANY, TEXT, pools.moved_from_ridge(8), "pools", "full", "pools_short", paper=RAVENTOS),
    Claim("more_training_many_tasks", "2", "512 tasks: it takes it towards ridge, ratio of Deltas", 0.5, 0.0, 0.99, TEXT, pools.moved_from_ridge(512), "pools", "full", "pools_short", paper=RAVENTOS),
    Claim("threshold", "2", "the two budgets cross between 8 and 256 tasks, log2 M", 5.0, 3.0, 8.0, OURS, pools.crossing_of, "pools", "full", "pools_short", paper=RAVENTOS),
    # over training
    Claim("exponent", "4", "below the threshold t*, nearest to ridge, grows as M to the power", 0.47, 0.37, 0.57, TEXT, pools.exponent(8, 16, 32), "pools", "full", paper=RAVENTOS),
    Claim("transient_8", "2", "8 tasks: the loss on fresh tasks falls and then rises, by", 0.1, 0.02, ANY, OURS, pools.rise_of(8), "pools", "full", errors=3.0, paper=CARROLL),
    Claim("transient_16", "2", "16 tasks: it falls and then rises, by", 0.05, 0.02, ANY, OURS, pools.rise_of(16), "pools", "full", errors=3.0, paper=CARROLL),
    Claim("transient_long_8", "2", "8 tasks, 30 000 steps at a constant learning rate: it falls and then rises, by", 0.07, 0.02, ANY, OURS, pools.rise_of(8), "pools_long", "full", errors=3.0, paper=CARROLL),
    Claim("transient_long_16", "2", "16 tasks, 30 000 steps at a constant learning rate: by", 0.07, 0.02, ANY, OURS, pools.rise_of(16), "pools_long", "full", errors=3.0, paper=CARROLL),
    Claim("transient_512", "2", "512 tasks: it falls and stays", 0.0, 0.0, 0.02, OURS, pools.rise_of(512), "pools", "full", paper=CARROLL),
    Claim("recipe", "2", "16 tasks, 5000 steps: a constant learning rate of the same mean leaves it elsewhere than the triangle, |log2| of the Deltas' ratio", 0.5, 0.1, 10.0, OURS, pools.apart_at(16), "pools_constant", "full", "pools_short", paper=RAVENTOS),
    Claim("later", "2", "t_crit grows with M: log2 of that of 16 tasks over that of 8", 1.0, 1e-6, ANY, TEXT, pools.later_critical_step(8, 16), "pools", "full", errors=3.0, paper=CARROLL),
    Claim("later_long", "2", "so it does at a constant learning rate, log2", 1.0, 1e-6, ANY, TEXT, pools.later_critical_step(8, 16), "pools_long", "full", errors=3.0, paper=CARROLL),
    Claim("deeper", "1", "deflection grows with M: the least loss on fresh tasks of 16 over that of 8", 0.8, 0.0, 0.99, TEXT, pools.deeper(8, 16), "pools", "full", paper=CARROLL),
    # between tasks, between models
    Claim("paths_few", "5", "4 tasks: halfway between two of them its loss is dMMSE's (1), not ridge's (0)", 1.0, 0.75, 1.25, OURS, pools.middle_of_paths(4), "pools", "full", paper=RAVENTOS),
    Claim("paths_some", "5", "16 tasks: halfway it is between", 0.5, 0.1, 0.75, OURS, pools.middle_of_paths(16), "pools", "full", paper=RAVENTOS),
    Claim("paths_many", "5", "256 tasks: halfway it is ridge's", 0.0, -0.25, 0.25, OURS, pools.middle_of_paths(256), "pools", "full", paper=RAVENTOS),
    Claim("barrier_few", "11", "4 tasks: the barrier to a model of infinitely many, over that of two of these", 5.0, 1.5, ANY, OURS, pools.barrier_of(4), "pools", "full", "twin", paper=RAVENTOS),
    Claim("barrier_many", "11", "512 tasks: the same", 1.0, 0.5, 1.5, OURS, pools.barrier_of(512), "pools", "full", "twin", paper=RAVENTOS),
    # smoothing, weight decay, capacity, another prior
    Claim("smoothing", "12", "64 tasks: its loss on fresh tasks over that of dMMSE with the best smoothing", 0.9, 0.0, 0.999, TEXT, pools.over_smoothed(64), "pools", "full", paper=RAVENTOS),
    Claim("decay_threshold", "7", "16 tasks: weight decay takes it towards ridge, ratio of Deltas", 0.8, 0.0, 0.99, TEXT, pools.ratio_at(16, "ood_delta_ridge"), "decay", "full", "pools_short", paper=RAVENTOS),
    Claim("decay_loss", "7", "at a worse loss on the pool's tasks, ratio", 1.1, 1.0001, ANY, TEXT, pools.ratio_at(16, "id_tf_loss"), "decay", "full", "pools_short", paper=RAVENTOS),
    Claim("width", "7", "16 tasks: 64 channels are further from ridge than 16, ratio of Deltas", 1.5, 1.0001, ANY, TEXT, pools.ratio_at(16, "ood_delta_ridge"), "wide", "full", "narrow", paper=RAVENTOS),
    Claim("laplace_few", "14", "4 Laplace tasks: it is dMMSE, its share of the way to ridge", 0.05, 0.0, 0.1, OURS, pools.from_dmmse(4), "laplace", "full", paper=RAVENTOS),
    Claim("laplace_infinite", "14", "infinitely many: it is nearer to the Laplace prior's mean than to ridge, ratio of Deltas", 0.9, 0.0, 0.999, TEXT, pools.nearer_to_laplace, "laplace", "full", paper=RAVENTOS),
    # trajectories
    Claim("components", "1", "two components of the joint trajectory PCA explain 27.5 %", 0.275, 0.22, 0.33, TEXT, pools.explained(2), "pools", "full", paper=CARROLL),
    Claim("components_null", "1", "more than those of as many random walks, ratio", 2.0, 1.0001, ANY, OURS, pools.explained_over_null(2), "pools", "full", paper=CARROLL),
    Claim("component_of_ood_loss", "1", "one of the two goes with the loss on fresh tasks, |correlation| over checkpoints", 0.9, 0.7, 1.0, TEXT, pools.component_of_ood_loss, "pools", "full", paper=CARROLL),
    # at the papers' size
    Claim("paper_few", "2, 4", "the small decoder, 32 tasks, 500 000 steps of 512: it is dMMSE, its share of the way to ridge", 0.05, 0.0, 0.1, OURS, pools.from_dmmse(32), "paper_scale", "gpu", paper=RAVENTOS),
    Claim("paper_many", "4", "65 536 tasks: it is ridge, its share of the way to dMMSE", 0.1, 0.0, 0.25, OURS, pools.from_ridge(65_536), "paper_scale", "gpu", paper=RAVENTOS),
    Claim("paper_infinite", "4", "infinitely many: Delta to ridge", 0.02, 0.0, 0.03, OURS, pools.from_ridge(INFINITE), "paper_scale", "gpu", paper=RAVENTOS),
    Claim("paper_exponent", "4", "t* grows as M to the power", 0.47, 0.37, 0.57, TEXT, pools.exponent(32, 256, 1024), "paper_scale", "gpu", paper=RAVENTOS),
)
# fmt: on
