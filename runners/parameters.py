"""Checks, before a run begins, what it says of its model's parameters: those it starts from and those it trains."""

from __future__ import annotations

from icl_lab.analysis.loaded_run import shapes_of
from icl_lab.families.shared_arrays import arrays_of_model
from icl_lab.families.task import model_of
from icl_lab.runners.static_shape import Run
from icl_lab.src.optimizer import check_trained
from icl_lab.store import checkpoint, rundir
from icl_lab.store.readers import StoreError
from icl_lab.store.weights import Weights, check_shapes


def check_parameters(run: Run, weights: Weights | None) -> None:
    """`ConfigError` for given parameters of other shapes than the model's, and if all or none of its own are trained.

    `StoreError` for a run that has not begun and whose parameters are not given.
    """
    directory, config = run
    if not (config.init_from or config.training.train_only):
        return
    shapes = shapes_of(model_of(config, arrays_of_model(config, directory)))
    if config.training.train_only:
        check_trained(config.training.train_only, shapes)
    if weights is not None:
        check_shapes(weights, shapes, config.name)
    begun = checkpoint.steps(directory) or rundir.read_status(directory) in rundir.FINISHED
    if config.init_from and not begun and (weights is None or weights.source != config.init_from):
        raise StoreError(f"{directory} starts from the parameters {config.init_from}, which --init_from must name")
