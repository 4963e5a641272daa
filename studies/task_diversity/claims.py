"""The claims of Raventos et al. 2023 (task diversity) and Carroll et al. 2025 (the transient ridge), as data.

What counts as reproduced was fixed before measuring. Models are much smaller and trained for much shorter than the
papers', on D = 4, K = 8, noise variance .125, so where a threshold lies is ours alone: a claim says what happens below it
and above. Losses are squared errors of noiseless labels over D, Delta the same of two predictors' difference. Sources of
ranges as in `studies.reproduction.claims`.
"""

from __future__ import annotations

from typing import Any

from icl_lab.studies.claim import CARROLL, RAVENTOS, UNBOUNDED, Claim, Rival, Without
from icl_lab.studies.task_diversity import measures
from icl_lab.studies.task_diversity.measures import INFINITE

DERIVED, TEXT, OURS = "derived", "text", "ours"

SMALLER = "dimension 4, and at most 30 000 steps of 64 sequences; the paper has 8, and"
BY_RAVENTOS: dict[str, Any] = {"paper": RAVENTOS, "smaller": f"{SMALLER} 500 000 steps of at least 256"}
BY_CARROLL: dict[str, Any] = {"paper": CARROLL, "smaller": f"{SMALLER} a decoder of 2.65 million weights"}
RISE: dict[str, Any] = {"scale": "nonnegative", **BY_CARROLL}
AT_SIZE: dict[str, Any] = {"paper": RAVENTOS}
BETWEEN_RUNS: dict[str, Any] = {"control": Without("both runs are trained: one is the other's control")}
SNAPSHOTS: dict[str, Any] = {"control": Without("a network that is not trained has no trajectory")}

