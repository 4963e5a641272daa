"""The claims on function classes, with ranges that were fixed before their runs were trained.

Ranges of error are those that this study set itself; ranges of papers are what their texts say in words. The number of
functions at half of the way is an expectation: neither memorised at four functions nor in need of a thousand.
"""

from __future__ import annotations

from typing import Any

from icl_lab.studies.claim import OURS, UNBOUNDED, Claim, Rival, Without
from icl_lab.studies.functions import measures
from icl_lab.studies.functions.runs import POOLED

GARG = "Garg et al. 2022, arXiv 2208.01066"
BHATTAMISHRA = "Bhattamishra et al. 2023, arXiv 2310.03016"
CHOSEN, EXPECTED = "ours", "expectation"
BY_GARG: dict[str, Any] = {
    "paper": GARG,
    "smaller": "5 to 10 inputs, 3 blocks and 20 000 steps; the paper has 20, 12 and 500 000",
}
BY_BHATTAMISHRA: dict[str, Any] = {
    "paper": BHATTAMISHRA,
    "smaller": "8 inputs and 2 or 3 blocks; the paper has 28 or more, and 12",
}
BY_US: dict[str, Any] = {"about": "ours", "paper": OURS}
SAME_PROMPTS = Without("two predictors are compared on the same prompts")
UNSHIFTED = Rival("the same prompts without a shift", measures.last_under("none"))
WORDS = {
    "linear": "linear functions",
    "noisy_linear": "noisy linear functions",
    "quadratic": "quadratic functions",
    "fourier": "Fourier series",
    "decision_tree": "decision trees",
    "relu_network": "two-layer networks",
}


# fmt: off
def _half(kind: str) -> Claim:
    """How many functions a decoder must see until it is nearer to the class than to its pool."""
    says = f"{WORDS[kind]}: log2 of the number of functions at which, on fresh functions, a model is half as far from the reference as the posterior of its pool"
    return Claim(f"half_{kind}", "pools", says, 6.0, 2.0, 10.0, EXPECTED, measures.log2_half, f"pools_{kind}", "full", scale="linear", infinite="it never is", control=Without("pools of other sizes are the control"), **BY_US)


