"""The questions that theory answers, each a page: what is asked, what is predicted, how it is measured."""

from __future__ import annotations

from studies.findings import Statement
from studies.question import Question
from studies.theory.claims import AHN, MAHANKALI, OF_PRECONDITIONED, ZHANG

PRECONDITIONED = Question(
    "preconditioned",
    "Preconditioned gradient descent",
    "On inputs of any covariance, is one linear layer the preconditioned gradient step of theory, and no other?",
    "; ".join((AHN, ZHANG, MAHANKALI)),
    """One layer predicts ŷ = 1/n Σ yᵢ xᵢᵀ A x_q. For x ~ N(0, Λ), w ~ N(0, W) and label noise σ² the best A is

    A = ((1 + 1/n) W Λ + (tr WΛ + σ²)/n I)⁻¹ W

which is a multiple of I for isotropic inputs and of Λ⁻¹ for W = Λ⁻¹. Where the axes of Λ are drawn for each context it is a
multiple of I again: gradient descent. A does not change with the test context, so the loss on more pairs than in training ends
on a plateau, and another covariance of the inputs is not tolerated; other tasks and queries are, by a known factor.""",
    (
        Statement(
            "preconditioned_reciprocal_loss",
            "{value} of the closed form's loss",
            "Eigenvalues 1/i: loss of the closed form (1.000); one gradient step: 1.404",
        ),
        Statement(
            "preconditioned_condition_100_loss",
            "{value} of the closed form's loss",
            "Condition number 100: loss of the closed form (1.000); one gradient step: 1.840",
        ),
        Statement(
            "preconditioned_condition_100_matrix",
            "distance {value}",
            "Condition number 100: W_K^T W_Q is the closed form (0); from the identity .558, from the inverse covariance .425",
        ),
        Statement(
            "preconditioned_1000_pairs",
            "{value} of it",
            "Trained on 20 pairs, tested on 1000: the trained step's loss (1.00); with the best step for 1000 pairs .44",
        ),
        Statement(
            "preconditioned_covariance_shift",
            "factor {value}",
            "Eigenvalues reversed at test: loss times 14.84; of a step fitted to them, times 1",
        ),
        Statement(
            "preconditioned_rotated_loss",
            "{value} of gradient descent's",
            "Axes drawn for each context: gradient descent again (1.000); as with shared axes: .712",
        ),
        Statement(
            "preconditioned_relu_teacher",
            "{value} of gradient descent's",
            "Labels relu(w·x): still one gradient step (1.000); ridge: 1.40",
        ),
    ),
    """`lsa1`, one linear layer, 6000 steps of 1024 contexts, Adam at .01 with a cosine schedule, gradients not clipped, initial variance scale
.5; D = 10. At .003 one pilot in three stays on a plateau at twice the optimum's loss. The loss ratio is on the same 10 000 test tasks.
W_K^T W_Q is compared after the best scalar, in the relative Frobenius norm. A layer's sum over m pairs is divided by m/n.
Closed forms agree with simulation within three standard errors at settings that are in no paper (tests/baselines/test_preconditioned.py).""",
    tuple(claim.name for claim in OF_PRECONDITIONED),
    ("preconditioned", "test_length"),
)

QUESTIONS = (PRECONDITIONED,)
