"""What the page of task diversity begins with: five findings, each resting on claims of the ledger."""

from __future__ import annotations

import math

from studies.findings import Finding, Statement


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
                "recipe",
                "at M = 16, a constant learning rate instead of a triangular schedule of the same mean changes Δ to "
                "ridge by a factor of {also}, |log2| {value}",
                "It moves with the recipe",
                also=from_log2,
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
        "more_training",
        "learning_curves",
        (
            Statement(
                "more_training_few_tasks",
                "with 8 tasks, four times the steps multiply Δ to ridge by {value}",
                "More training takes models of few tasks away from ridge",
            ),
            Statement(
                "more_training_many_tasks",
                "with 512 tasks, four times the steps multiply it by {value}",
                "More training takes models of many tasks towards ridge",
            ),
        ),
    ),
    Finding(
        "trajectories",
        "trajectories",
        (
            Statement(
                "component_of_ood_loss",
                "one of the first two components of the joint trajectory PCA has a |correlation| of {value} with the "
                "loss on fresh tasks",
                "A main direction of training follows the loss on fresh tasks",
            ),
            Statement("components", "these two components explain {value} of the variance"),
        ),
    ),
)
