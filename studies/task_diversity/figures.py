"""The figures of task diversity and the transient ridge: which runs each is of, and which curves of them it shows."""

from __future__ import annotations

from icl_lab.studies.figure import AnyFigure, Figure, Plane, of_first_seed, over_seeds
from icl_lab.studies.task_diversity import curves
from icl_lab.studies.task_diversity.measures import INFINITE

M, STEP, DELTA = "M, tasks in the pool", "training step", "Δ, squared difference / D"
LOSS = "squared error / D"
ON_LINES = (4.0, 16.0, 64.0, 512.0, INFINITE)
PER_POSITION = (1.0, 8.0, INFINITE)
BUDGETS = {"pools": "all steps", "pools_short": "a quarter of them"}
RECIPES = {"pools_short": "triangle", "pools_constant": "constant"}

# fmt: off
FIGURES: tuple[AnyFigure, ...] = (
    # the exact predictors
    Figure("idealised", "Exact predictors, D = 8, K = 16", (), curves.exact_losses(8, curves.EXACT), M, LOSS, log_x=True, profile="full"),
    Figure("gap", "What memorising the pool gains: ridge's loss less dMMSE's, on the pool's tasks", (), curves.exact_gap(4, 8), M, LOSS, log_x=True, profile="full", scale="linear"),
    Figure("dimension", "dMMSE and ridge on fresh tasks, at one signal-to-noise ratio", (), curves.gap_by_dimension((2, 4, 8, 16, 32), (32, 1024, 32_768)), "D", DELTA, profile="full"),
    Figure("smoothing", "dMMSE with the smoothing that is best on fresh tasks", (), curves.smoothing(8, curves.SMOOTHED_TASKS), M, "", log_x=True, log_y=True, profile="full"),
    # trained on nine pools and an infinite one
    Figure("losses", "Models trained on few tasks recall them (dMMSE); trained on many, they learn new ones (ridge)", ("pools",), curves.losses, M, LOSS, log_x=True, profile="full"),
    Figure("budgets", "More training: towards ridge for many tasks, towards dMMSE for few", ("pools", "pools_short"), curves.deltas(BUDGETS), M, DELTA, log_x=True, log_y=True, profile="full"),
    Figure("recipes", "Two schedules of the learning rate, 5000 steps of the same mean rate", ("pools_short", "pools_constant"), curves.deltas(RECIPES), M, DELTA, log_x=True, log_y=True, profile="full"),
    Figure("capacity", "Width and weight decay, 16 tasks, 5000 steps", ("narrow", "pools_short", "wide", "decay"), curves.capacity(16), "channels", "", profile="full"),
    Figure("learning_curves", "Distance to ridge on fresh tasks over training", ("pools",), curves.over_training("", "eval_ood_delta_ridge"), STEP, DELTA, log_x=True, log_y=True, profile="full"),
    Figure("ood_over_training", "With more training tasks, the lowest loss on fresh tasks is lower", ("pools",), curves.over_training("", "eval_ood_loss"), STEP, LOSS, log_x=True, log_y=True, profile="full"),
    Figure("critical_steps", "Steps of the least loss on fresh tasks and of the least Δ to ridge", ("pools",), curves.critical_steps, M, STEP, log_x=True, log_y=True, profile="full", limit=INFINITE, by_seed=True),
    Figure("deflection", "Loss on fresh tasks: how low it falls, and how far it rises again", ("pools",), curves.deflection, M, LOSS, log_x=True, profile="full"),
    Figure("positions", "By the number of pairs seen", ("pools",), curves.errors_by_position(*PER_POSITION), "pairs seen", LOSS, profile="full"),
    Figure("paths", "Halfway between two tasks of a pool: loss, from ridge's (0) to dMMSE's (1)", ("pools",), curves.halfway, M, "(loss - ridge's) / (dMMSE's - ridge's)", log_x=True, profile="full", by_seed=True, scale="linear"),
    Figure("lines", "Towards a model of infinitely many tasks: loss on fresh tasks / D, less a line between its ends", ("pools", "twin"), curves.lines(*ON_LINES), "share of the other model", "loss less interpolation", profile="full", together=True, means=False, by_seed=True, scale="linear"),
    Figure("barriers", "Linear mode connectivity with a model of infinitely many tasks", ("pools", "twin"), curves.barriers, M, "", log_x=True, profile="full", together=True, means=False, by_seed=True),
    Figure("laplace", "Tasks with Laplace coordinates", ("laplace",), curves.deltas({"laplace": curves.TF}), M, DELTA, log_x=True, log_y=True, profile="full"),
    Figure("ood_recipes", "Loss on fresh tasks over training, two schedules", ("pools_short", "pools_constant"), curves.by_recipe({"pools_short": "triangle", "pools_constant": "constant"}, (8, 16, 64)), STEP, LOSS, log_x=True, profile="full"),
    Figure("ood_long", "Constant learning rate: the loss on fresh tasks falls towards ridge, and rises again", ("pools_long",), curves.over_training_and_ridge("", 8), STEP, LOSS, log_x=True, profile="full"),
    Plane("phase", "From both exact predictors, over training", ("pools",), curves.phase_portrait, curves.FROM_DMMSE, curves.FROM_RIDGE, "hollow: dMMSE of the same M", over_seeds, profile="full"),
    Plane("trajectories", "Joint trajectory PCA", ("pools",), curves.plane, "component", "component", "hollow: dMMSE of the same M", of_first_seed, profile="full"),
    Figure("components", "Variance explained by the components of the joint PCA", ("pools",), curves.explained, "rank", "share", profile="full", together=True, scale="fraction"),
    # the quick runs
    Figure("quick_losses", "At the end of training (quick runs)", ("pools_quick",), curves.losses, M, LOSS, log_x=True),
    Figure("quick_training", "Over training (quick runs)", ("pools_quick",), curves.over_training("loss on fresh tasks", "eval_ood_loss"), STEP, LOSS, log_x=True, log_y=True),
    Figure("quick_positions", "By the number of pairs seen (quick runs)", ("pools_quick",), curves.errors_by_position(*PER_POSITION), "pairs seen", LOSS),
    Plane("quick_phase", "From both exact predictors, over training (quick runs)", ("pools_quick",), curves.phase_portrait, curves.FROM_DMMSE, curves.FROM_RIDGE, "hollow: dMMSE of the same M", over_seeds),
    Plane("quick_trajectories", "Joint trajectory PCA (quick runs)", ("pools_quick",), curves.plane, "component", "component", "hollow: dMMSE of the same M", of_first_seed),
    Figure("quick_idealised", "Exact predictors, D = 4, K = 8", (), curves.exact_losses(4, curves.EXACT[:10]), M, LOSS, log_x=True),
)
# fmt: on
