"""The figures of how models develop: which runs each is of, and which curves of them it shows."""

from __future__ import annotations

import math
from functools import partial

from icl_lab.studies.figure import AnyFigure, Figure, Plane, of_first_seed
from icl_lab.studies.stages import curves
from icl_lab.studies.stages.measured_claims import MODELS

STEP, SHARE, LLC = "training step, from 1", "share of the schedule", "LLC"
NARROW = {"narrow_one_task": "M = 1", "narrow_one_task_again": "M = 1, other data", "narrow_two_tasks": "M = 2"}
ONE_AND_TWO = {"one_unit_task": "M = 1", "two_unit_tasks": "M = 2"}
UNIT = ONE_AND_TWO | {"one_unit_task_again": "M = 1, other data"}
CONSTANT = {"two_unit_tasks_constant": "M = 2, constant rate"}
SHORT, UNSATURATED = {"short_schedule": "triangle"}, {"short_schedule_stages": "triangle"}
CONTROLS = SHORT | { "constant_rate": "constant rate", "no_layer_norm": "no layer norm", "doubled_residual": "doubled residual"}  # fmt: skip
LINEAR = {"linear_layer": "one layer", "linear_layers": "two recurrent layers", "linear_layer_of_20": "N = D = 20"}
BEHAVIOUR = {
    "id_icl_1_k_figure": "ICL score, last less first loss",
    "id_squared_prediction": "squared prediction",
    "id_delta_ridge": "distance to ridge",
    "gain_10_icl_over_g_figure": "ICL score of ten times the inputs, over 10",
}
STRUCTURE = {
    "weight_norm": "norm of the weights",
    "embedding_smallest_share": "embedding: smallest share",
    "read_out_norm_gamma_mean": "read-out's layer norm: mean scale",
    "attention_entropy": "attention entropy",
}
# panel -> its scale, where that is not nonnegative: scores and gains have either sign, shares and entropies end at 1
OF_BEHAVIOUR = {BEHAVIOUR[name]: "linear" for name in ("id_icl_1_k_figure", "gain_10_icl_over_g_figure")}
OF_STRUCTURE = {STRUCTURE[name]: "fraction" for name in ("embedding_smallest_share", "attention_entropy")} | {
    STRUCTURE["read_out_norm_gamma_mean"]: "linear"
}
LONG = {"long_schedule": "batch 64"}
BATCHES = LONG | {"large_batch": "batch 256"}
OVER_LENGTHS = {"llc_published": "LLC, published", "weight_norm": "norm of the weights"}

MEASURED = {f"measured_{name}": label for name, label in MODELS.items()}

_figure = partial(Figure, limit=math.inf)  # an LLC or a norm above 100 has not diverged
_plane = partial(Plane, paths=curves.plane, x_label="PC1", y_label="PC2", points="hollow: forms", whose=of_first_seed)


def _measured(name: str, title: str, profile: str = "full") -> Figure:
    """The LLC of a model's sampled checkpoints, and its quadratic prediction."""
    runs, shown = f"measured_{name}", curves.beside_curvature(MEASURED)
    return _figure(runs, title, (runs,), shown, STEP, LLC, log_x=True, means=False, by_seed=True, profile=profile, scale="linear")  # fmt: skip


