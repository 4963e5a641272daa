"""The facts that the claims state, each with its claims: those of one fact do not confirm each other."""

from __future__ import annotations

from icl_lab.studies.stages import measured_claims

# fmt: off
FACTS: dict[str, tuple[str, ...]] = {
    "At the published setting the LLC is an affine function of the loss.": ("narrow_is_loss", "narrow_is_loss_later", "two_tasks_is_loss", "one_task_is_loss", "rise_is_loss", "rise_is_loss_doubled"),
    "Two tasks have a larger LLC than one.": ("narrow_two_tasks", "two_tasks_cost"),
    "The first component of a trajectory has no more of the variance than a random walk's.": ("narrow_variance", "regression_variance"),
    "A trajectory has no more forms than a random walk.": ("narrow_forms", "regression_forms"),
    # linear layers
    "The LLC of one linear layer is small late in training.": ("linear_llc",),
    "Where estimates are usable the LLC of one linear layer is no function of the loss.": ("linear_slope",),
    "The LLC of one linear layer follows its alignment with gradient descent.": ("linear_alignment", "linear_alignment_20"),
    "The LLC of two recurrent linear layers rises as they turn to GD++.": ("linear_layers_turn",),
    # one and two tasks
    "On two tasks the LLC falls late in training.": ("two_tasks_fall", "two_tasks_fall_constant"),
    # the regression transformer
    "The regression transformer's LLC falls late in training.": ("decline",),
    "The late fall of the LLC is what growing weights make of it.": ("decline_is_norm", "decline_is_norm_and_loss"),
    "Without layer norms the LLC does not fall.": ("decline_without_norms",),
    "The regression transformer predicts little before it learns in context.": ("squared_prediction",),
    "The regression transformer learns in context as published.": ("icl_score", "icl_score_256", "losses_by_position"),
    "The regression transformer's LLC has the published values.": ("largest_llc", "last_llc"),
    "The token embedding and the read-out's layer norm collapse.": ("embedding_collapse", "layer_norm_collapse"),
    "Milestones come at equal integrals of the learning rate.": ("peak_moves", "dip_moves", "icl_moves"),
    # pools of tasks
    "The LLC grows with the number of tasks.": ("llc_orders_tasks", "llc_of_few"),
    "Pools of some tasks have a larger LLC than infinitely many.": ("llc_of_some",),
    "The LLC follows the distance to ridge.": ("llc_with_distance",),
    # what the LLC over training measures
    **measured_claims.FACTS,
}
# fmt: on
