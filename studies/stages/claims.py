"""The claims of how models develop: Hoogland et al. 2024, the LLC part of Carroll et al. 2025, and ours, as data.

Ranges and rules were fixed before the runs that they judge were trained: rules were revised after the results of seeds
0 to 7, 8 to 15 and 16 to 23 of one linear layer and 0 to 2, 8 to 12 and 13 to 17 of the narrow decoders, so these
models are trained on other seeds. The changes are on the page, under "Revised rules". Nulls, each a measure or a
control of some claim:

- LLC over training: nbeta (L_draw(first) - L(w_t)). At a saturated setting the LLC is an affine function of the loss.
- A change of the LLC against one of the loss: slope -nbeta.
- A fall while |w| grows: the change of the radius over |w*|, by raising gamma where the fall begins.
- Variance and forms: random walks with the run's own steps, each with a random sign. A mean of ranks is near 1/2.
- Two curves that go together: the one with the other of another seed.
- Milestones: equal fraction of the schedule (exponent 1), or equal integral of the learning rate (exponent 1/2).
- LLC of two tasks over one: a twin with other data.

Claims on stages, and on what the LLC over training measures, are in `measured_claims`. Sources of ranges: "text" (the paper, or its published
data), "derived" (a null or a limit), "ours" (a pilot run, or our choice).
"""

from __future__ import annotations

from typing import Any

from icl_lab.studies.claim import CARROLL, OURS, UNBOUNDED, Claim, Rival, Without
from icl_lab.studies.stages import measured_claims, measures, published

HOOGLAND = "Hoogland et al. 2024, arXiv 2402.02364"
DERIVED, TEXT, CHOSEN = "derived", "text", "ours"

AT_SIZE: dict[str, Any] = {"paper": HOOGLAND}
BY_HOOGLAND: dict[str, Any] = AT_SIZE | {"smaller": "batches of 64 sequences; the paper's have 256"}
IN_SHORT: dict[str, Any] = AT_SIZE | {"smaller": "70 000 steps of 64 sequences; the paper has 500 000 of 256"}
BY_CARROLL: dict[str, Any] = {
    "paper": CARROLL,
    "control": Without("the pools are each other's controls"),
    "smaller": "dimension 4, and a decoder of 50 000 weights; the paper has 8, and 2.65 million",
}
BY_US: dict[str, Any] = {"about": "ours", "paper": OURS}
IS_NULL: dict[str, Any] = {"control": Without("the range is that of the null itself")}
OVER_TRAINING: dict[str, Any] = {"control": Without("a network that is not trained has no trajectory")}
WITHIN: dict[str, Any] = {
    "control": Without("what another seed's curve gives is taken off"),
    "no_effect": (-0.1, 0.1),
}
FROM_START: dict[str, Any] = {
    "control": Without("the first checkpoint, in the figures, is the untrained network"),
}
OVER_LENGTHS: dict[str, Any] = {"control": Without("runs of other lengths are the control")}

SLOPE, SHARE, FORMS = measures.loss_slope, measures.rank_of_first_share, measures.p_of_forms

