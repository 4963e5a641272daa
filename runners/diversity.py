"""A run of the family diversity at its end: parameters, sequences, what all predictors make of these, a summary."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np

from analysis.measures.task_diversity import Decoder, headline
from configs.identity import config_id
from configs.regression import RegressionConfig
from families.diversity import Setting, predictions_of
from runners.finish import Wanted, end
from src.model import Model
from store import layout
from store.atomic import write_npz
from store.params import write_params


def finish(
    run: Path, config: RegressionConfig, model: Model, params: Any, setting: Setting, wanted: Wanted
) -> Iterator[None]:
    """Writes all that a finished run leaves, ending with the status "done". The same files come from a second call."""
    write_params(run, params, {"config_id": config_id(config), "step": config.training.steps})
    for name, held in zip((layout.ANALYSIS_BATCH, layout.LATENT_BATCH), setting, strict=True):
        write_npz(run / name, jax.tree.map(np.asarray, held.batch)._asdict())
    predictions = {
        f"{prefix}_{name}": values.astype(np.float32)
        for prefix, held in zip(("id", "ood"), setting, strict=True)
        for name, values in {"tf": predictions_of(model, params, held.batch), **held.references}.items()
    }
    write_npz(run / layout.PREDICTIONS, predictions)
    yield
    measured = {"headline": headline(Decoder(run, config, model, params))}
    yield
    yield from end(run, config, measured, wanted.figures)