# fmt: off
FIGURES: tuple[AnyFigure, ...] = (
    _measured("linear", "One layer of linear attention: the LLC over training is what the Hessian predicts", profile="quick"),
    _measured("one_task", "One task, 16 channels: the LLC over training, and what the Hessian predicts"),
    _measured("two_tasks", "Two tasks, 16 channels: the LLC over training, and what the Hessian predicts"),
    _measured("few_tasks", "A pool of 4 tasks, 16 channels: the LLC over training, and what the Hessian predicts"),
    _measured("regression", "Infinitely many tasks, 16 channels: the LLC over training, and what the Hessian predicts"),
    _figure("narrow_llc", "One task and two tasks, 16 channels: LLC of usable checkpoints", tuple(NARROW), curves.llc(NARROW, "default", "tight"), STEP, LLC, log_x=True, means=False, by_seed=True, scale="linear"),
    _figure("narrow_published", "At the published setting the LLC is nβ times the fall of the loss over training", ("narrow_two_tasks",), curves.published(NARROW), STEP, LLC, log_x=True, means=False, by_seed=True, scale="linear"),
    _figure("narrow_components", "Two tasks, 16 channels: variance of the trajectory's components", ("narrow_two_tasks",), curves.components(NARROW), "component", "share", scale="fraction"),
    _plane("narrow_plane", "Two tasks, 16 channels: PCA of outputs over training, beside a random walk", ("narrow_two_tasks",)),
    _figure("linear_llc", "One layer of linear attention has one rise; usable checkpoints", ("linear_layer",), curves.together(curves.llc(LINEAR, "default", "tight"), curves.smoothed(LINEAR)), STEP, LLC, log_x=True, means=False, by_seed=True, scale="linear"),
    _figure("unit_llc", "On two tasks the LLC rises and falls, on one less; usable checkpoints", tuple(UNIT), curves.together(curves.llc(UNIT, "default", "tight"), curves.smoothed(UNIT)), STEP, LLC, log_x=True, means=False, by_seed=True, profile="full", scale="linear"),
    _figure("unit_constant", "On two tasks the LLC falls at a constant learning rate too", tuple(CONSTANT), curves.together(curves.llc(CONSTANT, "default"), curves.smoothed(CONSTANT)), STEP, LLC, log_x=True, means=False, by_seed=True, profile="full", scale="linear"),
    _figure("unit_published", "One task and two tasks: LLC at the published setting, and nβ times the loss's fall", ("one_unit_task", "two_unit_tasks"), curves.published(UNIT), STEP, LLC, log_x=True, means=False, by_seed=True, profile="full", scale="linear"),
    _figure("linear_llcs", "Linear attention, each at settings of its own: LLC of usable checkpoints", tuple(LINEAR), curves.llc(LINEAR, "default", "tight"), STEP, LLC, log_x=True, means=False, by_seed=True, profile="full", scale="linear"),
    _figure("regression_llc", "The regression transformer, 70 000 steps: LLC of usable checkpoints", tuple(UNSATURATED), curves.llc(UNSATURATED, "default", "tight"), STEP, LLC, log_x=True, means=False, by_seed=True, profile="full", scale="linear"),
    _figure("regression_published", "The regression transformer, 70 000 steps: LLC at the published setting, and nβ times the loss's fall", tuple(SHORT), curves.published(SHORT), STEP, LLC, log_x=True, means=False, by_seed=True, profile="full", scale="linear"),
    _figure("regression_behaviour", "The regression transformer, 70 000 steps: behaviour", tuple(SHORT), curves.metrics(BEHAVIOUR, SHORT), STEP, "", log_x=True, profile="full", scale=OF_BEHAVIOUR),
    _figure("regression_structure", "The regression transformer, 70 000 steps: structure", tuple(SHORT), curves.metrics(STRUCTURE, SHORT), STEP, "", log_x=True, profile="full", scale=OF_STRUCTURE),
    _figure("regression_components", "The regression transformer, 70 000 steps: variance of the trajectory's components", tuple(SHORT), curves.components(SHORT), "component", "share", profile="full", scale="fraction"),
    _plane("regression_plane", "The regression transformer: PCA of outputs over training, beside a random walk", tuple(SHORT), profile="full"),
    _figure("controls_published", "The regression transformer and its controls: LLC at the published setting, and nβ times the loss's fall", tuple(CONTROLS), curves.published(CONTROLS), STEP, LLC, log_x=True, means=False, by_seed=True, profile="full", scale="linear"),
    _figure("controls_behaviour", "The regression transformer and its controls: behaviour", tuple(CONTROLS), curves.metrics(BEHAVIOUR, CONTROLS), STEP, "", log_x=True, profile="full", scale=OF_BEHAVIOUR),
    _figure("controls_structure", "The regression transformer and its controls: structure", tuple(CONTROLS), curves.metrics(STRUCTURE, CONTROLS), STEP, "", log_x=True, profile="full", scale=OF_STRUCTURE),
    _figure("schedules", "Three lengths of one schedule", ("schedules",), curves.by_length(OVER_LENGTHS), SHARE, "", profile="full", scale={"LLC, published": "linear"}),
    _figure("long_schedule", "500 000 steps: LLC at the published setting", ("long_schedule",), curves.beside_the_papers(LONG), STEP, LLC, log_x=True, means=False, by_seed=True, profile="full", scale="linear"),
    _figure("batches", "500 000 steps, two batch sizes: behaviour", tuple(BATCHES), curves.metrics(BEHAVIOUR, BATCHES), STEP, "", log_x=True, profile="gpu", scale=OF_BEHAVIOUR),
    _figure("pools", "Decoders on pools of M tasks, last third of training", ("pools_of_tasks",), curves.llc_of_tasks("default"), "M", "", log_x=True, profile="full", scale="linear"),
    _figure("pools_over_training", "Decoders on pools of M tasks: LLC of usable checkpoints, and distance to ridge", ("pools_of_tasks",), curves.over_training_by_tasks("default"), STEP, "", log_x=True, means=False, by_seed=True, profile="full", scale={"LLC, default": "linear"}),
)
# fmt: on
