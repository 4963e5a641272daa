"""The claims of "Transformers Learn In-Context by Gradient Descent" (von Oswald et al. 2023), as data.

What counts as reproduced stands here before anything is measured. Losses are half the mean squared error. A range is
derived (closed forms and independent computation), read off a published plot (the larger of 5 % and the reading error),
stated in the text, or ours: a bound that puts a sentence of the paper into a number. Where runs can stay on the plateau
there are two claims: the share of the runs that left it, and the value among those.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from studies.claim import OURS as LABORATORY
from studies.claim import UNBOUNDED, Claim, around, was
from studies.reproduction.measures import algorithms, depth, distances, over_training, rolled, sines, trained

DERIVED, PLOT, TEXT, OURS = "derived", "plot reading", "text", "ours"
COSINE: dict[str, Any] = {"scale": "fisher"}
SHARE: dict[str, Any] = {"scale": "fraction"}
CHECK: dict[str, Any] = {"about": "check"}
FOUND: dict[str, Any] = {"about": "ours", "paper": LABORATORY}
# At most half as far. The expected ratios take GD++ to be at the paper's cosine, and what is left to point anywhere:
# (1 - cosine) / (1 - cosine + the distance of GD++ from that descent, which is .019, .075, .012 at 3, 5, 10 steps).
NEARER: dict[str, Any] = FOUND | {"no_effect": (0.8, 1.25)}
OVER_TRAINING: dict[str, Any] = {
    "control": (),
    "uncontrolled": "a network that is not trained has no training to follow",
}

# fmt: off
CLAIMS: tuple[Claim, ...] = (
    # one linear layer is one step
    Claim("one_layer_loss", "2a", "one trained layer has the loss of one tuned step", 1.0, 0.99, 1.01, DERIVED, trained.over("gd"), "one_layer"),
    Claim("one_layer_level", "2a", "that loss is .205", 0.205, *around(0.205, 0.05), PLOT, trained.loss, "one_layer"),
    Claim("one_layer_cosine", "2b", "sensitivities align with gradient descent's", 0.9992, 0.99, 1.0, DERIVED, trained.against("gd", "model_cos"), "one_layer", **COSINE),
    Claim("one_layer_predictions", "2b", "mean |prediction difference|", 0.02, 0.0, 0.025, DERIVED, trained.against("gd", "preds_diff"), "one_layer"),
    Claim("one_layer_sensitivities", "2b", "mean ‖sensitivity difference‖", 0.1, 0.0, 0.15, PLOT, trained.against("gd", "model_diff"), "one_layer"),
    Claim("one_layer_interpolation", "2d", "halfway to the construction the loss is that of training", 1.0, 0.99, 1.01, DERIVED, trained.interpolation, "one_layer"),
    Claim("one_layer_plateau_length", "2a", "a plateau at .4 of 1000 to 3000 steps", 2000, 1000, 3000, PLOT, over_training.steps_until_learnt, "one_layer", spacing=500),
    Claim("one_step_size", "2a", "the best step is eta/N = .606", 0.60606, *around(0.60606, 0.02), DERIVED, algorithms.best_step, **CHECK),
    # out of distribution
    Claim("inputs_near", "6a", "inputs of half to 1.5 times the range: as gradient descent, largest |ratio - 1|", 0.0, 0.0, 0.05, PLOT, trained.furthest_under("input_range", (0.5, 0.75, 1.25, 1.5)), "one_layer"),
    Claim("inputs_far", "6a", "inputs of twice the range: as gradient descent, |ratio - 1|", 0.0, 0.0, 0.05, PLOT, trained.furthest_under("input_range", (2.0,)), "one_layer"),
    Claim("teachers", "6b", "teachers of .5 to 5 times the scale: as gradient descent, largest |ratio - 1|", 0.0, 0.0, 0.05, PLOT, trained.furthest_under("weight_scale", (0.5, 1.0, 2.0, 5.0)), "one_layer"),
    Claim("other_inputs", "6c", "exponential, normal and Laplace inputs, .5 to 3 times: as gradient descent, largest |ratio - 1|", 0.0, 0.0, 0.05, PLOT, trained.furthest_under("other_inputs", (0.5, 1.0, 2.0, 3.0)), "one_layer"),
    Claim("distractors", "code", "up to 8 of 10 labels replaced: as gradient descent, largest |ratio - 1|", 0.0, 0.0, 0.05, DERIVED, trained.furthest_under("distractors", (0, 2, 4, 6, 8)), "one_layer"),
    # roll-outs
    Claim("rollout_overlap", "1", "50 applications at damping .75 overlap with gradient descent, largest |ratio - 1|", 0.0, 0.0, 0.05, DERIVED, rolled.furthest(0.75), "one_layer"),
    Claim("rollout_end", "1", "they end at .0433 (trimmed mean)", 0.0433, *around(0.0433, 0.05), DERIVED, rolled.end(0.75), "one_layer"),
    Claim("rollout_median", "1", "the median over contexts ends at .0433", 0.0433, *around(0.0433, 0.05), DERIVED, rolled.median_end(0.75), "one_layer"),
    Claim("rollout_undamped", "10", "undamped, 3.4 % of tasks diverge", 0.034, 0.02, 0.05, DERIVED, rolled.unstable(1.0), "one_layer", **SHARE),
    Claim("rollout_undamped_gd", "10", "so they do under gradient descent", 0.034, 0.02, 0.05, DERIVED, rolled.unstable(1.0, "gd"), "one_layer", **SHARE, **CHECK),
    Claim("rollout_damped", "10", "at damping .875 fewer: .36 %", 0.0036, 0.001, 0.006, DERIVED, rolled.unstable(0.875), "one_layer", **SHARE),
    Claim("rollout_undamped_minimum", "10", "undamped, the mean falls to about .12 before it grows", 0.12, *around(0.12, 0.15), DERIVED, rolled.lowest_mean(1.0), "one_layer"),
    Claim("rollout_damped_minimum", "10", "at damping .875 to about .09", 0.09, *around(0.09, 0.15), DERIVED, rolled.lowest_mean(0.875), "one_layer"),
    # sizes
    *(
        claim
        for n, level, profile in ((5, 0.102, "quick"), (20, 0.415, "quick"), (35, 0.727, "full"), (50, 1.040, "full"))
        for claim in (
            Claim(f"size_{n}_left_plateau", "2c", f"N = D = {n}: runs leave the plateau, share", 1.0, 0.5, 1.0, OURS, trained.has_learnt, f"size_{n}", profile, scale="share"),
            Claim(f"size_{n}_ratio", "2c", f"N = D = {n}: those have the loss of one tuned step", 1.0, 0.98, 1.02, PLOT, trained.if_learnt(trained.over("gd")), f"size_{n}", profile, learnt_only=True),
            Claim(f"size_{n}_value", "2c", f"N = D = {n}: its level", level, *around(level, 0.05), DERIVED, trained.if_learnt(trained.loss), f"size_{n}", profile, learnt_only=True),
        )
    ),
    # two layers, recurrent
    Claim("two_layers_loss", "3a", "two recurrent layers reach .113", 0.113, 0.0, 0.113 * 1.05, PLOT, trained.loss, "two_layers"),
    Claim("two_layers_gd", "3a", "loss ratio to two tuned steps of gradient descent", 0.72, *around(0.72, 0.05), PLOT, trained.over("gd"), "two_layers", earlier=was(0.0, 0.9, "any loss below .9 passed; the paper's .113 and .155 give .72")),
    Claim("two_layers_plus_plus", "3a", "as GD++ with learned rates, loss ratio", 1.0, 0.95, 1.05, TEXT, trained.over("gd_plus_plus"), "two_layers"),
    Claim("two_layers_cosine_gd", "3a", "cosine of sensitivities with gradient descent's", 0.955, 0.935, 0.975, PLOT, trained.against("gd", "model_cos"), "two_layers", **COSINE),
    Claim("two_layers_cosine", "3a", "with GD++'s", 0.995, 0.995, 1.0, PLOT, trained.against("gd_plus_plus", "model_cos"), "two_layers", **COSINE),
    Claim("two_layers_predictions", "3a", "mean |prediction difference| to GD++", 0.04, 0.0, 0.05, PLOT, trained.against("gd_plus_plus", "preds_diff"), "two_layers"),
    Claim("two_layers_predictions_gd", "3a", "mean |prediction difference| to gradient descent", 0.18, *around(0.18, 0.15), PLOT, trained.against("gd", "preds_diff"), "two_layers"),
    Claim("two_layers_interpolation", "3a", "halfway to GD++ the loss is that of training", 1.0, 0.0, 1.05, TEXT, trained.interpolation, "two_layers"),
    Claim("two_layers_sensitivities", "3a", "mean ‖sensitivity difference‖ to GD++", 0.17, 0.0, 0.2, PLOT, trained.against("gd_plus_plus", "model_diff"), "two_layers"),
    Claim("two_layers_inputs", "6a", "inputs of half to 1.5 times the range: as GD++, largest |ratio - 1|", 0.0, 0.0, 0.1, PLOT, trained.furthest_under("input_range", (0.5, 0.75, 1.25, 1.5)), "two_layers"),
    Claim("two_layers_teachers", "6b", "teachers of .5 to 5 times the scale: as GD++, largest |ratio - 1|", 0.0, 0.0, 0.1, PLOT, trained.furthest_under("weight_scale", (0.5, 1.0, 2.0, 5.0)), "two_layers"),
    Claim("two_layers_other_inputs", "6c", "other inputs, .5 to 2 times: as GD++, largest |ratio - 1|", 0.0, 0.0, 0.1, PLOT, trained.furthest_under("other_inputs", (0.5, 1.0, 2.0)), "two_layers"),
    Claim("two_layers_descend_first", "", "two recurrent layers are gradient descent first: cosine with it at step 750", 0.995, 0.99, 1.0, OURS, distances.cosine_at("gd", 750), "two_layers", **COSINE, **FOUND, **OVER_TRAINING),
    Claim("two_layers_turn", "", "and turn to GD++ for good at step", 1625, 1000, 2250, OURS, distances.turn_from("gd"), "two_layers", spacing=250, **FOUND, **OVER_TRAINING),
    Claim("two_layers_turn_own_steps", "", "also from descent with a step size for each step they have turned to GD++ for good at step", 1625, 1000, 2250, OURS, distances.turn_from("gd_own_steps"), "two_layers", spacing=250, **FOUND, **OVER_TRAINING),
    Claim("two_layers_own_steps", "", "they are nearer to GD++ than to descent with a step size for each step: 1 - cosine, ratio", 0.05, 0.0, 0.2, OURS, distances.nearer_than("gd_plus_plus", "gd_own_steps"), "two_layers", **FOUND),
    Claim("two_layers_gd_own_steps", "", "loss ratio to two steps of descent with a step size for each", 0.80, *around(0.80, 0.05), DERIVED, distances.between("loss_ratio", "gd_own_steps"), "two_layers", **FOUND),
    Claim("two_layers_plus_plus_paper", "3a", "as GD++ with one step size and one gamma, as a short training finds them, loss ratio", 1.0, 0.95, 1.05, TEXT, distances.between("loss_ratio", "gd_plus_plus_paper"), "two_layers"),
    Claim("two_layers_plus_plus_own_rates", "", "loss ratio to GD++ with the best rates for each step", 1.09, *around(1.09, 0.05), DERIVED, distances.between("loss_ratio", "gd_plus_plus_own_rates"), "two_layers", **FOUND),
    Claim("replaced_one_step", "code", "2 of 10 labels replaced: one step of gradient descent", 0.257, *around(0.257, 0.05), DERIVED, distances.loss_with_replaced(2, "gd"), "one_layer", **CHECK),
    Claim("replaced_two_layers", "", "two recurrent layers", 0.234, *around(0.234, 0.1), OURS, distances.loss_with_replaced(2), "two_layers", **FOUND),
    Claim("replaced_five_layers", "", "five layers lose more by it than one step does: their loss", 0.55, 0.4, 0.75, OURS, distances.loss_with_replaced(2), "five_layers", "full", **FOUND),
    Claim("three_layers_plus_plus", "9", "three recurrent layers: at or below GD++'s loss, ratio", 1.0, 0.0, 1.05, TEXT, trained.over("gd_plus_plus"), "three_layers", "full"),
    Claim("three_layers_plus_plus_paper", "9", "at or below the loss of GD++ with one step size and one gamma, as a short training finds them, ratio", 1.0, 0.0, 1.05, TEXT, distances.between("loss_ratio", "gd_plus_plus_paper"), "three_layers", "full"),
    Claim("three_layers_gd_own_steps", "", "three recurrent layers are better than descent with a step size for each step, loss ratio", 0.71, 0.0, 0.71 * 1.05, DERIVED, distances.between("loss_ratio", "gd_own_steps"), "three_layers", "full", **FOUND),
    *(
        Claim(f"{runs}_own_steps", "", f"{words} are nearer to GD++ than to descent with a step size for each step: 1 - cosine, ratio", expected, 0.0, 0.5, OURS, distances.nearer_than("gd_plus_plus", "gd_own_steps"), runs, profile, **NEARER)
        for runs, words, expected, profile in (
            ("three_layers", "three recurrent layers", 0.21, "full"),
            ("five_layers", "five layers with weights of their own", 0.06, "full"),
            ("ten_layers", "ten recurrent layers", 0.29, "full"),
            ("twelve_layers", "twelve layers with weights of their own", 0.06, "full"),
            ("twelve_blocks", "twelve blocks with MLPs and four heads", 0.25, "gpu"),
        )
    ),
    # deeper
    Claim("ten_layers_loss", "7", "ten recurrent layers reach .053", 0.053, 0.0, 0.053 * 1.05, PLOT, trained.loss, "ten_layers", "full"),
    Claim("ten_layers_plus_plus", "7", "at or below GD++'s loss, ratio", 1.0, 0.0, 1.05, TEXT, trained.over("gd_plus_plus"), "ten_layers", "full"),
    Claim("ten_layers_median", "7", "its median over contexts over GD++'s", 1.0, 0.0, 1.05, TEXT, trained.median_over("gd_plus_plus"), "ten_layers", "full"),
    Claim("ten_layers_plus_plus_paper", "7", "as GD++ with one step size and one gamma, as a short training finds them, loss ratio", 1.06, *around(1.06, 0.1), PLOT, distances.between("loss_ratio", "gd_plus_plus_paper"), "ten_layers", "full"),
    Claim("ten_layers_median_paper", "7", "its median over contexts over that GD++'s", 1.06, *around(1.06, 0.1), OURS, trained.median_over("gd_plus_plus_paper"), "ten_layers", "full"),
    Claim("ten_layers_gd_own_steps", "", "ten recurrent layers have the loss of ten steps of descent with a step size for each, ratio", 1.06, *around(1.06, 0.1), DERIVED, distances.between("loss_ratio", "gd_own_steps"), "ten_layers", "full", **FOUND),
    Claim("ten_layers_cosine", "7", "cosine with GD++'s sensitivities", 0.995, 0.99, 1.0, PLOT, trained.against("gd_plus_plus", "model_cos"), "ten_layers", "full", **COSINE),
    Claim("ten_layers_cosine_gd", "7", "cosine with gradient descent's sensitivities", 0.98, 0.965, 0.99, PLOT, trained.against("gd", "model_cos"), "ten_layers", "full", **COSINE),
    Claim("ten_layers_cosine_paper", "7", "cosine with the sensitivities of GD++ with one step size and one gamma, as a short training finds them", 0.995, 0.99, 1.0, PLOT, distances.between("cosine", "gd_plus_plus_paper"), "ten_layers", "full", **COSINE),
    Claim("ten_layers_own_steps_paper", "", "ten recurrent layers are nearer to that GD++ than to descent with a step size for each step: 1 - cosine, ratio", 0.48, 0.0, 0.5, OURS, distances.nearer_than("gd_plus_plus_paper", "gd_own_steps"), "ten_layers", "full", **NEARER),
    Claim("ten_layers_predictions", "7", "mean |prediction difference| to GD++", 0.04, 0.0, 0.05, PLOT, trained.against("gd_plus_plus", "preds_diff"), "ten_layers", "full"),
    Claim("ten_layers_over_five", "7", "ten shared layers are worse than five with weights of their own, ratio of losses", 3.0, 1.5, 10.0, OURS, trained.loss_over_that_of, "ten_layers", "full", "five_layers", control=("ten_layers_untrained", "five_layers_untrained"), earlier=was(1.0, 100.0, "networks that are not trained have 1")),
    Claim("five_layers_loss", "3b", "five layers with weights of their own: about .01", 0.01, 0.0, 0.0175 * 1.05, PLOT, trained.loss, "five_layers", "full"),
    Claim("five_layers_median", "3b", "their median over contexts is GD++'s, .013", 0.013, *around(0.013, 0.1), DERIVED, trained.median_loss, "five_layers", "full", earlier=was(0.0, 0.013 * 1.05, "far below is not as GD++")),
    Claim("five_layers_median_plus_plus", "3b", "that median over that of GD++ with rates fitted here", 1.0, *around(1.0, 0.1), TEXT, trained.median_over("gd_plus_plus"), "five_layers", "full", earlier=was(0.0, 1.05, "far below is not as GD++")),
    Claim("five_layers_inputs", "6a", "inputs of .5 to 1 times the range: as GD++, largest |ratio - 1|", 0.0, 0.0, 0.1, PLOT, trained.furthest_under("input_range", (0.5, 0.75, 1.0)), "five_layers", "full", earlier=was(0.0, 1.0, "twice GD++'s loss, or none, passed")),
    Claim("five_layers_plus_plus", "3b", "as GD++ with rates for each layer, loss ratio", 1.0, 0.0, 1.05, TEXT, trained.over("gd_plus_plus"), "five_layers", "full"),
    Claim("five_layers_plus_plus_paper", "", "five layers with weights of their own are better than GD++ with one step size and one gamma, as a short training finds them, loss ratio", 0.33, 0.0, 0.33 * 1.05, DERIVED, distances.between("loss_ratio", "gd_plus_plus_paper"), "five_layers", "full", **FOUND),
    Claim("five_layers_median_paper", "", "their median over contexts over that GD++'s", 0.25, *around(0.25, 0.1), DERIVED, trained.median_over("gd_plus_plus_paper"), "five_layers", "full", **FOUND),
    Claim("five_layers_gd_own_steps", "", "they are better than descent with a step size for each step, loss ratio", 0.22, 0.0, 0.22 * 1.05, DERIVED, distances.between("loss_ratio", "gd_own_steps"), "five_layers", "full", **FOUND),
    Claim("five_layers_cosine", "3b", "cosine with GD++'s sensitivities", 0.995, 0.985, 1.0, PLOT, trained.against("gd_plus_plus", "model_cos"), "five_layers", "full", **COSINE),
    Claim("five_layers_cosine_gd", "3b", "cosine with gradient descent's sensitivities", 0.885, 0.855, 0.915, PLOT, trained.against("gd", "model_cos"), "five_layers", "full", **COSINE),
    Claim("five_layers_predictions", "3b", "mean |prediction difference| to GD++", 0.05, 0.0, 0.06, PLOT, trained.against("gd_plus_plus", "preds_diff"), "five_layers", "full"),
    Claim("twelve_blocks_plus_plus", "8", "twelve blocks with MLPs and four heads: at or below GD++'s loss, ratio", 1.0, 0.0, 1.05, TEXT, trained.over("gd_plus_plus"), "twelve_blocks", "gpu"),
    Claim("twelve_blocks_median", "8", "their median over contexts over GD++'s", 1.0, 0.0, 1.05, TEXT, trained.median_over("gd_plus_plus"), "twelve_blocks", "gpu"),
    Claim("twelve_blocks_median_paper", "", "their median over contexts over that of GD++ with one step size and one gamma, as a short training finds them", 1.0, 0.0, 1.05, OURS, trained.median_over("gd_plus_plus_paper"), "twelve_blocks", "gpu", **FOUND),
    Claim("twelve_layers_median", "8", "twelve layers without MLPs, one head: median over contexts over GD++'s", 1.0, 0.0, 1.05, TEXT, trained.median_over("gd_plus_plus"), "twelve_layers", "full"),
    Claim("twelve_layers_median_paper", "", "their median over contexts over that of GD++ with one step size and one gamma", 1.0, 0.0, 1.05, OURS, trained.median_over("gd_plus_plus_paper"), "twelve_layers", "full", **FOUND),
    Claim("five_blocks_median", "8", "five blocks with MLPs and four heads: median over contexts over GD++'s", 1.0, 0.0, 1.05, OURS, trained.median_over("gd_plus_plus"), "five_blocks", "gpu"),
    Claim("twelve_blocks_cosine", "8", "twelve blocks with MLPs and four heads: cosine with GD++'s sensitivities", 0.97, 0.95, 1.0, PLOT, trained.against("gd_plus_plus", "model_cos"), "twelve_blocks", "gpu", **COSINE),
    # the algorithms themselves
    *(
        Claim(f"tuned_gd_{steps}", "3, 7, 8", f"{steps} tuned steps of gradient descent", level, *around(level, 0.03), DERIVED, algorithms.tuned_gd(steps), **CHECK)
        for steps, level in ((2, 0.1566), (5, 0.1086), (10, 0.0840), (12, 0.0785))
    ),
    *(
        Claim(f"gd_plus_plus_{steps}", "3, 7", f"{steps} steps of GD++, one pair of rates", level, 0.0, level * 1.05, DERIVED, algorithms.learned_gd_plus_plus(steps, True), **CHECK)
        for steps, level in ((2, 0.1104), (3, 0.078), (5, 0.052), (10, 0.039))
    ),
    Claim("gd_plus_plus_2_own", "3a", "two steps of GD++, rates for each", 0.1037, 0.0, 0.1037 * 1.05, DERIVED, algorithms.learned_gd_plus_plus(2, False), **CHECK),
    Claim("gd_plus_plus_5_own", "3b", "five steps of GD++, rates for each", 0.0175, 0.0, 0.0175 * 1.05, DERIVED, algorithms.learned_gd_plus_plus(5, False), **CHECK),
    Claim("gd_plus_plus_5_own_median", "3b", "their median over contexts", 0.013, 0.0, 0.013 * 1.05, DERIVED, algorithms.learned_gd_plus_plus(5, False, np.median), **CHECK),
    Claim("gamma", "A.10", "gamma of two steps at N = 10", 0.176, *around(0.176, 0.05), DERIVED, algorithms.learned_gamma(2), **CHECK),
    # spectra
    *(
        Claim(f"eigenvalue_{which}_{n}", "13", f"the {which}imum eigenvalue of 10 000 scatter matrices, N = {n}", value, *around(value, 0.15), TEXT, algorithms.eigenvalue(n, which), **CHECK)
        for n, which, value in ((10, "max", 4.6), (25, "max", 7.712), (50, "max", 10.845), (100, "max", 17.196), (50, "min", 0.666), (100, "min", 2.87))
    ),
    Claim("condition_falls", "13", "N = 25: at the learned gamma .099 a step lowers the median condition number, ratio", 0.285, 0.17, 0.4, DERIVED, algorithms.condition_change(25, 0.099), **CHECK, earlier=was(0.0, 0.99, "any fall passed; between the edges of Marchenko and Pastur's law, .28 and 5.55, the ratio is .285, 40 % either way for D = 10")),
    Claim("condition_explodes", "13", "N = 25: at gamma .2 it raises it, ratio", 2.0, 1.5, UNBOUNDED, OURS, algorithms.condition_change(25, 0.2), **CHECK),
    # softmax and layer norm
    Claim("softmax_1_head_left_plateau", "11", "one softmax head leaves the plateau in 5000 steps, share of runs", 1.0, 0.5, 1.0, OURS, trained.has_learnt, "softmax_1_head", scale="share"),
    Claim("softmax_1_head_value", "11", "those end at .29 to .31", 0.30, 0.285, 0.315, PLOT, trained.if_learnt(trained.loss), "softmax_1_head", learnt_only=True),
    Claim("softmax_1_head_align", "11", "their sensitivities are not gradient descent's, cosine", 0.6, 0.5, 0.7, PLOT, trained.if_learnt(trained.against("gd", "model_cos")), "softmax_1_head", learnt_only=True, **COSINE),
    Claim("softmax_2_heads_loss", "12", "two softmax heads reach .217", 0.217, *around(0.217, 0.05), PLOT, trained.loss, "softmax_2_heads", "full"),
    Claim("softmax_2_heads_cosine", "12", "and align", 0.97, 0.95, 1.0, PLOT, trained.against("gd", "model_cos"), "softmax_2_heads", "full", **COSINE),
    Claim("softmax_cancels", "12", "their offsets cancel: what is left of the off-diagonals in eta_1 W1 + eta_2 W2", 0.0, 0.0, 0.2, OURS, trained.cancelling_heads, "softmax_2_heads", "full"),
    Claim("softmax_diagonal", "12", "that sum is diagonal: its mean off-diagonal over its mean diagonal", 0.0, 0.0, 0.1, OURS, trained.diagonal_of_heads, "softmax_2_heads", "full"),
    Claim("layer_norm_loss", "14", "with layer norm one layer ends at .25", 0.25, *around(0.25, 0.05), PLOT, trained.loss, "layer_norm", "full"),
    Claim("layer_norm_cosine", "14", "its cosine with gradient descent's sensitivities", 0.88, 0.84, 0.92, PLOT, trained.against("gd", "model_cos"), "layer_norm", "full", **COSINE),
    Claim("layer_norm_inputs", "14", "on inputs of twice the range it is better than gradient descent, ratio", 0.5, 0.0, 0.95, OURS, trained.ratio_under("input_range", 2.0), "layer_norm", "full"),
    # finite pools of tasks
    *(
        Claim(f"pool_{tasks}_cosine", "16", f"trained on a pool of {tasks} tasks it aligns with gradient descent", 1.0, 0.95, 1.0, TEXT, trained.against("gd", "model_cos"), f"pool_{tasks}", profile, **COSINE)
        for tasks, profile in ((2048, "quick"), (8192, "full"))
    ),
    Claim("pool_512_cosine", "16", "trained on a pool of 512 tasks it does not quite, cosine", 0.85, 0.5, 0.95, OURS, trained.against("gd", "model_cos"), "pool_512", **COSINE),
    Claim("pool_128_gap", "16", "trained on 128 tasks it overfits: test loss over training loss", 10.0, 2.0, UNBOUNDED, OURS, over_training.overfits, "pool_128"),
    Claim("pool_128_overfits", "16", "and on 128 it ends above twice the loss of predicting zero", 5.0, 0.8333, UNBOUNDED, PLOT, trained.loss, "pool_128", earlier=was(0.4167, 1e3, "it began at what an untrained network has")),
    Claim("block_on_a_pool_peak", "15", "a block with an MLP on 8192 fixed tasks: its test loss rises to .48", 0.48, *around(0.48, 0.1), PLOT, over_training.peak, "block_on_a_pool", "full"),
    Claim("block_on_a_pool_end", "15", "and then falls to .235 by step 12 000", 0.235, *around(0.235, 0.05), PLOT, over_training.fallen_by(12_000), "block_on_a_pool", "full"),
    # many seeds
    Claim("ten_seeds_plateau", "15", "ten seeds: every one off the plateau by step 4000", 4000, 0, 4000, PLOT, over_training.steps_until_learnt, "ten_seeds", "full", every=True, spacing=500),
    Claim("ten_seeds_2_heads_loss", "15", "ten seeds with two heads: all at the loss of one step", 1.0, 0.99, 1.02, PLOT, trained.over("gd"), "ten_seeds_2_heads", "full", every=True),
    # interleaved tokens
    Claim("interleaved_loss", "5", "two layers on interleaved tokens match one step, not two", 1.02, 0.99, 1.08, PLOT, trained.over("gd"), "interleaved"),
    Claim("interleaved_own_x", "5", "the first layer's rows: sensitivity to their own token, in the channels of x", 3.1623, *around(10**0.5, 0.05), PLOT, trained.sensitivity_to("own", "_x"), "interleaved"),
    Claim("interleaved_ratio", "5", "sensitivity to the next token over that to the others, as published: these with the next one, over 2N - 1", 17.0, 12.0, 19.0, PLOT, trained.next_over_other, "interleaved"),
    Claim("interleaved_next", "5", "the first layer's rows: sensitivity to the next token", 0.85, *around(0.85, 0.2), PLOT, trained.sensitivity_to("next"), "interleaved"),
    Claim("interleaved_onset", "5", "the first layer copies before the loss falls: step at which a tenth of it is done, ratio", 0.8, 0.0, 0.95, OURS, over_training.onset_of_copying, "interleaved", spacing=0.1, control=(), uncontrolled="it compares two times of one training"),
    # sines
    Claim("sine_ratio", "4", "an MLP below one linear layer has the loss of its control", 1.0, 0.8, 1.2, PLOT, sines.beside_control("loss_ratio"), "sine", "full", "sine_control"),
    Claim("sine_cosine", "4", "cosine of the two's sensitivities", 0.93, 0.88, 1.0, PLOT, sines.beside_control("model_cos"), "sine", "full", "sine_control", **COSINE),
    Claim("sine_before", "4", "their initial functions nearly coincide: distance over the sine's size", 0.1, 0.0, 0.2, OURS, sines.functions_apart("before"), "sine", "full", "sine_control"),
    Claim("sine_after", "4", "and so do the functions after the context", 0.1, 0.0, 0.2, OURS, sines.functions_apart("after"), "sine", "full", "sine_control"),
    Claim("sine_tied_ratio", "4", "amplitude and phase from one key, as published: the loss of its control", 1.0, 0.8, 1.2, PLOT, sines.beside_control("loss_ratio"), "sine_tied", "full", "sine_control_tied"),
    Claim("sine_tied_cosine", "4", "so drawn, cosine of the two's sensitivities", 0.93, 0.88, 1.0, PLOT, sines.beside_control("model_cos"), "sine_tied", "full", "sine_control_tied", **COSINE),
    Claim("sine_tied_loss", "4", "so drawn, 50 000 steps of 2048 tasks: the transformer's loss", 0.00095, *around(0.00095, 0.2), PLOT, sines.loss, "sine_tied_paper", "full"),
    Claim("sine_loss", "4", "50 000 steps of 2048 tasks: the transformer's loss", 0.00095, *around(0.00095, 0.2), PLOT, sines.loss, "sine_paper", "full"),
    Claim("sine_control_loss", "4", "the control's", 0.00095, *around(0.00095, 0.2), PLOT, sines.loss, "sine_control_paper", "full"),
    Claim("sine_predictions", "4", "mean |prediction difference| of the two", 0.023, *around(0.023, 0.2), PLOT, sines.beside_control("preds_diff"), "sine_paper", "full", "sine_control_paper"),
    # the depth curve: Gaussian inputs, D = N = 20, noise of .05; the mean squared error, not its half
    Claim("depth_left_plateau", "1, depth", "one layer leaves the plateau, share of runs", 1.0, 0.5, 1.0, OURS, depth.has_learnt, "depth_lsa", scale="share"),
    Claim("depth_overlap_learnt", "1, depth", "50 applications of those overlap with damped gradient descent on the same tasks, largest |ratio - 1|", 0.0, 0.0, 0.05, DERIVED, depth.if_learnt(depth.furthest_from_gd), "depth_lsa", learnt_only=True),
    *(
        Claim(f"depth_after_{layers}_learnt", "1, depth", f"their MSE after {layers} application{'s' * (layers > 1)}", level, *around(level, 0.05), DERIVED, depth.if_learnt(depth.after(layers)), "depth_lsa", learnt_only=True)
        for layers, level in ((1, 10.85), (4, 6.35), (12, 3.92), (50, 2.11))
    ),
    Claim("depth_conjugate_gradients", "depth", "MSE of four steps of conjugate gradients", 4.14, *around(4.14, 0.05), DERIVED, depth.reference("conjugate_gradients", 4), "depth_lsa", **CHECK),
    Claim("depth_newton_schulz", "depth", "MSE of four steps of Newton-Schulz", 8.9, *around(8.9, 0.05), DERIVED, depth.reference("newton_schulz", 4), "depth_lsa", **CHECK),
    Claim("depth_ridge", "depth", "MSE of the Bayes ridge", 0.311, *around(0.311, 0.15), DERIVED, depth.reference("ridge", 1), "depth_lsa", **CHECK),
    Claim("depth_linear_last", "depth", "four linear layers trained at depth: MSE of 3.0, less the largest thousandth", 3.0, *around(3.0, 0.05), DERIVED, depth.after(-1), "depth_linear", "full", earlier=was(0.0, 3.0 * 1.05, "far below is not as derived")),
    Claim("depth_linear_unstable", "depth", "and on how many tasks they are worse than predicting zero", 0.0, 0.0, 0.01, OURS, depth.unstable, "depth_linear", "full", **SHARE),
    Claim("depth_linear_inside", "depth", "inside, their loss lies above that of predicting zero, ratio after the first", 5.8, 1.0, 100.0, DERIVED, depth.first_over_zero, "depth_linear", "full"),
    Claim("depth_linear_deep", "depth", "with deep supervision it falls with depth, largest ratio of a layer's to the one's before", 0.6, 0.0, 0.99, OURS, depth.largest_step_up, "depth_linear_deep", "full"),
    Claim("depth_softmax_small", "depth", "softmax blocks with deep supervision, D = N = 5: the loss falls with depth", 0.7, 0.0, 0.99, OURS, depth.largest_step_up, "depth_softmax_small", "full"),
    Claim("depth_softmax_small_steps", "depth", "a softmax layer is worth more than a step: steps of gradient descent for each layer that reach the last one's loss", 5.0, 1.5, UNBOUNDED, OURS, depth.steps_a_layer, "depth_softmax_small", "full", spacing=0.5, earlier=was(1.0, 400.0, "the upper end was the limit of the search, and the lower one no more than a step")),
    Claim("depth_softmax_deep", "depth", "four softmax blocks, D = N = 20: the loss falls with depth", 0.8, 0.0, 0.99, OURS, depth.largest_step_up, "depth_softmax", "gpu"),
    Claim("depth_softmax_ridge", "depth", "their last layer's loss over the Bayes ridge's", 1.0, 0.95, 1.2, OURS, depth.last_over("ridge"), "depth_softmax", "gpu"),
)
# fmt: on
