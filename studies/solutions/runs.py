"""What is trained on sampled batches for the claims on one layer's solutions, and the seeds of all trainings."""

from __future__ import annotations

from icl_lab.studies.runs import Runs, fresh

SEEDS = tuple(range(1792, 1920))  # of trainings on the population loss: two whole blocks
RUN_SEEDS = 32
# (D, N) of runs on batches: two below N*, of D = 3 and 4
SAMPLED = ((2, 2), (2, 10), (2, 40), (3, 13), (3, 20), (3, 40), (4, 33), (4, 60))
ON_BATCHES = {"batch_size": 512, "steps": 15_000, "eval_every": 1000}


def name_of(dim: int, pairs: int) -> str:
    """The name of runs of D and N, and of the claim on them."""
    return f"batches_{dim}_{pairs}"


RUNS: dict[str, Runs] = {
    name_of(dim, pairs): Runs("lsa1", ON_BATCHES | {"dim": dim, "num_pairs": pairs}, fresh(100 + 4 * number, RUN_SEEDS))
    for number, (dim, pairs) in enumerate(SAMPLED)
}
