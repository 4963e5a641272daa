"""The sine model before and after the context: its losses, and its functions for one fixed sine."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from icl_lab.analysis.loaded_run import LoadedRun
from icl_lab.families.sine.task import both_read_outs
from icl_lab.src import loss_conventions
from icl_lab.src.batch import Batch
from icl_lab.src.data_config import SineData
from icl_lab.src.inputs import sample_inputs
from icl_lab.src.losses import half_mse
from icl_lab.src.prng import key as make_key
from icl_lab.src.sine import sines
from icl_lab.store import layout
from icl_lab.store.atomic import write_csv, write_json

AMPLITUDE, PHASE = 0.4, np.pi / 4  # of the sine whose functions are shown
CONTEXT_SEED = 0  # of its context, the same for all runs
QUERIES = 100
COLUMNS = ("x", "target", "before", "after")


def fixed_sine(data: SineData) -> Batch:
    """One sine and one context, asked at `QUERIES` inputs over the whole range: a batch of as many tasks."""
    half = data.input_range / 2
    context = sample_inputs(make_key(CONTEXT_SEED), data, (1, data.num_pairs, 1))
    x = jnp.broadcast_to(context, (QUERIES, data.num_pairs, 1))
    w = jnp.broadcast_to(jnp.array([[AMPLITUDE, PHASE]]), (QUERIES, 2))
    x_query = jnp.linspace(-half, half, QUERIES)[:, None]
    return Batch(x, sines(x, w), x_query, sines(x_query[:, None], w)[:, 0], w)


def functions(loaded: LoadedRun) -> dict[str, np.ndarray]:
    """The fixed sine's inputs and targets, and the read-outs there before and after its context, each [QUERIES]."""
    batch = fixed_sine(loaded.config.data)
    before, after = both_read_outs(loaded.model, loaded.params, batch)
    arrays = (batch.x_query[:, 0], batch.y_query, before, after)
    return {name: np.asarray(array) for name, array in zip(COLUMNS, arrays, strict=True)}


def facts(data: SineData) -> dict[str, Any]:
    """The fixed sine and its context, in numbers."""
    batch = fixed_sine(data)
    context = {"context_x": np.asarray(batch.x[0, :, 0]).tolist(), "context_y": np.asarray(batch.y[0]).tolist()}
    return {"amplitude": AMPLITUDE, "phase": PHASE, **context}


def write(loaded: LoadedRun) -> dict[str, float]:
    """Writes sine_functions.csv and .json, and gives the losses of the two functions on the grid."""
    columns = functions(loaded)
    on_grid = {f"{name}_loss": float(half_mse(columns[name], columns["target"])) for name in ("before", "after")}
    write_csv(loaded.run / layout.SINE_FUNCTIONS, rows(columns))
    about = facts(loaded.config.data) | on_grid | {"loss_convention": loss_conventions.LOSS_AND_MSE}
    write_json(loaded.run / layout.SINE_FUNCTIONS_FACTS, about)
    return on_grid


def rows(columns: dict[str, np.ndarray]) -> list[dict[str, float]]:
    """Columns as the rows of a table."""
    return [dict(zip(columns, map(float, values), strict=True)) for values in zip(*columns.values(), strict=True)]
