"""What limits a claim that was not reproduced, by its name: a sentence or two, written after it was measured."""

from __future__ import annotations

# fmt: off
STUCK_SOFTMAX = "Four of eight seeds leave the plateau in 5000 steps; they end at .283 to .297 with a cosine of .72. Two heads have no such plateau."
TEN = "The paper's GD++ is at .05, and so are these runs (.052). With its two rates fitted to convergence GD++ is at .030 to .034, which ten trained layers do not reach in 15 000 steps."
FIVE = "Five layers with weights of their own are far better than GD++ on the median context."

REMARKS: dict[str, str] = {
    "one_layer_plateau_length": "The plateau is absent: every seed has left it by the first record, step 500.",
    "softmax_1_head_left_plateau": STUCK_SOFTMAX,
    "softmax_1_head_value": STUCK_SOFTMAX,
    "softmax_1_head_align": STUCK_SOFTMAX,
    "rollout_undamped_minimum": "A mean over tasks is soon that of the few that diverge; which of them are among 10 000 decides how low it gets.",
    "rollout_damped_minimum": "Fewer than one task in 200 diverges, so 10 000 tasks hold few of the worst, and the mean falls further than over all tasks.",
    "two_layers_teachers": "Up to twice the scale the loss is within 4 % of GD++'s; at three, four and five times it is 9, 16 and 27 % above: a learned stack is not linear in its labels.",
    "ten_layers_plus_plus": TEN,
    "ten_layers_median": TEN,
    "ten_layers_cosine": TEN,
    "ten_layers_predictions": TEN,
    "five_layers_median": FIVE,
    "five_layers_median_plus_plus": FIVE,
    "five_layers_inputs": "On narrower inputs five layers are up to 43 % away from GD++.",
    "condition_explodes": "One GD++ step at gamma .2 multiplies the median condition number by 1.41; a tenth of the contexts' grow thirtyfold, and the mean by more than a thousand.",
    "interleaved_own_x": "A network that is not trained has the same: the residual stream carries each token, whose norm is that of the identity, the root of 10.",
    "layer_norm_cosine": "The published program ends there too (.833); the plot's .88 is what is off.",
    "depth_linear_inside": "Trained from small weights, our stacks' losses fall at every layer and end lower than the derived 3.0: another way to the same read-out.",
    "depth_linear_last": "Trained from small weights, our stacks end at a third of the derived loss.",
}
# fmt: on
