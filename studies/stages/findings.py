"""What the page of stages begins with: are there stages, when, how sure, what is schedule, what is artefact."""

from __future__ import annotations

from math import exp2

from studies.findings import Finding, Statement

FINDINGS: tuple[Finding, ...] = (
    Finding(
        "are_there_stages",
        "linear_llc",
        (
            Statement(
                "linear_stage",
                "a stage of one linear layer's LLC differs from its nulls at two unsaturated settings in {value}",
                "One layer of linear attention has a stage",
            ),
            Statement("two_tasks_stage", "of a decoder on two tasks in {value}"),
            Statement("regression_stage", "of the regression transformer, over 70 000 steps, in {value}"),
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
            Statement(
                "linear_alignment",
                "its LLC goes with its own cosine with gradient descent, given the step, by a rank correlation {value} "
                "larger than with another seed's",
                "The LLC follows the run's own alignment, and not only the time",
            ),
            Statement(
                "narrow_two_tasks",
                "late in training a narrow decoder's LLC is {value} times as large on two tasks as on one",
            ),
        ),
    ),
    Finding(
        "how_sure",
        "narrow_components",
        (
            Statement(
                "linear_stage_support",
                "of curves that the linear layer's LLCs allow, {value} have that plateau",
            ),
            Statement(
                "narrow_variance",
                "of random walks with the steps of a narrow decoder's training, {value} have a first component with "
                "less of the variance",
                "The variance of a trajectory is no sign of stages",
            ),
            Statement("narrow_forms", "{value} of them have as many forms"),
        ),
    ),
    Finding(
        "what_is_schedule",
        "schedules",
        (
            Statement(
                "peak_moves",
                "the step of the largest LLC grows with the length of the schedule to the power {value}",
                "Milestones move with the schedule, as equal integrals of the learning rate do (1/2)",
            ),
            Statement("dip_moves", "that of the least squared prediction to the power {value}"),
        ),
    ),
    Finding(
        "what_is_artefact",
        "narrow_published",
        (
            Statement(
                "narrow_is_loss",
                "the LLC of a narrow decoder on two tasks is a line in the loss, of slope {value} of -nβ",
                "At the published setting the LLC says what the loss says",
            ),
            Statement("narrow_is_loss_later", "without the first checkpoint the slope is {value} of it"),
            Statement("linear_slope", "of one linear layer, where chains are healthy, {value} of it"),
            Statement("rise_is_loss", "in the rise of the regression transformer's LLC it is {value}"),
            Statement("decline_is_norm", "its decline is {value} of what the growth of |w| alone makes of it"),
            Statement("decline_is_norm_and_loss", "and {value} of what that and the fall of the loss make of it"),
        ),
    ),
)
