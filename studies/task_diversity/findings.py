"""What the page of task diversity begins with: five findings, each resting on claims of the ledger."""

from __future__ import annotations

import math

from icl_lab.studies.findings import Finding, Statement


def from_log2(value: float) -> float:
    """2 to this power, capped at 2^1023, so that it is finite."""
    return math.exp2(min(value, 1023.0))


FINDINGS: tuple[Finding, ...] = (
    Finding(
        "few_and_many",
        "losses",
        (
            Statement(
                "few_tasks",
                "after training on 4 tasks a decoder's Δ to dMMSE is {value} times ridge's, on these tasks",
                "Trained on few tasks, a decoder matches dMMSE",
            ),
            Statement(
                "many_tasks",
                "after training on 512 its Δ to ridge is {value} times dMMSE's, on fresh tasks",
                "Trained on many, it matches ridge",
            ),
        ),
    ),
    Finding(
        "threshold",
        "budgets",
        (
            Statement(
                "threshold",
                "Δ to ridge is the same after 5000 and after 20 000 steps for a pool of M = {also}, log2 M = {value}",
                "Between the two lies a threshold",
                also=from_log2,
            ),
            Statement(
                "more_training_many_tasks",
                "with 512 tasks, four times the steps multiply Δ to ridge by {value}",
                "Above it more training brings models nearer to ridge",
            ),
        ),
    ),
    Finding(
        "transient_ridge",
        "ood_long",
        (
            Statement(
                "transient_long_8",
                "with 8 tasks and a constant learning rate the loss on fresh tasks ends {value} above its minimum",
                "The dip towards ridge is partial",
            ),
            Statement("nearest_ridge_8", "where the model is nearest to ridge, its Δ to it is {value} times dMMSE's"),
        ),
    ),
    Finding(
        "more_tasks",
        "ood_over_training",
        (
            Statement(
                "deeper",
                "the least loss on fresh tasks over training is with 16 tasks {value} times that with 8",
                "With more tasks a model comes nearer to ridge before it turns away",
            ),
            Statement(
                "later_long",
                "at a constant learning rate it comes {also} times as late, log2 {value}",
                "It also turns later",
                also=from_log2,
            ),
        ),
    ),
    Finding(
        "trajectories",
        "trajectories",
        (
            Statement(
                "components_null",
                "the first two components of the joint trajectory PCA explain {value} times the variance that those of "
                "random walks do",
                "Training is no random walk",
            ),
            Statement("components", "they explain {value} of the variance"),
        ),
    ),
)
