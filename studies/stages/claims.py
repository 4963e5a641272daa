"""The claims of how models develop: Hoogland et al. 2024, the LLC part of Carroll et al. 2025, and ours, as data.

Ranges stand here before the study's runs are trained. Nulls, each a measure or a control of some claim:

- LLC over training: nbeta (L_draw(first) - L(w_t)). At a saturated setting the LLC is the loss, turned over.
- A change of the LLC against one of the loss: slope -nbeta.
- A decline: the change of the radius over |w*|, by raising gamma where the decline begins.
- Variance and forms: random walks of the run's own steps.
- Milestones: equal fraction of the schedule (exponent 1), or equal integral of the learning rate (exponent 1/2).
- Everything: a twin with other data.

A stage is claimed where the LLC leaves these by three standard errors, with healthy chains, at two settings
(`analysis.measures.development.nulls`). Sources of ranges: "text" (the paper, or its published data), "derived" (a null
or a limit), "ours" (a pilot run of one seed, or our choice).
"""

from __future__ import annotations

from typing import Any

from studies.claim import CARROLL, OURS, UNBOUNDED, Claim
from studies.stages import measures

HOOGLAND = "Hoogland et al. 2024, arXiv 2402.02364"
DERIVED, TEXT, CHOSEN = "derived", "text", "ours"

BY_HOOGLAND: dict[str, Any] = {"paper": HOOGLAND}
BY_CARROLL: dict[str, Any] = {"paper": CARROLL, "control": (), "uncontrolled": "the pools are each other's controls"}
BY_US: dict[str, Any] = {"about": "ours", "paper": OURS}
IS_NULL: dict[str, Any] = {"control": (), "uncontrolled": "the range is that of the null itself"}
OVER_TRAINING: dict[str, Any] = {"control": (), "uncontrolled": "a network that is not trained has no trajectory"}
FROM_START: dict[str, Any] = {
    "control": (),
    "uncontrolled": "the first checkpoint, in the figures, is the untrained network",
}
OVER_LENGTHS: dict[str, Any] = {"control": (), "uncontrolled": "runs of other lengths are the control"}

SLOPE, SHARE, FORMS = measures.loss_slope, measures.first_share_over_walks, measures.forms_over_walks

