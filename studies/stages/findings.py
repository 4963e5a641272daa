"""What the page of stages begins with: are there stages, when, how sure, what is schedule, what is artefact."""

from __future__ import annotations

from studies.findings import Finding, Statement

FINDINGS: tuple[Finding, ...] = (
    Finding(
        "are_there_stages",
        "linear_llc",
        (
            Statement(
                "linear_stage",
                "at least one stage of one linear layer's LLC leaves its nulls at both unsaturated settings in {value}",
                "There are stages",
            ),
            Statement("two_tasks_stage", "of a decoder on two tasks in {value}"),
            Statement("regression_stage", "of the regression transformer, over 70 000 steps, in {value}"),
        ),
    ),
    Finding(
        "what_they_are",
        "narrow_llc",
        (
            Statement(
                "narrow_two_tasks",
                "at the end of training the LLC of two tasks is {value} times that of one",
                "More tasks are more complex",
            ),
            Statement("two_tasks_fall", "from its largest to the end the LLC falls to {value} of it"),
        ),
    ),
    Finding(
        "how_sure",
        "narrow_components",
        (
            Statement(
                "narrow_variance",
                "the first component of a trajectory has {value} times the share of the variance that random walks of "
                "its own steps have",
                "Variance and forms of a trajectory are those of a random walk",
            ),
            Statement("narrow_forms", "it has {value} times as many forms as they"),
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
                "at the published setting the LLC of two tasks is a line in the loss, of slope {value} of -nβ",
                "The published curve is the loss turned over",
            ),
            Statement("rise_is_loss", "so it is in the rise of the regression transformer's: {value}"),
            Statement("decline_is_norm", "its decline is {value} of what the growth of the weights alone makes of it"),
        ),
    ),
)
