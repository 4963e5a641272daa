"""A run of sines as it trains and at its end: its parameters, analysis batch, functions, figures and summary."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np

from analysis.measures import sine_functions
from analysis.measures.sine_functions import Sines
from configs.identity import config_id
from configs.regression import RegressionConfig
from families.sine import both_read_outs, evaluation_batch
from runners.finish import Wanted, end
from src.batch import Batch
from src.model import Model
from store import layout
from store.atomic import write_npz
from store.params import write_params


def prepare(config: RegressionConfig) -> Batch:
    """What a run is looked at with: its evaluation batch."""
    return evaluation_batch(config)


def look(model: Model, params: Any, batch: Batch) -> dict[str, float]:
    """A moment of a training: the losses after the context and before it."""
    return sine_functions.losses(model, params, batch)


def finish(
    run: Path, config: RegressionConfig, model: Model, params: Any, batch: Batch, wanted: Wanted
) -> Iterator[None]:
    """Writes all that a finished run leaves, ending with the status "done". The same files come from a second call."""
    write_params(run, params, {"config_id": config_id(config), "step": config.training.steps})
    write_npz(run / layout.ANALYSIS_BATCH, jax.tree.map(np.asarray, batch)._asdict())
    before, after = both_read_outs(model, params, batch)
    write_npz(run / layout.PREDICTIONS, {"before": np.asarray(before), "after": np.asarray(after)})
    yield
    subject = Sines(run, config, model, params)
    measured = {"headline": sine_functions.headline(subject), "functions": sine_functions.write(subject)}
    yield
    yield from end(run, config, measured, wanted.figures)
