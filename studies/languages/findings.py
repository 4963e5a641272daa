"""What the page of languages begins with: does it match, does it use its context, and why did it seem not to match."""

from __future__ import annotations

from studies.findings import Finding, Statement

FINDINGS: tuple[Finding, ...] = (
    Finding(
        "does_it_match",
        "answer",
        (
            Statement(
                "sound_gd_cosine",
                "the cosine of its sensitivities with one step's, at the best step size, is {value}",
                "Trained on codes of strings, one linear layer is not one step of gradient descent",
            ),
            Statement(
                "sound_optimum_cosine",
                "with the best predictor of the form sᵀ A x_q it is {value}",
                "It is the optimum of one layer, a preconditioned step",
            ),
        ),
    ),
    Finding(
        "does_it_use_its_context",
        "val_acc",
        (
            Statement(
                "sound_over_no_context",
                "its accuracy is {value} above that of a linear classifier that never looks at the context",
                "With negatives that need the context it uses it",
            ),
            Statement("sound_over_ridge", "it is {value} above ridge regression's"),
            Statement("sound_over_shuffled", "it is {value} above its own with the context's labels in another order"),
        ),
    ),
    Finding(
        "why_it_seemed_not_to",
        "flaws",
        (
            Statement(
                "hash_no_context",
                "with them a linear classifier without context is {value} more accurate than ridge regression",
                "The published negatives need no context",
            ),
            Statement(
                "hash_shuffled", "a layer trained on them has an accuracy of {value} with shuffled context labels"
            ),
            Statement(
                "published_construction",
                "its predictions are {value} times as far from the model's as these are from 0, in root mean squares",
                "The step size and the sign of the published construction were wrong",
            ),
        ),
    ),
    Finding(
        "unseen_languages",
        "singular_values",
        (
            Statement(
                "sound_unseen",
                "on three other languages the same layer has {value} times the loss of ridge regression",
                "What it has learnt is the three languages",
            ),
        ),
    ),
    Finding(
        "how_many_languages",
        "number_of_languages",
        (
            Statement(
                "many_languages_unseen",
                "trained on 300 random languages its loss on unseen ones is {value} times ridge regression's",
                "With many languages it learns to learn them",
            ),
            Statement("linear_memory", "that is {value} times its loss on the trained ones"),
        ),
    ),
)
