"""What the page of stages begins with: are there stages, when, how sure, what is schedule, what is artefact."""

from __future__ import annotations

from math import exp2

from icl_lab.studies.findings import Finding, Statement

FINDINGS: tuple[Finding, ...] = (
    Finding(
        "are_there_stages",
        "unit_llc",
        (
            Statement(
                "two_tasks_stage",
                "a stage of the LLC of a decoder on two tasks differs from its nulls at two unsaturated settings in "
                "{value}",
                "Decoders on two tasks and one layer of linear attention have stages",
            ),
            Statement("linear_stage", "one of a linear layer's does in {value}"),
            Statement("one_task_stage", "one of a decoder's on one task does in {value}"),
            Statement("regression_stage", "one of the regression transformer's, over 70 000 steps, does in {value}"),
        ),
    ),
    Finding(
        "when",
        "linear_stages",
        (
            Statement(
                "linear_stage_end",
                "one linear layer's LLC is on the plateau after its first claimed stage from step {also} on, "
                "log2 {value}",
                also=exp2,
            ),
        ),
    ),
    Finding(
        "how_sure",
        "linear_llc",
        (
            Statement(
                "linear_stage_support",
                "of the posterior draws of the linear layer's LLC curve, a share {value} has that plateau",
            ),
        ),
    ),
    Finding(
        "what_is_schedule",
        "unit_constant",
        (
            Statement(
                "two_tasks_fall_constant",
                "at a constant learning rate the LLC falls to {value} of its largest",
                "On two tasks the LLC falls without a schedule too",
            ),
            Statement("two_tasks_fall", "with the schedule it falls to {value}"),
            Statement(
                "dip_moves",
                "the step of the least squared prediction grows with the length of the schedule to the power {value}",
                "Milestones move with the schedule, as at equal integrals of the learning rate (exponent 1/2)",
            ),
        ),
    ),
    Finding(
        "what_is_artefact",
        "narrow_published",
        (
            Statement(
                "narrow_is_loss",
                "the LLC of a narrow decoder on two tasks is linear in the loss, with slope {value} times -nβ",
                "At the published setting the LLC is a rescaled loss",
            ),
            Statement("rise_is_loss", "the regression transformer's, until it is largest, {value} times"),
            Statement(
                "linear_slope",
                "the slope of one linear layer, over usable checkpoints, is {value} times -nβ",
                "At an unsaturated setting the LLC is not a rescaled loss",
            ),
            Statement(
                "narrow_variance",
                "of random walks with the steps of a narrow decoder's training, a share {value} has a first component "
                "that explains less of the variance",
                "The variance of a trajectory is no sign of stages",
            ),
        ),
    ),
)
