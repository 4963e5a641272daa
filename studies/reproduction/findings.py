"""What the page of the reproduction begins with: five findings, each resting on claims of the ledger."""

from __future__ import annotations

from icl_lab.studies.findings import Finding, Statement

PAIRS = 10  # N of the interleaved runs


def without_the_next(ratio: float) -> float:
    """The sensitivity to the next token over that to the others without it, from the published ratio r.

    That one divides the others and the next together by 2N - 1: (2N - 2) r / (2N - 1 - r), infinite at its bound.
    """
    bound = 2 * PAIRS - 1
    return (bound - 1) * ratio / (bound - ratio) if ratio < bound else float("inf")


FINDINGS: tuple[Finding, ...] = (
    Finding(
        "one_step",
        "rollout",
        (
            Statement(
                "one_layer_loss",
                "the loss of a trained layer is {value} times that of the tuned step",
                "One linear layer is one step of gradient descent",
            ),
            Statement(
                "rollout_overlap",
                "applied up to 50 times at damping .75, its largest |loss ratio to gradient descent - 1| is {value}",
            ),
        ),
    ),
    Finding(
        "two_steps",
        "two_layers_training",
        (
            Statement(
                "two_layers_descend_first",
                "at step 750 of training, the cosine of their sensitivities with gradient descent's is {value}",
                "Two recurrent layers first do gradient descent",
            ),
            Statement(
                "two_layers_turn",
                "from step {value} on they stay nearer to GD++",
                "Then they switch to GD++",
            ),
            Statement("two_layers_plus_plus", "they end at {value} times the loss of two steps of GD++"),
        ),
    ),
    Finding(
        "deeper",
        "ten_layers_training",
        (
            Statement(
                "ten_layers_loss", "ten recurrent layers end at {value}", "Deeper stacks reach the published loss"
            ),
            Statement(
                "ten_layers_plus_plus",
                "their loss is {value} times that of ten steps of GD++ with fitted rates",
                "They are GD++",
            ),
        ),
    ),
    Finding(
        "copying",
        "interleaved_training",
        (
            Statement(
                "interleaved_loss",
                "the loss of two layers on such tokens is {value} times that of one step",
                "On interleaved tokens two layers do one step of gradient descent",
            ),
            Statement(
                "interleaved_ratio",
                "its sensitivity to the next token is {also} times that to the others, and {value} times by the "
                "published formula, which counts the next token among the others",
                "The first layer copies",
                also=without_the_next,
            ),
        ),
    ),
    Finding(
        "replaced_labels",
        "five_layers_shifts",
        (
            Statement(
                "replaced_five_layers_median",
                "with 2 of 10 labels replaced, the median loss of five layers is {value} times that of five steps of "
                "gradient descent",
                "Depth costs robustness",
            ),
            Statement("replaced_five_layers", "their mean loss, which a few contexts dominate, is {value}"),
        ),
    ),
)
