"""The claims of "Transformers Learn In-Context by Gradient Descent" (von Oswald et al. 2023), as data.

What counts as reproduced was fixed before anything was measured. Losses are half the mean squared error. A range is
derived (closed forms and independent computation), read off a published plot (the larger of 5 % and the reading error),
stated in the text, or ours: a bound that puts a sentence of the paper into a number. Where some runs do not train
there are two claims: the share of the runs that trained, and the value among those.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from icl_lab.studies import algorithm_distances as distances
from icl_lab.studies.claim import OURS as LABORATORY
from icl_lab.studies.claim import UNBOUNDED, Claim, Rival, Untrained, Without, around
from icl_lab.studies.reproduction.measures import algorithms, depth, over_training, rolled, sines, trained
from icl_lab.studies.runs import has_trained

DERIVED, PLOT, TEXT, OURS, EXPECTED = "derived", "plot reading", "text", "ours", "expectation"
COSINE: dict[str, Any] = {"scale": "fisher"}
SHORT_TOKENS: dict[str, Any] = {
    "smaller": "5000 steps of 512 tasks, from larger weights; the published program has 10 000 of 2048"
}
SHORT_SINES: dict[str, Any] = {"smaller": "20 000 steps of 256 sines; the paper has 50 000 of 2048"}
WITHOUT_MLP: dict[str, Any] = {"smaller": "one head and no MLPs; the paper's have four heads and MLPs"}
FIVE_BLOCKS: dict[str, Any] = {"smaller": "five blocks; the paper's have twelve"}
SHARE: dict[str, Any] = {"scale": "fraction"}
MAIN: dict[str, Any] = {"tier": "main"}
ONE_EACH = "one step of the best size for each context"  # one step of conjugate gradients
STEPS_EACH = "GD with a step size for each step"
FOUND: dict[str, Any] = {"about": "ours", "paper": LABORATORY}
# At most half as far. The expected ratios take GD++ to be at the paper's cosine, and what is left to point anywhere:
# (1 - cosine) / (1 - cosine + the distance of GD++ from that descent, which is .019, .075, .012 at 3, 5, 10 steps).
NEARER: dict[str, Any] = FOUND | {"no_effect": (0.8, 1.25)}
OVER_TRAINING: dict[str, Any] = {
    "control": Without("a network that is not trained has no training to follow"),
}

# fmt: off
CLAIMS: tuple[Claim, ...] = (
    # one linear layer is one step
    Claim("one_layer_loss", "2a", "one linear layer: loss ratio to one tuned step of GD", 1.0, 0.99, 1.01, DERIVED, trained.over("gd"), "one_layer_again", control=Rival(ONE_EACH, trained.over("gd", "conjugate_gradients")), **MAIN, among=has_trained),
    Claim("one_layer_level", "2a", "one linear layer: loss", 0.205, *around(0.205, 0.05), PLOT, trained.loss, "one_layer"),
    Claim("one_layer_predictions", "2b", "one linear layer: mean |prediction difference| to GD", 0.02, 0.0, 0.025, DERIVED, trained.against("gd", "preds_diff"), "one_layer_again", control=Rival(ONE_EACH, trained.against("gd", "preds_diff", "conjugate_gradients")), **MAIN, among=has_trained),
    Claim("one_layer_sensitivities", "2b", "one linear layer: mean ‖sensitivity difference‖ to GD", 0.1, 0.0, 0.15, PLOT, trained.against("gd", "model_diff"), "one_layer"),
    Claim("one_layer_interpolation", "2d", "weights halfway between one trained layer and the constructed one: loss ratio to the trained", 1.0, 0.99, 1.01, DERIVED, trained.interpolation, "one_layer"),
    Claim("one_layer_plateau_length", "2a", "one linear layer: step of the first record below the plateau", 2000, 1000, 3000, PLOT, over_training.steps_until_learnt, "one_layer_main", "full", spacing=25, control=Rival("the step from which the loss is within 5 % of its last", over_training.steps_until_near_the_end), **MAIN),
    Claim("one_step_size", "2a", "best step size eta/N of one step of GD", 0.60606, *around(0.60606, 0.02), DERIVED, algorithms.best_step, control=Rival("the best for eleven pairs, as if the query were one", partial(algorithms.best_step, pairs=11)), **MAIN),
    *(
        Claim(f"{name}_trained", figure, f"{words}: share of runs that train", 1.0, 0.5, 1.0, OURS, has_trained, runs, profile, scale="share", **(SHORT_TOKENS if name == "interleaved" else {}))
        for name, figure, words, runs, profile in (
            ("one_layer", "2a", "one linear layer", "one_layer_again", "quick"),
            ("two_layers", "3a", "two recurrent layers", "two_layers_main", "full"),
            ("interleaved", "5", "two layers on interleaved tokens", "interleaved_again", "full"),
            ("softmax_2_heads", "12", "two softmax heads", "softmax_2_heads_again", "full"),
            ("interleaved_published", "5", "trained as published", "interleaved_published_again", "full"),
        )
    ),
    # out of distribution
    Claim("inputs_near", "6a", "one linear layer, inputs of .5 to 1.5 times the range: largest |loss ratio to GD - 1|", 0.0, 0.0, 0.05, PLOT, trained.furthest_under("input_range", (0.5, 0.75, 1.25, 1.5)), "one_layer"),
    Claim("inputs_far", "6a", "one linear layer, inputs of twice the range: |loss ratio to GD - 1|", 0.0, 0.0, 0.05, PLOT, trained.furthest_under("input_range", (2.0,)), "one_layer_again", control=Rival(ONE_EACH, trained.furthest_under("input_range", (2.0,), whose="conjugate_gradients")), **MAIN, among=has_trained),
    Claim("teachers", "6b", "one linear layer, w of .5 to 5 times the scale: largest |loss ratio to GD - 1|", 0.0, 0.0, 0.05, PLOT, trained.furthest_under("weight_scale", (0.5, 1.0, 2.0, 5.0)), "one_layer"),
    Claim("other_inputs", "6c", "one linear layer, exponential, normal and Laplace inputs of scale .5 to 3: largest |loss ratio to GD - 1|", 0.0, 0.0, 0.05, PLOT, trained.furthest_under("other_inputs", (0.5, 1.0, 2.0, 3.0)), "one_layer"),
    Claim("distractors", "code", "one linear layer, up to 8 of 10 labels replaced by N(0, 1): largest |loss ratio to GD - 1|", 0.0, 0.0, 0.05, DERIVED, trained.furthest_under("distractors", (0, 2, 4, 6, 8)), "one_layer"),
    # roll-outs
    Claim("rollout_overlap", "1", "one layer applied 1 to 50 times, damping .75: largest |loss ratio to GD - 1|", 0.0, 0.0, 0.05, DERIVED, rolled.furthest(0.75), "one_layer_again", control=Rival("GD with the largest stable step of each context", rolled.furthest_of_bounded_steps(0.75)), **MAIN, among=has_trained),
    Claim("rollout_end", "1", "one layer applied 50 times, damping .75: mean loss without the largest thousandth", 0.0433, *around(0.0433, 0.05), DERIVED, rolled.end(0.75), "one_layer"),
    Claim("rollout_median", "1", "one layer applied 50 times, damping .75: median over contexts of the loss", 0.0433, *around(0.0433, 0.05), DERIVED, rolled.median_end(0.75), "one_layer"),
    Claim("rollout_undamped", "10", "one layer applied undamped: share of tasks that diverge", 0.034, 0.02, 0.05, DERIVED, rolled.unstable(1.0), "one_layer", **SHARE),
    Claim("rollout_damped", "10", "one layer applied with damping .875: share of tasks that diverge", 0.0036, 0.001, 0.006, DERIVED, rolled.unstable(0.875), "one_layer", **SHARE),
    Claim("rollout_undamped_minimum", "10", "one layer applied undamped: least mean loss over the applications", 0.12, *around(0.12, 0.15), DERIVED, rolled.lowest_mean(1.0), "one_layer"),
    Claim("rollout_damped_minimum", "10", "one layer applied with damping .875: least mean loss over the applications", 0.09, *around(0.09, 0.15), DERIVED, rolled.lowest_mean(0.875), "one_layer"),
    # sizes
    *(
        claim
        for n, level, profile in ((5, 0.102, "quick"), (20, 0.415, "full"), (35, 0.727, "full"), (50, 1.040, "full"))
        for claim in (
            Claim(f"size_{n}_left_plateau", "2c", f"one layer, N = D = {n}: share of runs that train", 1.0, 0.5, 1.0, OURS, has_trained, f"size_{n}", profile, scale="share"),
            Claim(f"size_{n}_ratio", "2c", f"one layer, N = D = {n}, runs that trained: loss ratio to one tuned step of GD", 1.0, 0.98, 1.02, PLOT, trained.over("gd"), f"size_{n}", profile, among=has_trained),
            Claim(f"size_{n}_value", "2c", f"one layer, N = D = {n}, runs that trained: loss", level, *around(level, 0.05), DERIVED, trained.loss, f"size_{n}", profile, among=has_trained),
        )
    ),
    # two layers, recurrent
    Claim("two_layers_loss", "3a", "two recurrent layers: loss", 0.113, 0.0, 0.113 * 1.05, PLOT, trained.loss, "two_layers"),
    Claim("two_layers_gd", "3a", "two recurrent layers: loss ratio to two tuned steps of GD", 0.72, *around(0.72, 0.05), PLOT, trained.over("gd"), "two_layers"),
    Claim("two_layers_plus_plus", "3a", "two recurrent layers: loss ratio to two steps of GD++", 1.0, 0.95, 1.05, TEXT, trained.over("gd_plus_plus"), "two_layers_main", "full", control=Rival("GD++ with rates for each step", trained.over("gd_plus_plus", "gd_plus_plus_own_rates")), **MAIN, among=has_trained),
    Claim("two_layers_cosine_gd", "3a", "two recurrent layers: cosine of their sensitivities with GD's", 0.955, 0.935, 0.975, PLOT, trained.against("gd", "model_cos"), "two_layers", **COSINE),
    Claim("two_layers_predictions", "3a", "two recurrent layers: mean |prediction difference| to GD++", 0.04, 0.0, 0.05, PLOT, trained.against("gd_plus_plus", "preds_diff"), "two_layers_main", "full", control=Rival("GD++ with rates for each step", trained.against("gd_plus_plus", "preds_diff", "gd_plus_plus_own_rates")), **MAIN, among=has_trained),
    Claim("two_layers_predictions_gd", "3a", "two recurrent layers: mean |prediction difference| to GD", 0.18, *around(0.18, 0.15), PLOT, trained.against("gd", "preds_diff"), "two_layers"),
    Claim("two_layers_interpolation", "3a", "weights halfway between two trained recurrent layers and GD++'s: loss ratio to the trained", 1.0, 0.0, 1.05, TEXT, trained.interpolation, "two_layers"),
    Claim("two_layers_sensitivities", "3a", "two recurrent layers: mean ‖sensitivity difference‖ to GD++", 0.17, 0.0, 0.2, PLOT, trained.against("gd_plus_plus", "model_diff"), "two_layers"),
    Claim("two_layers_inputs", "6a", "two recurrent layers, inputs of .5 to 1.5 times the range: largest |loss ratio to GD++ - 1|", 0.0, 0.0, 0.1, PLOT, trained.furthest_under("input_range", (0.5, 0.75, 1.25, 1.5)), "two_layers"),
    Claim("two_layers_teachers", "6b", "two recurrent layers, w of .5 to 5 times the scale: largest |loss ratio to GD++ - 1|", 0.0, 0.0, 0.1, PLOT, trained.furthest_under("weight_scale", (0.5, 1.0, 2.0, 5.0)), "two_layers"),
    Claim("two_layers_other_inputs", "6c", "two recurrent layers, exponential, normal and Laplace inputs of scale .5 to 2: largest |loss ratio to GD++ - 1|", 0.0, 0.0, 0.1, PLOT, trained.furthest_under("other_inputs", (0.5, 1.0, 2.0)), "two_layers"),
    Claim("two_layers_descend_first", "", "two recurrent layers at step 750 of training: cosine of their sensitivities with GD's", 0.995, 0.99, 1.0, OURS, distances.cosine_at("gd", 750), "two_layers", **COSINE, **FOUND, **OVER_TRAINING),
    Claim("two_layers_turn", "", "two recurrent layers: step from which they are nearer to GD++ than to GD for good", 1625, 1000, 2250, OURS, distances.turn_from("gd"), "two_layers_main", "full", spacing=250, **FOUND, control=Rival("the step at which they leave the plateau", over_training.steps_until_learnt), **MAIN, among=has_trained),
    Claim("two_layers_turn_own_steps", "", "two recurrent layers: step from which they are nearer to GD++ than to GD of a step size for each step for good", 1625, 1000, 2250, OURS, distances.turn_from("gd_own_steps"), "two_layers", spacing=250, **FOUND, **OVER_TRAINING),
    Claim("two_layers_own_steps", "", "two recurrent layers: 1 - cosine with GD++ over 1 - cosine with GD of a step size for each step", 0.05, 0.0, 0.2, OURS, distances.nearer_than("gd_plus_plus", "gd_own_steps"), "two_layers", **FOUND),
    Claim("two_layers_gd_own_steps", "", "two recurrent layers: loss ratio to two steps of GD, a step size for each", 0.80, *around(0.80, 0.05), DERIVED, distances.between("loss_ratio", "gd_own_steps"), "two_layers", **FOUND),
    Claim("two_layers_plus_plus_paper", "3a", "two recurrent layers: loss ratio to GD++ of one step size and one gamma, as a short training finds them", 1.0, 0.95, 1.05, TEXT, distances.between("loss_ratio", "gd_plus_plus_paper"), "two_layers"),
    Claim("two_layers_plus_plus_own_rates", "", "two recurrent layers: loss ratio to GD++ with the best rates for each step", 1.09, *around(1.09, 0.05), DERIVED, distances.between("loss_ratio", "gd_plus_plus_own_rates"), "two_layers", **FOUND),
    Claim("replaced_two_layers", "", "two recurrent layers, 2 of 10 labels replaced: loss", 0.234, *around(0.234, 0.1), OURS, distances.loss_with_replaced(2), "two_layers", **FOUND),
    Claim("replaced_five_layers", "", "five layers, 2 of 10 labels replaced: loss", 0.55, 0.4, 0.75, OURS, distances.loss_with_replaced(2), "five_layers", "full", **FOUND),
    Claim("replaced_five_layers_median", "", "five layers, 2 of 10 labels replaced: ratio of median losses over tasks to five steps of GD (predicting 0: 2.3)", 6.6, 3.0, UNBOUNDED, OURS, trained.median_ratio_under("distractors", 2, "gd"), "five_layers", "full", **FOUND),
    Claim("three_layers_plus_plus", "9", "three recurrent layers: loss ratio to three steps of GD++", 1.0, 0.0, 1.05, TEXT, trained.over("gd_plus_plus"), "three_layers", "full"),
    Claim("three_layers_plus_plus_paper", "9", "three recurrent layers: loss ratio to GD++ of one step size and one gamma, as a short training finds them", 1.0, 0.0, 1.05, TEXT, distances.between("loss_ratio", "gd_plus_plus_paper"), "three_layers", "full"),
    Claim("three_layers_gd_own_steps", "", "three recurrent layers: loss ratio to three steps of GD, a step size for each", 0.71, 0.0, 0.71 * 1.05, DERIVED, distances.between("loss_ratio", "gd_own_steps"), "three_layers", "full", **FOUND),
    *(
        Claim(f"{runs}_own_steps", "", f"{words}: 1 - cosine with GD++ over 1 - cosine with GD of a step size for each step", expected, 0.0, 0.5, EXPECTED, distances.nearer_than("gd_plus_plus", "gd_own_steps"), runs, profile, **NEARER)
        for runs, words, expected, profile in (
            ("three_layers", "three recurrent layers", 0.21, "full"),
            ("five_layers", "five layers with untied weights", 0.06, "full"),
            ("ten_layers", "ten recurrent layers", 0.29, "full"),
            ("twelve_layers", "twelve layers with untied weights", 0.06, "full"),
            ("twelve_blocks", "twelve blocks with MLPs and four heads", 0.25, "gpu"),
        )
    ),
    # deeper
    Claim("ten_layers_loss", "7", "ten recurrent layers: loss", 0.053, *around(0.053, 0.05), PLOT, trained.loss, "ten_layers_main", "full", control=Rival(STEPS_EACH, distances.loss_of("gd_own_steps")), **MAIN),
    Claim("ten_layers_plus_plus", "7", "ten recurrent layers: loss ratio to ten steps of GD++", 1.0, 0.0, 1.05, TEXT, trained.over("gd_plus_plus"), "ten_layers_main", "full", control=Rival(STEPS_EACH, distances.of_another("gd_own_steps", "gd_plus_plus", "loss_ratio")), **MAIN),
    Claim("ten_layers_median", "7", "ten recurrent layers: ratio of median losses over contexts to GD++", 1.0, 0.0, 1.05, TEXT, trained.median_over("gd_plus_plus"), "ten_layers", "full"),
    Claim("ten_layers_plus_plus_paper", "7", "ten recurrent layers: loss ratio to GD++ of one step size and one gamma, as a short training finds them", 1.06, *around(1.06, 0.1), PLOT, distances.between("loss_ratio", "gd_plus_plus_paper"), "ten_layers", "full"),
    Claim("ten_layers_median_paper", "7", "ten recurrent layers: ratio of median losses over contexts to GD++ of one step size and one gamma, as a short training finds them", 1.06, *around(1.06, 0.1), OURS, trained.median_over("gd_plus_plus_paper"), "ten_layers", "full"),
    Claim("ten_layers_gd_own_steps", "", "ten recurrent layers: loss ratio to ten steps of GD, a step size for each", 1.06, *around(1.06, 0.1), DERIVED, distances.between("loss_ratio", "gd_own_steps"), "ten_layers", "full", **FOUND),
    Claim("ten_layers_cosine", "7", "ten recurrent layers: cosine of their sensitivities with GD++'s", 0.995, 0.99, 1.0, PLOT, trained.against("gd_plus_plus", "model_cos"), "ten_layers", "full", **COSINE),
    Claim("ten_layers_cosine_gd", "7", "ten recurrent layers: cosine of their sensitivities with GD's", 0.98, 0.965, 0.99, PLOT, trained.against("gd", "model_cos"), "ten_layers", "full", **COSINE),
    Claim("ten_layers_cosine_paper", "7", "ten recurrent layers: cosine of their sensitivities with those of GD++ of one step size and one gamma, as a short training finds them", 0.995, 0.99, 1.0, PLOT, distances.between("cosine", "gd_plus_plus_paper"), "ten_layers", "full", **COSINE),
    Claim("ten_layers_own_steps_paper", "", "ten recurrent layers: 1 - cosine with GD++ of one step size and one gamma over 1 - cosine with GD of a step size for each step", 0.48, 0.0, 0.5, EXPECTED, distances.nearer_than("gd_plus_plus_paper", "gd_own_steps"), "ten_layers", "full", **NEARER),
    Claim("ten_layers_predictions", "7", "ten recurrent layers: mean |prediction difference| to GD++", 0.04, 0.0, 0.05, PLOT, trained.against("gd_plus_plus", "preds_diff"), "ten_layers", "full"),
    Claim("ten_layers_over_five", "7", "ten recurrent layers: loss ratio to five layers with untied weights", 3.0, 1.5, 10.0, OURS, trained.loss_over_that_of, "ten_layers", "full", "five_layers", control=Untrained(both=True)),
    Claim("five_layers_loss", "3b", "five layers with untied weights: loss", 0.01, 0.0, 0.0175 * 1.05, PLOT, trained.loss, "five_layers", "full"),
    Claim("five_layers_median", "3b", "five layers with untied weights: median loss over contexts", 0.013, *around(0.013, 0.1), DERIVED, trained.median_loss, "five_layers", "full"),
    Claim("five_layers_median_plus_plus", "3b", "five layers with untied weights: ratio of median losses over contexts to GD++", 1.0, *around(1.0, 0.1), TEXT, trained.median_over("gd_plus_plus"), "five_layers", "full"),
    Claim("five_layers_inputs", "6a", "five layers, inputs of .5 to 1 times the range: largest |loss ratio to GD++ - 1|", 0.0, 0.0, 0.1, PLOT, trained.furthest_under("input_range", (0.5, 0.75, 1.0)), "five_layers", "full"),
    Claim("five_layers_plus_plus", "3b", "five layers with untied weights: loss ratio to GD++ with rates for each step", 1.0, 0.0, 1.05, TEXT, trained.over("gd_plus_plus"), "five_layers", "full"),
    Claim("five_layers_plus_plus_paper", "", "five layers with untied weights: loss ratio to GD++ of one step size and one gamma, as a short training finds them", 0.33, 0.0, 0.33 * 1.05, DERIVED, distances.between("loss_ratio", "gd_plus_plus_paper"), "five_layers_decided", "full", **FOUND),
    Claim("five_layers_median_paper", "", "five layers with untied weights: ratio of median losses over contexts to GD++ of one step size and one gamma, as a short training finds them", 0.25, *around(0.25, 0.1), DERIVED, trained.median_over("gd_plus_plus_paper"), "five_layers", "full", **FOUND),
    Claim("five_layers_gd_own_steps", "", "five layers with untied weights: loss ratio to five steps of GD, a step size for each", 0.22, 0.0, 0.22 * 1.05, DERIVED, distances.between("loss_ratio", "gd_own_steps"), "five_layers_decided", "full", **FOUND),
    Claim("five_layers_cosine", "3b", "five layers with untied weights: cosine of their sensitivities with GD++'s", 0.995, 0.985, 1.0, PLOT, trained.against("gd_plus_plus", "model_cos"), "five_layers", "full", **COSINE),
    Claim("five_layers_cosine_gd", "3b", "five layers with untied weights: cosine of their sensitivities with GD's", 0.885, 0.855, 0.915, PLOT, trained.against("gd", "model_cos"), "five_layers", "full", **COSINE),
    Claim("five_layers_predictions", "3b", "five layers with untied weights: mean |prediction difference| to GD++", 0.05, 0.0, 0.06, PLOT, trained.against("gd_plus_plus", "preds_diff"), "five_layers", "full"),
    Claim("twelve_blocks_plus_plus", "8", "twelve blocks with MLPs and four heads: loss ratio to GD++", 1.0, 0.0, 1.05, TEXT, trained.over("gd_plus_plus"), "twelve_blocks", "gpu"),
    Claim("twelve_blocks_median", "8", "twelve blocks with MLPs and four heads: ratio of median losses over contexts to GD++", 1.0, 0.0, 1.05, TEXT, trained.median_over("gd_plus_plus"), "twelve_blocks", "gpu"),
    Claim("twelve_blocks_median_paper", "", "twelve blocks with MLPs and four heads: ratio of median losses over contexts to GD++ of one step size and one gamma, as a short training finds them", 1.0, 0.0, 1.05, EXPECTED, trained.median_over("gd_plus_plus_paper"), "twelve_blocks", "gpu", **FOUND),
    Claim("twelve_layers_median", "8", "twelve layers without MLPs, one head: ratio of median losses over contexts to GD++", 1.0, 0.0, 1.05, TEXT, trained.median_over("gd_plus_plus"), "twelve_layers", "full", **WITHOUT_MLP),
    Claim("twelve_layers_median_paper", "", "twelve layers without MLPs, one head: ratio of median losses over contexts to GD++ of one step size and one gamma, as a short training finds them", 1.0, 0.0, 1.05, EXPECTED, trained.median_over("gd_plus_plus_paper"), "twelve_layers", "full", **FOUND),
    Claim("five_blocks_median", "8", "five blocks with MLPs and four heads: ratio of median losses over contexts to GD++", 1.0, 0.0, 1.05, OURS, trained.median_over("gd_plus_plus"), "five_blocks", "gpu", **FIVE_BLOCKS),
    Claim("twelve_blocks_cosine", "8", "twelve blocks with MLPs and four heads: cosine of their sensitivities with GD++'s", 0.97, 0.95, 1.0, PLOT, trained.against("gd_plus_plus", "model_cos"), "twelve_blocks", "gpu", **COSINE),
    # softmax and layer norm
    Claim("softmax_1_head_left_plateau", "11", "one softmax head: share of runs whose loss falls below .9 of predicting zero in 5000 steps", 1.0, 0.5, 1.0, OURS, trained.below_zero, "softmax_1_head", scale="share"),
    Claim("softmax_1_head_value", "11", "one softmax head, runs below .9 of predicting zero: loss", 0.30, 0.285, 0.315, PLOT, trained.loss, "softmax_1_head", among=trained.below_zero),
    Claim("softmax_1_head_align", "11", "one softmax head, runs below .9 of predicting zero: cosine of its sensitivities with GD's", 0.6, 0.5, 0.7, PLOT, trained.against("gd", "model_cos"), "softmax_1_head", among=trained.below_zero, **COSINE),
    Claim("softmax_2_heads_loss", "12", "two softmax heads: loss", 0.217, *around(0.217, 0.05), PLOT, trained.loss, "softmax_2_heads", "full"),
    Claim("softmax_2_heads_over_gd", "12", "two softmax heads: loss ratio to one tuned step of GD", 0.217 / 0.205, 0.217 / 0.205 * 0.975, 0.217 / 0.205 * 1.025, PLOT, trained.over("gd"), "softmax_2_heads_again", "full", control=Rival("one tuned step of GD, whose ratio is 1", trained.over("gd", "gd")), among=has_trained, tier="main"),
    Claim("softmax_2_heads_cosine", "12", "two softmax heads: cosine of their sensitivities with GD's", 0.97, 0.95, 1.0, PLOT, trained.against("gd", "model_cos"), "softmax_2_heads", "full", **COSINE),
    Claim("softmax_cancels", "12", "two softmax heads: norm of the off-diagonal of eta_1 W1 + eta_2 W2 over the sum of the heads' norms", 0.0, 0.0, 0.2, OURS, trained.cancelling_heads, "softmax_2_heads", "full"),
    Claim("softmax_diagonal", "12", "two softmax heads, eta_1 W1 + eta_2 W2: mean |off-diagonal| over mean |diagonal|", 0.0, 0.0, 0.1, OURS, trained.diagonal_of_heads, "softmax_2_heads", "full"),
    Claim("layer_norm_loss", "14", "one layer with layer norm: loss", 0.25, *around(0.25, 0.05), PLOT, trained.loss, "layer_norm", "full"),
    Claim("layer_norm_cosine", "14", "one layer with layer norm: cosine of its sensitivities with GD's", 0.88, 0.84, 0.92, PLOT, trained.against("gd", "model_cos"), "layer_norm", "full", **COSINE),
    Claim("layer_norm_inputs", "14", "one layer with layer norm, inputs of twice the range: loss ratio to GD", 0.5, 0.0, 0.95, OURS, trained.ratio_under("input_range", 2.0), "layer_norm", "full"),
    # finite pools of tasks
    *(
        Claim(f"pool_{tasks}_cosine", "16", f"one layer trained on {tasks} fixed tasks: cosine of its sensitivities with GD's", 1.0, 0.95, 1.0, TEXT, trained.against("gd", "model_cos"), f"pool_{tasks}", profile, **COSINE)
        for tasks, profile in ((2048, "quick"), (8192, "full"))
    ),
    Claim("pool_512_cosine", "16", "one layer trained on 512 fixed tasks: cosine of its sensitivities with GD's", 0.85, 0.5, 0.95, OURS, trained.against("gd", "model_cos"), "pool_512", **COSINE),
    Claim("pool_128_gap", "16", "one layer trained on 128 fixed tasks: test loss over training loss", 10.0, 2.0, UNBOUNDED, OURS, over_training.overfits, "pool_128"),
    Claim("pool_128_overfits", "16", "one layer trained on 128 fixed tasks: test loss (predicting 0 has .417)", 5.0, 0.8333, UNBOUNDED, PLOT, trained.loss, "pool_128"),
    Claim("block_on_a_pool_peak", "15", "a block with an MLP on 8192 fixed tasks: highest test loss after it left the plateau", 0.48, *around(0.48, 0.1), PLOT, over_training.peak, "block_on_a_pool", "full"),
    Claim("block_on_a_pool_end", "15", "a block with an MLP on 8192 fixed tasks: test loss at step 12 000, after that peak", 0.235, *around(0.235, 0.05), PLOT, over_training.fallen_by(12_000), "block_on_a_pool", "full", infinite="no fall after a peak"),
    # many seeds
    Claim("ten_seeds_plateau", "15", "one head, ten seeds: step of the first record below the plateau, every seed's", 4000, 2000, 6000, PLOT, over_training.steps_until_learnt, "ten_seeds", "full", every=True, spacing=500),
    Claim("ten_seeds_2_heads_loss", "15", "two heads, ten seeds: loss ratio to one tuned step of GD, every seed's", 1.0, 0.99, 1.02, PLOT, trained.over("gd"), "ten_seeds_2_heads", "full", every=True),
    # interleaved tokens
    Claim("interleaved_loss", "5", "two layers on interleaved tokens: loss ratio to one tuned step of GD", 1.02, 0.99, 1.08, PLOT, trained.over("gd"), "interleaved_again", "full", control=Rival(ONE_EACH, trained.over("gd", "conjugate_gradients")), **MAIN, among=has_trained, **SHORT_TOKENS),
    Claim("interleaved_own_x", "5", "interleaved tokens, first layer: sensitivity to a row's own token, in the channels of x", 3.1623, *around(10**0.5, 0.05), PLOT, trained.sensitivity_to("own", "_x"), "interleaved", **SHORT_TOKENS),
    Claim("interleaved_ratio", "5", "interleaved tokens, first layer: sensitivity to the next token over that to the others, with the next one among these (at most 19)", 17.0, 12.0, 19.0, PLOT, trained.next_over_other(), "interleaved", **SHORT_TOKENS),
    Claim("interleaved_ratio_x", "5", "interleaved tokens, first layer, in the channels of x: sensitivity to the next token over that to the others, with the next one among these (at most 19)", 17.0, 12.0, 19.0, PLOT, trained.next_over_other("_x"), "interleaved", **SHORT_TOKENS),
    Claim("interleaved_next", "5", "interleaved tokens, first layer: sensitivity to the next token", 0.85, *around(0.85, 0.2), PLOT, trained.sensitivity_to("next"), "interleaved", **SHORT_TOKENS),
    Claim("interleaved_next_x", "5", "interleaved tokens, first layer: sensitivity to the next token, in the channels of x", 0.85, *around(0.85, 0.2), PLOT, trained.sensitivity_to("next", "_x"), "interleaved", **SHORT_TOKENS),
    Claim("interleaved_onset", "5", "interleaved tokens: step by which a tenth of the copying is learnt over that by which a tenth of the loss has fallen", 0.8, 0.0, 0.95, OURS, over_training.onset_of_copying, "interleaved", spacing=0.1, control=Without("it compares two times of one training"), **SHORT_TOKENS),
    Claim("interleaved_shared_loss", "5", "two layers on the published interleaved tokens, labels in a channel of x: loss ratio to one tuned step of GD", 1.02, 0.99, 1.08, PLOT, trained.over("gd"), "interleaved_shared", "full", **SHORT_TOKENS),
    Claim("interleaved_shared_ratio", "5", "published interleaved tokens, first layer: sensitivity to the next token over that to the others, with the next one among these (at most 19)", 17.0, 12.0, 19.0, PLOT, trained.next_over_other(), "interleaved_shared", "full", **SHORT_TOKENS),
    Claim("interleaved_shared_next", "5", "published interleaved tokens, first layer: sensitivity to the next token", 0.85, *around(0.85, 0.2), PLOT, trained.sensitivity_to("next"), "interleaved_shared", "full", **SHORT_TOKENS),
    Claim("interleaved_published_loss", "5", "two layers trained as published, on the published tokens and from such initial weights: loss ratio to one tuned step of GD", 1.02, 0.99, 1.08, PLOT, trained.over("gd"), "interleaved_published", "full"),
    Claim("interleaved_published_ratio", "5", "trained as published, first layer: sensitivity to the next token over that to the others, with the next one among these (at most 19)", 17.0, 12.0, 19.0, PLOT, trained.next_over_other(), "interleaved_published_again", "full", control=Rival("its sensitivity to the token before", trained.before_over_other), **MAIN, among=has_trained),
    Claim("interleaved_published_next", "5", "trained as published, first layer: sensitivity to the next token", 0.85, *around(0.85, 0.2), PLOT, trained.sensitivity_to("next"), "interleaved_published", "full"),
    Claim("interleaved_published_plateau", "5", "trained as published: step of the first record below the plateau", 15_000, 10_000, 24_000, PLOT, over_training.steps_until_learnt, "interleaved_published", "full", spacing=500),
    # sines
    Claim("sine_ratio", "4", "sines, an MLP below one linear layer: loss ratio to its meta-learned control", 1.0, 0.8, 1.2, PLOT, sines.beside_control("loss_ratio"), "sine", "full", "sine_control", **SHORT_SINES),
    Claim("sine_cosine", "4", "sines: cosine of the sensitivities of model and control", 0.93, 0.88, 1.0, PLOT, sines.beside_control("model_cos"), "sine", "full", "sine_control", **COSINE, **SHORT_SINES),
    Claim("sine_before", "4", "sines, before the context: distance of model's and control's functions over the sine's norm", 0.1, 0.0, 0.2, OURS, sines.functions_apart("before"), "sine", "full", "sine_control", **SHORT_SINES),
    Claim("sine_after", "4", "sines, after the context: distance of model's and control's functions over the sine's norm", 0.1, 0.0, 0.2, OURS, sines.functions_apart("after"), "sine", "full", "sine_control", **SHORT_SINES),
    Claim("sine_tied_ratio", "4", "sines, amplitude and phase from one key as published: loss ratio to the control", 1.0, 0.8, 1.2, PLOT, sines.beside_control("loss_ratio"), "sine_tied", "full", "sine_control_tied", **SHORT_SINES),
    Claim("sine_tied_cosine", "4", "sines, from one key: cosine of the sensitivities of model and control", 0.93, 0.88, 1.0, PLOT, sines.beside_control("model_cos"), "sine_tied", "full", "sine_control_tied", **COSINE, **SHORT_SINES),
    Claim("sine_tied_loss", "4", "sines, from one key, 50 000 steps of 2048 tasks: the transformer's loss", 0.00095, *around(0.00095, 0.2), PLOT, sines.loss, "sine_tied_paper", "full"),
    Claim("sine_loss", "4", "sines, 50 000 steps of 2048 tasks: the transformer's loss", 0.00095, *around(0.00095, 0.2), PLOT, sines.loss, "sine_paper", "full"),
    Claim("sine_control_loss", "4", "sines, 50 000 steps of 2048 tasks: the control's loss", 0.00095, *around(0.00095, 0.2), PLOT, sines.loss, "sine_control_paper", "full"),
    Claim("sine_predictions", "4", "sines, 50 000 steps of 2048 tasks: mean |prediction difference| of model and control", 0.023, *around(0.023, 0.2), PLOT, sines.beside_control("preds_diff"), "sine_paper", "full", "sine_control_paper"),
    # the depth curve: Gaussian inputs, D = N = 20, noise of .05; the mean squared error, not its half
    Claim("depth_left_plateau", "1, depth", "depth curve, one layer: share of runs that leave the plateau", 1.0, 0.5, 1.0, OURS, depth.has_learnt, "depth_lsa", scale="share"),
    Claim("depth_overlap_learnt", "1, depth", "depth curve, one layer applied 1 to 50 times, runs that left the plateau: largest |loss ratio to damped GD - 1|", 0.0, 0.0, 0.05, DERIVED, depth.furthest_from_gd, "depth_lsa", among=depth.has_learnt),
    *(
        Claim(f"depth_after_{layers}_learnt", "1, depth", f"depth curve, one layer applied {layers} times, runs that left the plateau: MSE", level, *around(level, 0.05), DERIVED, depth.after(layers), "depth_lsa", among=depth.has_learnt)
        for layers, level in ((1, 10.85), (4, 6.35), (12, 3.92), (50, 2.11))
    ),
    Claim("depth_linear_last", "depth", "four linear layers trained at depth: MSE without the largest thousandth", 3.0, *around(3.0, 0.05), DERIVED, depth.after(-1), "depth_linear", "full", **FOUND),
    Claim("depth_linear_unstable", "depth", "four linear layers trained at depth: share of tasks on which they are worse than predicting 0", 0.0, 0.0, 0.01, EXPECTED, depth.unstable, "depth_linear", "full", **SHARE, **FOUND),
    Claim("depth_linear_inside", "depth", "four linear layers trained at depth, read after the first: MSE ratio to predicting 0", 5.8, 1.0, 100.0, DERIVED, depth.first_over_zero, "depth_linear", "full", **FOUND),
    Claim("depth_linear_deep", "depth", "four linear layers with deep supervision: largest MSE ratio of a layer to the one before", 0.6, 0.0, 0.99, EXPECTED, depth.largest_step_up, "depth_linear_deep", "full", **FOUND),
    Claim("depth_softmax_small", "depth", "two softmax blocks with deep supervision, D = N = 5: largest MSE ratio of a layer to the one before", 0.7, 0.0, 0.99, EXPECTED, depth.largest_step_up, "depth_softmax_small", "full", **FOUND),
    Claim("depth_softmax_small_steps", "depth", "two softmax blocks, D = N = 5: steps of GD for each layer that reach the last one's loss", 5.0, 1.5, UNBOUNDED, EXPECTED, depth.steps_a_layer, "depth_softmax_small", "full", spacing=0.5, **FOUND),
    Claim("depth_softmax_deep", "depth", "four softmax blocks with deep supervision, D = N = 20: largest MSE ratio of a layer to the one before", 0.8, 0.0, 0.99, EXPECTED, depth.largest_step_up, "depth_softmax", "gpu", **FOUND),
    Claim("depth_softmax_ridge", "depth", "four softmax blocks, D = N = 20: MSE ratio to ridge (Bayes)", 1.0, 0.95, 1.2, EXPECTED, depth.last_over("ridge"), "depth_softmax", "gpu", **FOUND),
)
# fmt: on