# fmt: off
CLAIMS: tuple[Claim, ...] = (
    # one task and two tasks, quick
    Claim("narrow_is_loss", "1", "M = 2, 16 channels, published setting: slope of the LLC in the loss over -nβ", 1.0, 0.95, 1.05, DERIVED, SLOPE("published"), "narrow_two_tasks_main", scale="linear", **BY_US, control=Rival("the same at a setting that is not saturated", SLOPE("default")), tier="main"),
    Claim("narrow_is_loss_later", "1", "M = 2, 16 channels, published setting, after the first checkpoint: slope of the LLC in the loss over -nβ", 1.0, 0.95, 1.05, DERIVED, measures.loss_slope_over("published", after_first=True), "narrow_two_tasks", scale="linear", **BY_US, **IS_NULL),
    Claim("narrow_two_tasks", "1", "16 channels, default setting, last third of training: LLC at M = 2 over LLC at M = 1", 1.8, 1.3, UNBOUNDED, CHOSEN, measures.late_llc_over("default"), "narrow_two_tasks", paired="narrow_one_task", control=Rival("one task over one task of other data", runs=("narrow_one_task_again", "narrow_one_task")), **BY_US),
    Claim("narrow_variance", "PCA", "M = 2, 16 channels: share of random walks, of its own steps, whose first component has less of the variance", 0.5, 0.25, 0.75, DERIVED, SHARE, "narrow_two_tasks", scale="fraction", **BY_US, **IS_NULL),
    Claim("narrow_forms", "forms", "M = 2, 16 channels: share of random walks, of its own steps, that have as many forms", 0.5, 0.25, 1.0, DERIVED, FORMS, "narrow_two_tasks", scale="fraction", **BY_US, **IS_NULL),
    # linear attention, quick
    Claim("linear_llc", "-", "one linear layer, last third of training: LLC at nβ = 133, gamma = 1333", 2.4, 2.0, 2.8, CHOSEN, measures.late_llc("default"), "linear_layer", **BY_US, **OVER_TRAINING),
    Claim("linear_slope", "-", "one linear layer, usable checkpoints: slope of the LLC in the loss over -nβ", 0.2, 0.0, 0.6, CHOSEN, measures.loss_slope_over("default", usable_only=True), "linear_layer", scale="linear", **BY_US, **OVER_TRAINING),
    Claim("linear_alignment", "-", "one linear layer, usable checkpoints: partial rank correlation, given the step, of the LLC and the cosine with one step of gradient descent, less that with another seed's cosine", 0.2, 0.1, UNBOUNDED, CHOSEN, measures.beyond_other_seed(measures.rank_with_alignment("default")), "linear_layer", paired="linear_layer_next", scale="rank_difference", **BY_US, **WITHIN),
    Claim("linear_layers_turn", "-", "two recurrent linear layers, from the largest cosine with two steps of gradient descent on: partial rank correlation, given the step, of the LLC and that cosine, which falls as they turn to GD++, less that with another seed's cosine", -0.2, -UNBOUNDED, -0.1, CHOSEN, measures.beyond_other_seed(measures.rank_with_alignment("default", after_peak=True)), "linear_layers", "full", paired="linear_layers_next", scale="rank_difference", **BY_US, **WITHIN),
    Claim("linear_alignment_20", "-", "one linear layer, N = D = 20, usable checkpoints: partial rank correlation, given the step, of the LLC and the cosine with one step of gradient descent, less that with another seed's cosine", 0.2, 0.1, UNBOUNDED, CHOSEN, measures.beyond_other_seed(measures.rank_with_alignment("default")), "linear_layer_of_20", "full", paired="linear_layer_of_20_next", scale="rank_difference", **BY_US, **WITHIN),
    # one task and two tasks, full
    Claim("two_tasks_is_loss", "1", "M = 2, published setting: slope of the LLC in the loss over -nβ", 1.0, 0.95, 1.05, DERIVED, SLOPE("published"), "two_unit_tasks", "full", scale="linear", **BY_US, **IS_NULL),
    Claim("one_task_is_loss", "1", "M = 1, published setting: slope of the LLC in the loss over -nβ", 1.0, 0.95, 1.05, DERIVED, SLOPE("published"), "one_unit_task", "full", scale="linear", **BY_US, **IS_NULL),
    Claim("two_tasks_fall", "1", "M = 2, default setting: LLC in the last third of training over the largest of usable checkpoints", 0.25, 0.0, 0.6, CHOSEN, measures.late_over_largest("default"), "two_unit_tasks", "full", **BY_US, **OVER_TRAINING),
    Claim("two_tasks_fall_constant", "1", "M = 2, constant learning rate, default setting: LLC in the last third of training over the largest of usable checkpoints", 0.3, 0.0, 0.6, CHOSEN, measures.late_over_largest("default"), "two_unit_tasks_constant", "full", **BY_US, **OVER_TRAINING),
    Claim("two_tasks_cost", "1", "default setting, last third of training: LLC at M = 2 over LLC at M = 1", 1.8, 1.3, UNBOUNDED, CHOSEN, measures.late_llc_over("default"), "two_unit_tasks", "full", "one_unit_task", control=Rival("one task over one task of other data", runs=("one_unit_task_again", "one_unit_task")), **BY_US),
    # the regression transformer
    Claim("rise_is_loss", "2", "published setting, up to the largest LLC: slope of the LLC in the loss over -nβ", 1.0, 0.95, 1.05, DERIVED, measures.loss_slope_of_rise("published"), "short_schedule", "full", scale="linear", **BY_US, **IS_NULL),
    Claim("decline_is_norm", "2", "published setting: fall of the LLC from its largest to the end over what the growth of |w| alone makes of it", 1.0, 0.7, 1.3, DERIVED, measures.decline_over_norm_null("published"), "short_schedule", "full", scale="linear", **BY_US, **IS_NULL),
    Claim("decline_is_norm_and_loss", "2", "published setting: fall of the LLC from its largest to the end over what the growth of |w| and the fall of the loss make of it", 1.0, 0.7, 1.3, DERIVED, measures.decline_over_norm_null("published", with_loss=True), "short_schedule", "full", scale="linear", **BY_US, **IS_NULL),
    Claim("decline", "2", "published setting: fall of the LLC from its largest to the end, over the largest", 0.2, 0.1, 0.35, TEXT, measures.decline("published"), "short_schedule", "full", scale="fraction", control=Rival("the same at a constant learning rate", runs=("constant_rate",)), **IN_SHORT),
    Claim("decline_without_norms", "2", "without layer norms, published setting: fall of the LLC from its largest to the end, over the largest", 0.05, 0.0, 0.1, CHOSEN, measures.decline("published"), "no_layer_norm", "full", scale="fraction", control=Rival("the same with layer norms", runs=("short_schedule",)), **BY_US),
    Claim("rise_is_loss_doubled", "2", "residual doubled, published setting, up to the largest LLC: slope of the LLC in the loss over -nβ", 1.0, 0.95, 1.05, DERIVED, measures.loss_slope_of_rise("published"), "doubled_residual", "full", scale="linear", **BY_US, **IS_NULL),
    Claim("regression_variance", "PCA", "70 000 steps: share of random walks, of its own steps, whose first component has less of the variance", 0.5, 0.25, 0.75, DERIVED, SHARE, "short_schedule", "full", scale="fraction", **BY_US, **IS_NULL),
    Claim("regression_forms", "forms", "70 000 steps: share of random walks, of its own steps, that have as many forms", 0.5, 0.25, 1.0, DERIVED, FORMS, "short_schedule", "full", scale="fraction", **BY_US, **IS_NULL),
    Claim("squared_prediction", "4", "500 000 steps: least mean squared prediction over training", 0.013, 0.003, 0.03, TEXT, measures.least_of("id_squared_prediction"), "long_schedule", "full", **BY_HOOGLAND | OVER_TRAINING),
    Claim("icl_score", "4", "500 000 steps: ICL score at the end, the first position's loss less the last's", 3.73, 3.4, 4.0, TEXT, measures.end_of("id_icl_1_k_text"), "long_schedule", "full", scale="linear", **BY_HOOGLAND, **FROM_START),
    Claim("largest_llc", "2", "500 000 steps, published setting: largest LLC over training", 171.0, 150.0, 190.0, TEXT, measures.largest("llc_published"), "long_schedule", "full", **BY_HOOGLAND | OVER_TRAINING),
    Claim("last_llc", "2", "500 000 steps, published setting: LLC at the end", 128.0, 100.0, 150.0, TEXT, measures.end_of("llc_published"), "long_schedule", "full", **BY_HOOGLAND, **FROM_START),
    Claim("losses_by_position", "4", "500 000 steps: largest relative difference of a position's loss at the end from the published one", 0.05, 0.0, 0.15, TEXT, measures.off_losses_by_position(published.LOSSES_BY_POSITION), "long_schedule", "full", **BY_HOOGLAND, **FROM_START),
    Claim("icl_score_256", "4", "500 000 steps of 256 sequences: ICL score at the end, the first position's loss less the last's", 3.73, 3.4, 4.0, TEXT, measures.end_of("id_icl_1_k_text"), "large_batch", "gpu", scale="linear", **AT_SIZE, **FROM_START),
    Claim("embedding_collapse", "5", "500 000 steps: smallest share of the token embedding's singular values squared, at the end", 0.015, 0.0, 0.05, TEXT, measures.end_of("embedding_smallest_share"), "long_schedule", "full", **BY_HOOGLAND, **FROM_START),
    Claim("layer_norm_collapse", "5", "500 000 steps: mean scale of the read-out's layer norm at the end", 0.09, 0.0, 0.25, TEXT, measures.end_of("read_out_norm_gamma_mean"), "long_schedule", "full", **BY_HOOGLAND, **FROM_START),
    Claim("peak_moves", "2", "exponent, in the schedule's length, of the step of the largest LLC at the published setting", 0.5, 0.3, 0.8, DERIVED, measures.moves_with_length(measures.peak_step("published")), "schedules", "full", scale="linear", spacing=0.25, **BY_US, **OVER_LENGTHS),
    Claim("dip_moves", "4", "exponent, in the schedule's length, of the step of the least squared prediction", 0.5, 0.35, 0.65, DERIVED, measures.moves_with_length(measures.dip_step), "schedules", "full", scale="linear", spacing=0.1, **BY_US, **OVER_LENGTHS),
    Claim("icl_moves", "4", "exponent, in the schedule's length, of the step at which the ICL score is half of what it ends at", 0.5, 0.35, 0.65, DERIVED, measures.moves_with_length(measures.step_of_half("id_icl_1_k_text")), "schedules", "full", scale="linear", spacing=0.1, **BY_US, **OVER_LENGTHS),
    # pools of M tasks
    Claim("llc_orders_tasks", "3", "default setting, last third of training: rank correlation of the LLC and M, up to 64 tasks", 1.0, 0.8, UNBOUNDED, TEXT, measures.rank_with_tasks("default", 64), "pools_of_tasks", "full", scale="rank", **BY_CARROLL),
    Claim("llc_with_distance", "3", "M = 16, default setting: partial rank correlation over training, given the step, of the LLC and the distance to ridge, less that with another seed's distance", 0.2, 0.1, UNBOUNDED, CHOSEN, measures.beyond_other_seed(measures.rank_with_distance("default", 16)), "pools_of_tasks", "full", paired="pools_of_tasks_next", scale="fisher", **BY_US, **WITHIN),
    Claim("llc_of_few", "3", "default setting, last third of training: LLC at M = 4 over LLC at M = ∞", 0.5, 0.0, 0.8, CHOSEN, measures.pool_over_infinite("default", 4), "pools_of_tasks", "full", **BY_CARROLL),
    Claim("llc_of_some", "3", "default setting, last third of training: LLC at M = 64 over LLC at M = ∞, which small pools' LLC crosses in the paper", 1.2, 1.0, UNBOUNDED, CHOSEN, measures.pool_over_infinite("default", 64), "pools_of_tasks", "full", **BY_CARROLL),
    # what the LLC over training measures
    *measured_claims.CLAIMS,
)
# fmt: on
