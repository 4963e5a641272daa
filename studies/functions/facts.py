"""The facts that the claims state, each with its claims: those of one fact do not confirm each other."""

from __future__ import annotations

from icl_lab.studies.functions.runs import POOLED

FACTS: dict[str, tuple[str, ...]] = {
    "A decoder learns linear functions nearly as well as least squares.": (
        "small_gain",
        "linear_error",
        "linear_error_late",
        "noisy_excess",
    ),
    "A decoder that is trained on a class predicts better than general methods.": (
        "sparse_over_lasso",
        "tree_over_boosting",
        "tree_excess",
        "network_over_adam",
    ),
    "Conjunctions are learnt, parities are not.": ("conjunctions_excess", "parities_learnt"),
    "Decoders gain from the context in every other class.": ("further_least_gain",),
    "A decoder averages over two noise levels, as Bayes does.": ("noise_averaged",),
    "A decoder of linear functions predicts well from a context in one orthant, and badly at another covariance or scale of the inputs.": (
        "shift_quadrants",
        "shift_subspace",
        "shift_skewed",
        "shift_scale",
    ),
    "A curriculum shortens training.": ("curriculum_sooner",),
    "Larger models err less.": ("larger_is_better",),
    "A pool of a hundred functions or fewer teaches the class.": (*(f"half_{kind}" for kind in POOLED), "small_pool"),
}