# fmt: off
CLAIMS: tuple[Claim, ...] = (
    # one task and two tasks, quick
    Claim("narrow_is_loss", "1", "M = 2, 16 channels, published setting: slope of the LLC in the loss over -nβ", 1.0, 0.95, 1.05, DERIVED, SLOPE("published"), "narrow_two_tasks", scale="linear", **BY_US, **IS_NULL),
    Claim("narrow_two_tasks", "1", "16 channels, default setting, end of training: LLC at M = 2 over LLC at M = 1", 1.8, 1.3, UNBOUNDED, CHOSEN, measures.end_llc_over("default"), "narrow_two_tasks", beside="narrow_one_task", control=("narrow_one_task_again", "narrow_one_task"), **BY_US),
    Claim("narrow_variance", "PCA", "M = 2, 16 channels: the first component's share of the variance over that of random walks of its steps", 1.0, 0.8, 1.25, DERIVED, SHARE, "narrow_two_tasks", **BY_US, **IS_NULL),
    Claim("narrow_forms", "forms", "M = 2, 16 channels: forms, over those of random walks of its steps", 1.0, 0.0, 1.5, DERIVED, FORMS, "narrow_two_tasks", scale="nonnegative", **BY_US, **IS_NULL),
    # linear attention, quick
    Claim("linear_llc", "-", "one linear layer, end of training: LLC at nβ = 133, gamma = 1333", 2.2, 1.9, 2.5, CHOSEN, measures.end_llc("default"), "linear_layer", **BY_US, **OVER_TRAINING),
    Claim("linear_stage", "-", "one linear layer: at least one stage leaves its nulls at both unsaturated settings", 1.0, 1.0, UNBOUNDED, CHOSEN, measures.claimed_stages, "linear_layer", scale="nonnegative", every=True, **BY_US, **OVER_TRAINING),
    Claim("linear_stage_any_health", "-", "one linear layer: at least one stage leaves its nulls at both unsaturated settings; by the rule committed first, between the checkpoints nearest to milestones, healthy or not", 1.0, 1.0, UNBOUNDED, CHOSEN, measures.claimed_stages_any_health, "linear_layer", scale="nonnegative", every=True, **BY_US, **OVER_TRAINING),
    Claim("linear_alignment", "-", "one linear layer: rank correlation over healthy checkpoints of the LLC and the cosine with one step of gradient descent", 0.9, 0.5, UNBOUNDED, CHOSEN, measures.rank_with_alignment("default"), "linear_layer", scale="linear", **BY_US, **OVER_TRAINING),
    Claim("linear_layers_stage", "-", "two recurrent linear layers: at least one stage leaves its nulls at both unsaturated settings", 1.0, 1.0, UNBOUNDED, CHOSEN, measures.claimed_stages, "linear_layers", "full", scale="nonnegative", every=True, **BY_US, **OVER_TRAINING),
    Claim("linear_alignment_20", "-", "one linear layer, N = D = 20: rank correlation over healthy checkpoints of the LLC and the cosine with one step of gradient descent", 0.9, 0.5, UNBOUNDED, CHOSEN, measures.rank_with_alignment("default"), "linear_layer_of_20", "full", scale="linear", **BY_US, **OVER_TRAINING),
    # one task and two tasks, full
    Claim("two_tasks_is_loss", "1", "M = 2, published setting: slope of the LLC in the loss over -nβ", 1.0, 0.95, 1.05, DERIVED, SLOPE("published"), "two_unit_tasks", "full", scale="linear", **BY_US, **IS_NULL),
    Claim("one_task_is_loss", "1", "M = 1, published setting: slope of the LLC in the loss over -nβ", 1.0, 0.95, 1.05, DERIVED, SLOPE("published"), "one_unit_task", "full", scale="linear", **BY_US, **IS_NULL),
    Claim("two_tasks_stage", "1", "M = 2: at least one stage leaves its nulls at both unsaturated settings", 1.0, 1.0, UNBOUNDED, CHOSEN, measures.claimed_stages, "two_unit_tasks", "full", scale="nonnegative", every=True, **BY_US, **OVER_TRAINING),
    Claim("two_tasks_fall", "1", "M = 2, default setting: LLC at the end over the largest of healthy checkpoints", 0.25, 0.0, 0.6, CHOSEN, measures.end_over_largest("default"), "two_unit_tasks", "full", **BY_US, **OVER_TRAINING),
    Claim("two_tasks_cost", "1", "default setting, end of training: LLC at M = 2 over LLC at M = 1", 1.8, 1.3, UNBOUNDED, CHOSEN, measures.end_llc_over("default"), "two_unit_tasks", "full", "one_unit_task", control=("one_unit_task_again", "one_unit_task"), **BY_US),
    # the regression transformer
    Claim("rise_is_loss", "2", "published setting, up to the largest LLC: slope of the LLC in the loss over -nβ", 1.0, 0.95, 1.05, TEXT, measures.loss_slope_of_rise("published"), "short_schedule", "full", scale="linear", paper=HOOGLAND, **IS_NULL),
    Claim("decline_is_norm", "2", "published setting: fall of the LLC from its largest to the end over what the growth of the weights alone makes of it", 1.0, 0.7, 1.3, DERIVED, measures.decline_over_norm_null("published"), "short_schedule", "full", scale="linear", **BY_US, **IS_NULL),
    Claim("decline", "2", "published setting: fall of the LLC from its largest to the end, over the largest", 0.2, 0.1, 0.35, TEXT, measures.decline("published"), "short_schedule", "full", scale="fraction", control=("constant_rate",), **BY_HOOGLAND),
    Claim("decline_without_norms", "2", "without layer norms, published setting: fall of the LLC from its largest to the end, over the largest", 0.05, 0.0, 0.1, CHOSEN, measures.decline("published"), "no_layer_norm", "full", scale="fraction", control=("short_schedule",), **BY_US),
    Claim("rise_is_loss_doubled", "2", "residual doubled, published setting, up to the largest LLC: slope of the LLC in the loss over -nβ", 1.0, 0.95, 1.05, TEXT, measures.loss_slope_of_rise("published"), "doubled_residual", "full", scale="linear", **BY_US, **IS_NULL),
    Claim("regression_stage", "2", "70 000 steps: at least one stage leaves its nulls at both unsaturated settings", 1.0, 1.0, UNBOUNDED, CHOSEN, measures.claimed_stages, "short_schedule", "full", scale="nonnegative", every=True, **BY_HOOGLAND | OVER_TRAINING),
    Claim("regression_variance", "PCA", "70 000 steps: the first component's share of the variance over that of random walks of its steps", 1.0, 0.8, 1.25, DERIVED, SHARE, "short_schedule", "full", **BY_US, **IS_NULL),
    Claim("regression_forms", "forms", "70 000 steps: forms, over those of random walks of its steps", 1.0, 0.0, 1.5, DERIVED, FORMS, "short_schedule", "full", scale="nonnegative", **BY_US, **IS_NULL),
    Claim("squared_prediction", "4", "500 000 steps: least mean squared prediction over training", 0.013, 0.003, 0.03, TEXT, measures.least_of("id_squared_prediction"), "long_schedule", "full", **BY_HOOGLAND | OVER_TRAINING),
    Claim("icl_score", "4", "500 000 steps: ICL score at the end, the first position's loss less the last's", 3.73, 3.4, 4.0, TEXT, measures.end_of("id_icl_1_k_text"), "long_schedule", "full", scale="linear", **BY_HOOGLAND, **FROM_START),
    Claim("icl_score_256", "4", "500 000 steps of 256 sequences: ICL score at the end, the first position's loss less the last's", 3.73, 3.4, 4.0, TEXT, measures.end_of("id_icl_1_k_text"), "large_batch", "gpu", scale="linear", **BY_HOOGLAND, **FROM_START),
    Claim("embedding_collapse", "5", "500 000 steps: smallest share of the token embedding's singular values squared, at the end", 0.015, 0.0, 0.05, TEXT, measures.end_of("embedding_smallest_share"), "long_schedule", "full", **BY_HOOGLAND, **FROM_START),
    Claim("layer_norm_collapse", "5", "500 000 steps: mean scale of the read-out's layer norm at the end", 0.09, 0.0, 0.25, TEXT, measures.end_of("read_out_norm_gamma_mean"), "long_schedule", "full", **BY_HOOGLAND, **FROM_START),
    Claim("peak_moves", "2", "exponent, in the schedule's length, of the step of the largest LLC at the published setting", 0.5, 0.3, 0.8, DERIVED, measures.moves_with_length(measures.peak_step("published")), "schedules", "full", scale="linear", **BY_US, **OVER_LENGTHS),
    Claim("dip_moves", "4", "exponent, in the schedule's length, of the step of the least squared prediction", 0.5, 0.35, 0.65, DERIVED, measures.moves_with_length(measures.dip_step), "schedules", "full", scale="linear", **BY_US, **OVER_LENGTHS),
    # pools of M tasks
    Claim("llc_orders_tasks", "3", "default setting, end of training: rank correlation of the LLC and M", 1.0, 0.8, UNBOUNDED, TEXT, measures.rank_with_tasks("default"), "pools_of_tasks", "full", scale="linear", **BY_CARROLL),
    Claim("llc_of_few", "3", "default setting, end of training: LLC at M = 4 over LLC at M = ∞", 0.5, 0.0, 0.8, CHOSEN, measures.few_over_infinite("default", 4), "pools_of_tasks", "full", **BY_CARROLL),
)
# fmt: on
