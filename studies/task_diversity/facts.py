"""The facts that the claims state, each with its claims: those of one fact do not confirm each other."""

from __future__ import annotations

# fmt: off
FACTS: dict[str, tuple[str, ...]] = {
    "Decoders trained on few tasks become dMMSE.": ("quick_one_task", "few_tasks", "some_tasks"),
    "Decoders trained on many tasks become ridge.": ("quick_infinite", "many_tasks", "infinite_tasks"),
    "Decoders of two blocks trained on all tasks become ridge.": ("two_blocks",),
    "Above the threshold more tasks change nothing.": ("beyond_the_threshold",),
    "More training moves decoders away from ridge below a threshold of tasks and towards it above.": ("more_training_few_tasks", "more_training_many_tasks", "threshold"),
    "The more tasks, the later decoders are nearest to ridge.": ("exponent", "later", "later_long"),
    "The more tasks, the nearer to ridge decoders come.": ("deeper",),
    "On few tasks the loss on fresh tasks falls and rises again.": ("quick_dip", "transient_8", "transient_16", "transient_8_smoothed", "transient_16_smoothed"),
    "On few tasks, at a constant learning rate, the loss on fresh tasks falls and rises again.": ("transient_long_8", "transient_long_16", "transient_long_8_smoothed", "transient_long_16_smoothed"),
    "On many tasks the loss on fresh tasks does not rise again.": ("transient_long_64", "transient_long_512", "transient_long_infinite"),
    "On few tasks decoders are ridge for a time.": ("nearest_ridge_8", "nearest_ridge_16"),
    "The schedule of the learning rate decides how near to ridge decoders end.": ("recipe",),
    "Between two tasks of the pool decoders on few tasks are dMMSE and on many tasks ridge.": ("paths_few", "paths_fall", "paths_order", "paths_many"),
    "Below the threshold a loss barrier lies between a model and one of all tasks, and above it none.": ("barrier_few", "barrier_many"),
    "Decoders are better on fresh tasks than dMMSE with the best smoothing.": ("smoothing",),
    "Weight decay lowers the threshold, at a worse loss.": ("decay_threshold", "decay_loss"),
    "Width raises the threshold.": ("width",),
    "Decoders trained on few Laplace tasks become dMMSE.": ("laplace_few",),
    "Decoders trained on all Laplace tasks become the mean under their prior.": ("laplace_infinite",),
    "Two components have much of the variance of trajectories.": ("components", "components_null"),
    "A component of trajectories follows the loss on fresh tasks.": ("component_of_ood_loss",),
    # at the papers' size
    "The paper's small decoder on few tasks becomes dMMSE.": ("paper_few",),
    "The paper's small decoder on many tasks becomes ridge.": ("paper_many", "paper_infinite"),
    "The more tasks, the later the paper's small decoder is nearest to ridge.": ("paper_exponent",),
}
# fmt: on
