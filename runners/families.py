"""What the engine must know of a kind of experiment: one entry for each of `src.config.FAMILIES`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from analysis import task_diversity
from baselines import mlp_gd
from curricula import sequences, sines
from curricula.context import training_batches
from runners import diversity, layerwise, regression, sine
from runners.finish import Wanted
from src import decoder
from src import layerwise as stack
from src.config import RunConfig
from src.train import BatchFn
from src.transformer import Model, make_model


class Family(NamedTuple):
    """A kind of experiment: what is trained, on what, and what is looked at.

    make_model(config) and training_batches(config) depend on the config's static shape alone. prepare(config) gives
    the setting: what the host needs to look at a run of it. look(model, params, setting) gives a record's values, of
    which test_loss is one. finish(run, config, model, params, setting, wanted) writes what a finished run leaves, part
    by part.
    """

    make_model: Callable[[RunConfig], Model]
    training_batches: Callable[[RunConfig], BatchFn]
    prepare: Callable[[RunConfig], Any]
    look: Callable[[Model, Any, Any], Mapping[str, float]]
    finish: Callable[[Path, RunConfig, Model, Any, Any, Wanted], Iterator[None]]


FAMILIES: Mapping[str, Family] = {
    "regression": Family(make_model, training_batches, regression.prepare, regression.look, regression.finish),
    "layerwise": Family(
        stack.make_model, layerwise.training_batches, layerwise.prepare, layerwise.look, layerwise.finish
    ),
    "sine": Family(mlp_gd.make_model, sines.training_batches, sine.prepare, sine.look, sine.finish),
    "diversity": Family(
        decoder.make_model, sequences.training_batches, task_diversity.prepare, task_diversity.look, diversity.finish
    ),
}