CLAIMS: tuple[Claim, ...] = (
    # a small decoder in a minute
    Claim("small_gain", "curves", "2 blocks, D = 2, 5000 steps: gain from the context, divided by the gain of Bayes", 0.9, 0.8, 1.0, CHOSEN, measures.gain, "quick", scale="linear", control=Rival("trained on four functions, on fresh ones", lambda run: measures.gain(run, "ood"), ("quick_pool",)), **BY_US),
    Claim("small_pool", "pools", "2 blocks, D = 2, a pool of 4: on fresh functions, excess over Bayes, divided by the excess of the pool's posterior", 1.0, 0.7, 1.3, CHOSEN, measures.distance_over_pool, "quick_pool", control=Without("the pool's posterior is 1, Bayes 0"), **BY_US),
    # curves beside baselines
    Claim("linear_error", "text", "linear, D = 5: error / D after 2 D pairs", 0.02, 0.0, 0.02, CHOSEN, measures.error_at(2), "linear", "full", scale="nonnegative", control=Rival("averaging", measures.error_at(2, "averaging")), **BY_GARG),
    Claim("linear_error_late", "curves", "linear, D = 5: largest error / D after D + 2 pairs or more", 0.05, 0.0, 0.05, CHOSEN, measures.largest_error_from(2), "linear", "full", scale="nonnegative", control=Rival("averaging", measures.error_at(2, "averaging")), **BY_US),
    Claim("noisy_excess", "curves", "noisy linear, D = 5: largest excess of error / D over ridge, the Bayes predictor, at any position", 0.01, 0.0, 0.02, CHOSEN, measures.largest_excess("bayes"), "noisy_linear", "full", scale="nonnegative", control=Rival("averaging", measures.largest_excess_of("averaging", "bayes"), later=True), **BY_US),
    Claim("sparse_over_lasso", "text", "sparse linear, D = 10, s = 2: largest excess of error over lasso after 1 to D - 1 pairs", -0.02, -UNBOUNDED, 0.0, CHOSEN, measures.largest_excess("lasso", 1, below_dim=True), "sparse_linear", "full", scale="linear", control=SAME_PROMPTS, **BY_GARG),
    Claim("tree_over_boosting", "text", "trees, D = 6, depth 3: excess of error over boosted trees on the inputs' signs, after 39 pairs", -0.03, -UNBOUNDED, 0.0, CHOSEN, measures.last_excess("boosted_trees_on_signs"), "decision_tree", "full", scale="linear", control=SAME_PROMPTS, **BY_GARG),
    Claim("tree_excess", "curves", "trees, D = 6, depth 3: excess of error over exact Bayes, after 39 pairs", 0.05, 0.0, 0.1, EXPECTED, measures.last_excess("bayes"), "decision_tree", "full", scale="nonnegative", control=Rival("boosted trees on the inputs themselves", measures.largest_excess_of("boosted_trees", "bayes", 39)), **BY_US),
    Claim("network_over_adam", "text", "two-layer networks, D = 5, 20 units: excess of error over a network trained by Adam on the context, after 40 pairs", -0.02, -UNBOUNDED, 0.0, CHOSEN, measures.last_excess("adam_network"), "relu_network", "full", scale="linear", control=SAME_PROMPTS, **BY_GARG),
    Claim("conjunctions_excess", "text", "conjunctions, D = 8: largest excess of log loss over Bayes after 5 pairs or more, nats", 0.01, 0.0, 0.02, CHOSEN, measures.largest_excess("bayes", 5), "conjunctions", "full", scale="nonnegative", control=Rival("the best constant", measures.largest_excess_of("prior", "bayes", 5)), **BY_BHATTAMISHRA),
    # every class
    Claim("further_least_gain", "classes", "eight further classes, D = 4: the least gain from the context, divided by the gain of the reference", 0.8, 0.5, 1.0, EXPECTED, measures.least_gain, "further", "full", scale="linear", control=Without("a model that ignores the context has 0"), **BY_US),
    Claim("parities_learnt", "text", "parities of 2 of 8 inputs, trained on 24 of 28: share of runs that gain half of what Bayes gains on the other 4", 0.0, 0.0, 0.5, CHOSEN, measures.learns_others, "parities", "full", scale="share", control=Without("no run is expected to learn them"), **BY_BHATTAMISHRA),
    Claim("noise_averaged", "classes", "two noise levels, posterior weights .2 to .8: where the model lies from the likelier ridge, 0, to Bayes's average of both, 1", 1.0, 0.75, 1.25, EXPECTED, measures.share_of_averaging, "two_noise_levels", "full", scale="linear", control=Without("the likelier ridge has 0"), **BY_US),
    # shifts
    Claim("shift_quadrants", "text", "linear, contexts in one orthant: excess over the best baseline, divided by the labels' variance, last position", 0.05, 0.0, 0.1, CHOSEN, measures.last_under("random_quadrants"), "linear", "full", scale="nonnegative", control=Without("a shift that does not break the model differs little from none"), **BY_GARG),
    Claim("shift_subspace", "text", "linear, inputs in half of the dimensions: excess over the best baseline, divided by the labels' variance, last position", 0.2, 0.1, UNBOUNDED, CHOSEN, measures.last_under("half_subspace"), "linear", "full", control=UNSHIFTED, **BY_GARG),
    Claim("shift_skewed", "text", "linear, skewed covariance: excess over the best baseline, divided by the labels' variance, last position", 0.2, 0.1, UNBOUNDED, CHOSEN, measures.last_under("skewed_covariance"), "linear", "full", control=UNSHIFTED, **BY_GARG),
    Claim("shift_scale", "text", "linear, inputs times 3: excess over the best baseline, divided by the labels' variance, last position", 0.3, 0.1, UNBOUNDED, CHOSEN, measures.last_under("x_three_times"), "linear", "full", control=UNSHIFTED, **BY_GARG),
    # curriculum and size
    Claim("curriculum_sooner", "text", "linear, D = 10: share of pairs of runs in which the run with a curriculum is the first whose error / D after 2 D pairs is .1", 1.0, 0.6, 1.0, CHOSEN, measures.is_sooner, "from_two_inputs", "full", "all_inputs", scale="share", control=Without("paired runs of equal steps are compared"), **BY_GARG),
    Claim("larger_is_better", "text", "linear, D = 8: error after 2 D pairs of three blocks and 64 channels, divided by the error of one block and 32 channels", 0.3, 0.0, 0.7, CHOSEN, measures.error_over(8), "three_layers", "full", "one_layer", control=Without("two sizes are compared"), **BY_GARG),
    # pools
    *(_half(kind) for kind in POOLED),
)
# fmt: on
