"""The facts that the claims state, each with its claims: those of one fact do not confirm each other."""

from __future__ import annotations

ALL, STUCK = ("condition_100", "uniform", "inverse_tasks"), ("reciprocal", "noisy", "square")
CONDITIONS = ("exact_10_2", "exact_100_2", "exact_1000_2", "drawn_100_2")

# fmt: off
FACTS: dict[str, tuple[str, ...]] = {
    # preconditioned
    "On anisotropic inputs one linear layer is the preconditioned step of the closed form.": (
        *(f"preconditioned_{name}_{what}" for name in ALL for what in ("loss", "matrix")),
        *(f"preconditioned_{name}_loss_among_learnt" for name in STUCK),
        "preconditioned_reciprocal_matrix_among_learnt", "preconditioned_square_matrix_among_learnt", "preconditioned_reciprocal_kinds",
    ),
    "Most runs of one linear layer on anisotropic inputs train.": ("preconditioned_condition_100_trained", *(f"preconditioned_{name}_learnt" for name in STUCK)),
    "With axes drawn for each context one linear layer is a step of gradient descent.": ("preconditioned_rotated_loss",),
    "Most runs of one linear layer with axes drawn for each context train.": ("preconditioned_rotated_trained",),
    "With axes drawn for each context two layers are better than two steps of gradient descent.": ("preconditioned_rotated_depth",),
    "On tasks of the inverse covariance both layers of two have the inverse covariance.": ("preconditioned_inverse_tasks_2_layers_first", "preconditioned_inverse_tasks_2_layers_second"),
    "With axes drawn for each context both layers of two have the identity.": ("preconditioned_rotated_2_layers_first", "preconditioned_rotated_2_layers_second"),
    "On labels of a nonlinear teacher one linear layer is a step of gradient descent.": ("preconditioned_relu_teacher",),
    "On other numbers of pairs the layer takes the step that it was trained to.": tuple(f"preconditioned_{n}_pairs_among_learnt" for n in (5, 200, 1000)),
    "Another covariance at test makes the loss grow as derived.": ("preconditioned_covariance_shift_among_learnt",),
    "Other tasks and queries at test are tolerated.": ("preconditioned_task_shift_among_learnt", "preconditioned_query_shift_among_learnt"),
    # first or higher order
    "On ill-conditioned contexts one layer is a step of gradient descent.": ("order_one_layer",),
    "Where each context's covariance is the identity one layer is exact.": ("order_exact_isotropic",),
    "On ill-conditioned contexts two layers are two steps of GD++.": (*(f"order_{name}" for name in CONDITIONS), "order_nearer_than_polynomial", "order_nearer_than_conjugate_gradients"),
    "Most runs of two layers on ill-conditioned contexts train.": ("order_exact_100_2_trained", "order_exact_1000_2_trained"),
    "Most runs of three layers on ill-conditioned contexts learn.": ("order_exact_100_3_learnt",),
    "On ill-conditioned contexts three layers are better than any polynomial of their degree.": ("order_exact_100_3_among_learnt",),
    "Run deeper than trained, recurrent layers gain on most tasks and fail on a few.": ("order_looped_median", "order_looped_mean"),
    # retrieval and learning
    "With few pairs decoders trained on a mixture are its exact posterior.": ("prior_one_pair", "prior_mixture_is_nearest"),
    "Decoders trained on Gaussian tasks are ridge.": ("prior_gaussian_is_nearest", "prior_gaussian_has_no_ascent"),
    "A task outside the mixture is first taken for one of its centres.": ("prior_retrieves", "prior_ascent_height", "prior_ascent_place"),
    "With many pairs decoders trained on a mixture learn the task.": ("prior_learns_outside", "prior_many_pairs"),
    # plateaus
    "Merged matrices leave the plateau at the derived step.": ("merged_slope", "merged_time"),
    "Four factors under SGD leave the plateau at the derived step.": ("factors_exponent", "factors_time", "factors_time_error", "five_time"),
    "Initial weights decide which runs stay on a second plateau.": ("factors_second_plateau", "second_plateau_level"),
    "Under Adam the scale of initial weights does not change when the plateau ends.": ("adam_exponent", "scale_no_faster"),
    "Below Adam's epsilon the plateau ends at the derived step.": ("adam_floor",),
    "Two recurrent layers are gradient descent first and turn to GD++ later.": ("gd_after_the_plateau", "turn_after_escape"),
    "Most runs of one linear layer in smaller batches train.": ("twenty_learnt", "ten_learnt"),
    "A larger learning rate ends the plateau sooner.": ("rate_faster",),
}
# fmt: on