# fmt: off
CLAIMS: tuple[Claim, ...] = (
    # where training ends
    Claim("quick_one_task", "2", "M = 1, 5000 steps: Δ(model, dMMSE) over Δ(ridge, dMMSE) on the pool's tasks", 0.0, 0.0, 0.1, OURS, measures.from_dmmse(1), "pools_quick", **BY_RAVENTOS),
    Claim("quick_infinite", "2", "M = ∞, 5000 steps: Δ(model, ridge) on fresh tasks", 0.03, 0.0, 0.06, OURS, measures.from_ridge(INFINITE), "pools_quick", **BY_RAVENTOS),
    Claim("quick_dip", "2", "M = 8, 5000 steps: rise of the loss on fresh tasks after its minimum", 0.05, 0.02, UNBOUNDED, OURS, measures.rise_of(8), "pools_quick", **RISE),
    Claim("few_tasks", "2", "M = 4: Δ(model, dMMSE) over Δ(ridge, dMMSE) on the pool's tasks", 0.05, 0.0, 0.1, OURS, measures.from_dmmse(4), "pools_4_main", "full", **BY_RAVENTOS, control=Rival("ridge, whose ratio is 1", measures.end_of("id")), tier="main"),
    Claim("some_tasks", "2", "M = 8: Δ(model, dMMSE) over Δ(ridge, dMMSE) on the pool's tasks", 0.05, 0.0, 0.1, OURS, measures.from_dmmse(8), "pools", "full", **BY_CARROLL),
    Claim("many_tasks", "2", "M = 512: Δ(model, ridge) over Δ(dMMSE, ridge) on fresh tasks", 0.1, 0.0, 0.25, OURS, measures.from_ridge(512), "pools_512_main", "full", **BY_RAVENTOS, control=Rival("dMMSE, whose ratio is 1", measures.end_of("ood")), tier="main"),
    Claim("infinite_tasks", "2", "M = ∞: Δ(model, ridge) on fresh tasks", 0.02, 0.0, 0.03, OURS, measures.from_ridge(INFINITE), "pools", "full", **BY_RAVENTOS),
    Claim("two_blocks", "2", "M = ∞, two blocks instead of four: Δ(model, ridge) on fresh tasks", 0.02, 0.0, 0.03, OURS, measures.last_delta, "two_blocks", "full", **BY_RAVENTOS),
    Claim("beyond_the_threshold", "10", "loss on fresh tasks: M = 512 over M = ∞", 1.0, 0.95, 1.05, TEXT, measures.over_infinite(512), "pools", "full", **BY_RAVENTOS),
    # two budgets
    Claim("more_training_few_tasks", "2", "M = 8: Δ(model, ridge) on fresh tasks after 20 000 steps over after 5000", 1.2, 1.0, UNBOUNDED, TEXT, measures.moved_from_ridge(8), "pools", "full", "pools_short", **BY_RAVENTOS),
    Claim("more_training_many_tasks", "2", "M = 512: Δ(model, ridge) on fresh tasks after 20 000 steps over after 5000", 0.5, 0.0, 0.9, TEXT, measures.moved_from_ridge(512), "pools", "full", "pools_short", **BY_RAVENTOS, **BETWEEN_RUNS),
    Claim("threshold", "2", "log2 of the M at which Δ(model, ridge) on fresh tasks is the same after 5000 and 20 000 steps", 5.0, 4.0, 6.0, OURS, measures.crossing_of, "pools", "full", "pools_short", about="ours", scale="linear", paper=RAVENTOS, **BETWEEN_RUNS),
    # over training
    Claim("exponent", "4", "exponent in M of the step at which Δ(model, ridge) is least", 0.47, 0.37, 0.57, TEXT, measures.exponent(8, 16, 32), "pools", "full", scale="linear", **BY_RAVENTOS, **SNAPSHOTS),
    Claim("transient_8", "2", "M = 8: rise of the loss on fresh tasks after its minimum", 0.1, 0.02, UNBOUNDED, OURS, measures.rise_of(8), "pools_8_decided", "full", **RISE),
    Claim("transient_16", "2", "M = 16: rise of the loss on fresh tasks after its minimum", 0.05, 0.02, UNBOUNDED, OURS, measures.rise_of(16), "pools", "full", **RISE),
    *(
        Claim(f"transient_{m}_smoothed", "2", f"M = {m}, each seed, means of three records: rise of the loss on fresh tasks after its minimum", 0.05, 0.02, UNBOUNDED, OURS, measures.smoothed_rise_of(m), "pools", "full", every=True, **RISE)
        for m in (8, 16)
    ),
    Claim("transient_long_8", "2", "M = 8, constant learning rate: rise of the loss on fresh tasks after its minimum", 0.07, 0.02, UNBOUNDED, OURS, measures.rise_of(8), "pools_long", "full", **RISE),
    Claim("transient_long_16", "2", "M = 16, constant learning rate: rise of the loss on fresh tasks after its minimum", 0.07, 0.02, UNBOUNDED, OURS, measures.rise_of(16), "pools_long", "full", **RISE),
    *(
        Claim(f"transient_long_{m}_smoothed", "2", f"M = {m}, constant learning rate, each seed, means of three records: rise of the loss on fresh tasks after its minimum", 0.05, 0.02, UNBOUNDED, OURS, measures.smoothed_rise_of(m), "pools_long", "full", every=True, **RISE)
        for m in (8, 16)
    ),
    *(
        Claim(f"transient_long_{words}", "2", f"M = {'∞' if m == INFINITE else words}, constant learning rate: rise of the loss on fresh tasks after its minimum", 0.0, 0.0, 0.02, OURS, measures.rise_of(m), "pools_many_long", "full", **RISE)
        for words, m in (("64", 64), ("512", 512), ("infinite", INFINITE))
    ),
    *(
        Claim(f"nearest_ridge_{m}", "2", f"M = {m}, constant learning rate: least Δ(model, ridge) over training, over Δ(dMMSE, ridge), on fresh tasks", 0.2, 0.0, 0.25, OURS, measures.least_from_ridge(m), "pools_long", "full", **BY_CARROLL)
        for m in (8, 16)
    ),
    Claim("recipe", "2", "M = 16, 5000 steps: |log2| of Δ(model, ridge) at a constant learning rate over that with a triangle of the same mean", 0.5, 0.1, 10.0, OURS, measures.apart_at(16), "pools_constant", "full", "pools_short", **BY_RAVENTOS, control=Rival("training again on other tasks", runs=("pools_short", "pools_short_again"))),
    Claim("later", "2", "log2 of the step of the least loss on fresh tasks: M = 16 less M = 8", 1.0, 1e-6, UNBOUNDED, TEXT, measures.later_critical_step(8, 16), "pools", "full", scale="linear", spacing=0.15, **BY_CARROLL, **SNAPSHOTS),
    Claim("later_long", "2", "constant learning rate, log2 of the step of the least loss on fresh tasks: M = 16 less M = 8", 1.0, 1e-6, UNBOUNDED, TEXT, measures.later_critical_step(8, 16), "pools_long", "full", scale="linear", spacing=0.15, **BY_CARROLL, **SNAPSHOTS),
    Claim("deeper", "1", "least loss on fresh tasks over training: M = 16 over M = 8", 0.8, 0.0, 0.95, TEXT, measures.deeper(8, 16), "pools", "full", **BY_CARROLL),
    # between tasks, between models
    Claim("paths_few", "5", "M = 4, a task halfway between two of the pool: loss on a scale from ridge's (0) to dMMSE's (1)", 1.0, 0.75, 1.25, OURS, measures.middle_of_paths(4), "pools", "full", scale="linear", **BY_RAVENTOS),
    Claim("paths_fall", "5", "a task halfway between two of the pool, loss on a scale from ridge's (0) to dMMSE's (1): fall from M = 4 to M = 256", 1.0, 0.25, UNBOUNDED, OURS, measures.fall_of_paths(4, 256), "pools", "full", scale="linear", **BY_RAVENTOS),
    Claim("paths_order", "5", "a task halfway between two of the pool, loss on a scale from ridge's (0) to dMMSE's (1): fall from M = 16 to M = 256", 0.3, 0.05, UNBOUNDED, OURS, measures.fall_of_paths(16, 256), "pools", "full", scale="linear", no_effect=(-0.05, 0.05), **BY_RAVENTOS),
    Claim("paths_many", "5", "M = 256, a task halfway between two of the pool: loss on a scale from ridge's (0) to dMMSE's (1)", 0.0, -0.25, 0.25, OURS, measures.middle_of_paths(256), "pools", "full", scale="linear", **BY_RAVENTOS),
    Claim("barrier_few", "11", "loss barrier on the line from a model of M = 4 to one of M = ∞, over that between two of M = ∞", 5.0, 1.5, UNBOUNDED, OURS, measures.barrier_of(4), "pools", "full", "twin", **BY_RAVENTOS),
    Claim("barrier_many", "11", "loss barrier on the line from a model of M = 512 to one of M = ∞, over that between two of M = ∞", 1.0, 0.75, 1.33, OURS, measures.barrier_of(512), "pools", "full", "twin", **BY_RAVENTOS),
    # smoothing, weight decay, capacity, another prior
    Claim("smoothing", "12", "M = 64: loss on fresh tasks over that of dMMSE with the best smoothing", 0.9, 0.0, 0.999, TEXT, measures.over_smoothed(64), "pools", "full", **BY_RAVENTOS),
    Claim("decay_threshold", "7", "M = 16, 5000 steps: Δ(model, ridge) on fresh tasks with weight decay .1 over without", 0.8, 0.0, 0.95, TEXT, measures.ratio_at(16, "ood_delta_ridge"), "decay", "full", "pools_short", no_effect=(0.95, 1.05), **BY_RAVENTOS, **BETWEEN_RUNS),
    Claim("decay_loss", "7", "M = 16, 5000 steps: loss on the pool's tasks with weight decay .1 over without", 1.1, 1.02, UNBOUNDED, TEXT, measures.ratio_at(16, "id_tf_loss"), "decay", "full", "pools_short", no_effect=(0.98, 1.02), **BY_RAVENTOS, **BETWEEN_RUNS),
    Claim("width", "7", "M = 16, 5000 steps: Δ(model, ridge) on fresh tasks with 64 channels over with 16", 1.5, 1.05, UNBOUNDED, TEXT, measures.ratio_at(16, "ood_delta_ridge"), "wide", "full", "narrow", no_effect=(0.95, 1.05), **BY_RAVENTOS, **BETWEEN_RUNS),
    Claim("laplace_few", "14", "Laplace tasks, M = 4, 5000 steps: Δ(model, dMMSE) over Δ(ridge, dMMSE) on the pool's tasks", 0.05, 0.0, 0.1, OURS, measures.from_dmmse(4), "laplace", "full", **BY_RAVENTOS),
    Claim("laplace_infinite", "14", "Laplace tasks, M = ∞, 5000 steps: Δ to the mean under the Laplace prior over Δ to ridge", 0.9, 0.0, 0.999, TEXT, measures.nearer_to_laplace, "laplace", "full", **BY_RAVENTOS),
    # trajectories
    Claim("components", "1", "share of variance of the first two components of the joint trajectory PCA", 0.275, 0.22, 0.33, TEXT, measures.explained(2), "pools", "full", scale="fraction", **BY_CARROLL, **SNAPSHOTS),
    Claim("components_null", "1", "share of variance of the first two components of the joint trajectory PCA, over that of random walks", 2.0, 1.05, UNBOUNDED, OURS, measures.explained_over_null(2), "pools", "full", about="ours", paper=CARROLL, **SNAPSHOTS),
    Claim("component_of_ood_loss", "1", "joint trajectory PCA, the better of the first two components: |correlation| with the loss on fresh tasks over checkpoints", 0.9, 0.7, 1.0, TEXT, measures.component_of_ood_loss, "pools", "full", scale="fisher", control=Rival("the losses of another seed", runs=("pools", "pools_next")), **BY_CARROLL),
    # at the papers' size
    Claim("paper_few", "2, 4", "the paper's small decoder, M = 32, 500 000 steps: Δ(model, dMMSE) over Δ(ridge, dMMSE) on the pool's tasks", 0.05, 0.0, 0.1, OURS, measures.from_dmmse(32), "paper_scale", "gpu", **AT_SIZE),
    Claim("paper_many", "4", "the paper's small decoder, M = 65 536: Δ(model, ridge) over Δ(dMMSE, ridge) on fresh tasks", 0.1, 0.0, 0.25, OURS, measures.from_ridge(65_536), "paper_scale", "gpu", **AT_SIZE),
    Claim("paper_infinite", "4", "the paper's small decoder, M = ∞: Δ(model, ridge) on fresh tasks", 0.02, 0.0, 0.03, OURS, measures.from_ridge(INFINITE), "paper_scale", "gpu", **AT_SIZE),
    Claim("paper_exponent", "4", "the paper's small decoder: exponent in M of the step at which Δ(model, ridge) is least", 0.47, 0.37, 0.57, TEXT, measures.exponent(32, 256, 1024), "paper_scale", "gpu", scale="linear", **AT_SIZE, smaller="500 000 steps; the paper's exponent is of two million", **SNAPSHOTS),
)
# fmt: on
