"""The facts that the claims state, each with its claims: those of one fact do not confirm each other."""

from __future__ import annotations

SIZES, LAYERS_READ, CODED = (
    (5, 20, 35, 50),
    (1, 4, 12, 50),
    ("interleaved", "interleaved_shared", "interleaved_published"),
)

# fmt: off
FACTS: dict[str, tuple[str, ...]] = {
    # one linear layer
    "One linear layer is one step of gradient descent.": ("one_layer_loss", "one_layer_level", "one_layer_predictions", "one_layer_sensitivities", "one_layer_interpolation"),
    "Most runs of one linear layer train.": ("one_layer_trained", *(f"size_{n}_left_plateau" for n in SIZES)),
    "One linear layer of other sizes is one step of gradient descent.": tuple(f"size_{n}_{what}" for n in SIZES for what in ("ratio", "value")),
    "One linear layer stays on a plateau before it learns.": ("one_layer_plateau_length", "ten_seeds_plateau"),
    "The best step size of one step of gradient descent is the derived one.": ("one_step_size",),
    "One linear layer is a step of gradient descent on other inputs, tasks and labels too.": ("inputs_near", "inputs_far", "teachers", "other_inputs", "distractors"),
    "One layer applied again and again is as many damped steps of gradient descent.": ("rollout_overlap", "rollout_end", "rollout_median"),
    "Applied with less damping, one layer diverges on a few tasks.": ("rollout_undamped", "rollout_damped", "rollout_undamped_minimum", "rollout_damped_minimum"),
    "Two linear heads are one step of gradient descent.": ("ten_seeds_2_heads_loss",),
    # two and three recurrent layers
    "Most runs of two recurrent layers train.": ("two_layers_trained",),
    "Two recurrent layers are two steps of GD++.": ("two_layers_loss", "two_layers_plus_plus", "two_layers_plus_plus_paper", "two_layers_predictions", "two_layers_sensitivities", "two_layers_interpolation"),
    "Two recurrent layers are no two steps of gradient descent.": ("two_layers_gd", "two_layers_gd_own_steps", "two_layers_cosine_gd", "two_layers_predictions_gd"),
    "Two recurrent layers do not reach GD++ with rates for each step.": ("two_layers_plus_plus_own_rates",),
    "Two recurrent layers are steps of GD++ on other inputs and tasks too.": ("two_layers_inputs", "two_layers_teachers", "two_layers_other_inputs"),
    "Two recurrent layers are gradient descent first and turn to GD++ later.": ("two_layers_descend_first", "two_layers_turn", "two_layers_turn_own_steps"),
    "Replaced labels harm deep stacks more than gradient descent.": ("replaced_two_layers", "replaced_five_layers", "replaced_five_layers_median"),
    "Three recurrent layers are three steps of GD++.": ("three_layers_plus_plus", "three_layers_plus_plus_paper"),
    "Three recurrent layers are better than gradient descent with a step size for each step.": ("three_layers_gd_own_steps",),
    # deeper
    "Stacks are nearer to GD++ than to gradient descent with a step size for each step.": ("two_layers_own_steps", "three_layers_own_steps", "five_layers_own_steps", "ten_layers_own_steps", "ten_layers_own_steps_paper", "twelve_layers_own_steps", "twelve_blocks_own_steps"),
    "Ten recurrent layers are ten steps of GD++.": ("ten_layers_loss", "ten_layers_plus_plus", "ten_layers_plus_plus_paper", "ten_layers_median", "ten_layers_median_paper", "ten_layers_cosine", "ten_layers_cosine_paper", "ten_layers_predictions"),
    "Ten recurrent layers have the loss of gradient descent with a step size for each step.": ("ten_layers_gd_own_steps",),
    "Ten recurrent layers are no ten steps of gradient descent.": ("ten_layers_cosine_gd",),
    "Ten recurrent layers are worse than five with weights of their own.": ("ten_layers_over_five",),
    "Five layers with weights of their own are five steps of GD++.": ("five_layers_loss", "five_layers_median", "five_layers_median_plus_plus", "five_layers_plus_plus", "five_layers_cosine", "five_layers_predictions"),
    "Five layers with weights of their own are better than GD++ of one pair of rates.": ("five_layers_plus_plus_paper", "five_layers_median_paper"),
    "Five layers with weights of their own are no five steps of gradient descent.": ("five_layers_gd_own_steps", "five_layers_cosine_gd"),
    "Five layers with weights of their own are steps of GD++ on narrower inputs too.": ("five_layers_inputs",),
    "Blocks with MLPs are steps of GD++.": ("twelve_blocks_plus_plus", "twelve_blocks_median", "twelve_blocks_median_paper", "twelve_blocks_cosine", "five_blocks_median"),
    "Twelve layers with weights of their own are twelve steps of GD++.": ("twelve_layers_median", "twelve_layers_median_paper"),
    # softmax and layer norm
    "Most runs of one softmax head train.": ("softmax_1_head_left_plateau",),
    "One softmax head is a step of gradient descent in part.": ("softmax_1_head_value", "softmax_1_head_align"),
    "Most runs of two softmax heads train.": ("softmax_2_heads_trained",),
    "Two softmax heads are nearly one step of gradient descent.": ("softmax_2_heads_loss", "softmax_2_heads_over_gd", "softmax_2_heads_cosine"),
    "What two softmax heads have beside a linear one cancels.": ("softmax_cancels", "softmax_diagonal"),
    "One layer with layer norm is no step of gradient descent.": ("layer_norm_loss", "layer_norm_cosine"),
    "One layer with layer norm is better than gradient descent on wider inputs.": ("layer_norm_inputs",),
    # fixed tasks
    "One layer trained on many fixed tasks is a step of gradient descent.": ("pool_2048_cosine", "pool_8192_cosine"),
    "One layer trained on few fixed tasks fits these alone.": ("pool_512_cosine", "pool_128_gap", "pool_128_overfits"),
    "A block with an MLP overfits fixed tasks first and recovers later.": ("block_on_a_pool_peak", "block_on_a_pool_end"),
    # interleaved tokens
    "Most runs of two layers on interleaved tokens train.": ("interleaved_trained", "interleaved_published_trained"),
    "Two layers on interleaved tokens are one step of gradient descent.": tuple(f"{name}_loss" for name in CODED),
    "The first layer on interleaved tokens copies the next token.": (*(f"{name}_{what}" for name in CODED for what in ("ratio", "next")), "interleaved_ratio_x", "interleaved_next_x"),
    "The first layer on interleaved tokens keeps each token.": ("interleaved_own_x",),
    "Copying is learnt before the loss falls.": ("interleaved_onset",),
    "Training on interleaved tokens begins with a long plateau.": ("interleaved_published_plateau",),
    # sines
    "On sines the transformer is a step of gradient descent on learned features.": ("sine_ratio", "sine_cosine", "sine_before", "sine_after", "sine_predictions"),
    "On sines of one draw the transformer is a step of gradient descent on learned features.": ("sine_tied_ratio", "sine_tied_cosine"),
    "On sines of one draw the transformer has the published loss.": ("sine_tied_loss",),
    "On sines of two draws transformer and control have the published loss.": ("sine_loss", "sine_control_loss"),
    # the depth curve
    "Most runs of one layer on noisy Gaussian contexts train.": ("depth_left_plateau",),
    "One layer applied again and again on noisy Gaussian contexts is as many damped steps of gradient descent.": ("depth_overlap_learnt", *(f"depth_after_{n}_learnt" for n in LAYERS_READ)),
    "Four linear layers trained at depth have the derived loss.": ("depth_linear_last",),
    "Four linear layers trained at depth are better than predicting zero on all tasks.": ("depth_linear_unstable",),
    "Four linear layers trained at depth are worse than predicting zero after the first.": ("depth_linear_inside",),
    "With deep supervision the loss falls at every layer.": ("depth_linear_deep", "depth_softmax_small", "depth_softmax_deep"),
    "A softmax block does the work of several steps of gradient descent.": ("depth_softmax_small_steps",),
    "Four softmax blocks are near ridge regression.": ("depth_softmax_ridge",),
}
# fmt: on
