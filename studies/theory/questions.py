"""The questions that theory answers, each a page: what is asked, what is predicted, how it is measured."""

from __future__ import annotations

from studies.findings import Statement
from studies.question import Question
from studies.theory.claims import AHN, FU, MAHANKALI, OF_HIGHER_ORDER, OF_PRECONDITIONED, PAPER_GD, ZHANG

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

HIGHER_ORDER = Question(
    "higher_order",
    "First or higher order",
    "On contexts of a given spectrum, which algorithm's curve of loss against depth do linear layers follow?",
    "; ".join((PAPER_GD, FU)),
    """K steps leave p(λ) of a teacher in the direction of each eigenvalue λ of XᵀX/N. Gradient descent with any step sizes is a polynomial
of degree K with p(0) = 1; Newton-Schulz and GD++ are of degree 3 to the power K and more, conjugate gradients adapt to each context. For
isotropic tasks and queries the share of zero's loss that is left is the mean of p(λ)². At condition number 100 and K = 2 it is .473 for
the best single step size, .404 for the best polynomial, .395 for conjugate gradients, .394 for Newton-Schulz from a multiple of I, .717 from one of XᵀX, and
.168 for GD++ with the best rates for each step. So the curves are far apart where the spectrum is exact.""",
    (
        Statement(
            "order_one_layer",
            "{value} of a gradient step's loss",
            "One layer: one gradient step (1.000); one Newton-Schulz step: .78",
        ),
        Statement(
            "order_exact_100_2",
            "{value} of it",
            "Two layers, condition number 100: what GD++ leaves, .168 of zero's loss (1.00); the best polynomial: 2.40",
        ),
        Statement(
            "order_exact_1000_2",
            "{value} of it",
            "Condition number 1000: what GD++ leaves, .349 (1.00); the best polynomial: 1.64",
        ),
        Statement(
            "order_exact_100_3",
            "{value} of zero's loss",
            "Three layers, condition number 100: at most .02 of zero's loss; the best polynomial: .267",
        ),
        Statement(
            "order_nearer_than_polynomial",
            "ratio {value}",
            "Two layers: sensitivities nearer to GD++ than to the best polynomial (1 - cosine, ratio 0; equally near: 1)",
        ),
        Statement(
            "order_nearer_than_conjugate_gradients",
            "ratio {value}",
            "Eigenvalues drawn for each context: nearer to GD++ than to conjugate gradients (ratio 0)",
        ),
        Statement(
            "order_looped_median",
            "times {value}",
            "Recurrent layers run twice as deep as trained: the median loss falls (below 1)",
        ),
        Statement("order_looped_mean", "times {value}", "and the mean rises (above 1)"),
    ),
    """D = 10, N = 20. Each context has XᵀX/N = U Λ Uᵀ exactly, with U Haar-distributed; tasks and queries are isotropic, labels clean. Layers have
weights of their own: Adam at .003 with a cosine schedule, gradients clipped at 1, initial variance scale .1, 8000 steps of 256 contexts.
From an initial scale of .5 a pilot of three layers never left the plateau. Cosines of sensitivities are those of the
algorithm-distance matrix, in which every algorithm takes as many steps as there are layers. The looped layers are trained by the default
preset; no pilot was run for these. Mean losses beyond the trained depth are those of a few contexts with large eigenvalues, so medians decide.""",
    tuple(claim.name for claim in OF_HIGHER_ORDER),
    ("higher_order",),
)

QUESTIONS = (PRECONDITIONED, HIGHER_ORDER)
