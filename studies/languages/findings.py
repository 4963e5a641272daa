"""What the page of languages begins with: does it match, does it use its context, and why did it seem not to match."""

from __future__ import annotations

from icl_lab.studies.findings import Finding, Statement

FINDINGS: tuple[Finding, ...] = (
    Finding(
        "does_it_match",
        "answer",
        (
            Statement(
                "sound_optimum_cosine",
                "the cosine of its sensitivities with the best predictor of the form sᵀ A x_q is {value}",
                "Trained on codes of strings, one linear layer is a preconditioned step of gradient descent",
            ),
            Statement("sound_way", "from one plain step's loss it makes {value} of the way to that predictor's"),
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
                "published_construction",
                "its predictions are {value} times as far from the model's as these are from 0, in root mean squares",
                "The step size and the sign of the published construction were wrong",
            ),
        ),
    ),
    Finding(
        "other_codes",
        "codes",
        (
            Statement(
                "autoencoder_over_ridge",
                "on those of an autoencoder its accuracy is {value} above ridge regression's",
                "Learned codes give the same answer",
            ),
            Statement(
                "softmax_accuracy",
                "its accuracy is {value} above that of the optimum of one linear layer",
                "A softmax transformer with MLPs does better than any one linear layer",
            ),
        ),
    ),
    Finding(
        "how_many_languages",
        "number_of_languages",
        (
            Statement(
                "softmax_memory_few",
                "trained on ten random languages, its loss on unseen ones is {value} times that on these ten",
                "What a softmax transformer learns is its languages, where these are few",
            ),
        ),
    ),
)
