"""What is probed of a run: its contexts, and its activations at rows of tokens as features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from icl_lab.analysis.loaded_run import LoadedRun
from icl_lab.analysis.probes.targets import Contexts, predicts_every_pair
from icl_lab.baselines.step_size_search import search_step_size
from icl_lab.families.regression.config import RegressionConfig
from icl_lab.families.regression.task import evaluation_context, find_gd
from icl_lab.families.shared_arrays import shared_with
from icl_lab.families.task import task_of
from icl_lab.src import patching
from icl_lab.src.activations import POSITION, axes_of
from icl_lab.src.batch import Batch
from icl_lab.src.data_config import FileData
from icl_lab.src.model import Model, Params
from icl_lab.src.units import Units, standardised, units_of

CHUNK = 256  # contexts whose activations are computed at a time


def has_pairs(config: Any) -> bool:
    """Whether the contexts of a run are pairs."""
    return {"x", "y", "x_query", "y_query", "w"} <= set(config.batch_shapes())


def units_in(config: Any) -> Units | None:
    """The units that a run's model sees its pairs in, if they are not the data's."""
    return units_of(config.data) if isinstance(config.data, FileData) else None


def contexts_of(loaded: LoadedRun, tasks: int | None, eta: float | None) -> tuple[Any, Contexts | None]:
    """The evaluation batch, or so many contexts drawn as it is: as the model's batch, and as targets see them.

    The second is None where contexts are no pairs. Its step size is `eta`, or that of the run's gradient descent.
    """
    config = loaded.config if tasks is None else replace(loaded.config, eval_tasks=tasks)
    corrupted = None
    if isinstance(config, RegressionConfig):
        context = evaluation_context(config)
        batch, hit = context.batch, np.asarray(context.hit)
        corrupted = hit if hit.any() else None
    elif tasks is None:
        batch = loaded.batch
    else:
        batch = task_of(config).make_eval_set(config, shared_with(config, loaded.run)).batch
    if not has_pairs(config):
        return batch, None
    seen = standardised(batch, units_in(config))
    return batch, Contexts(seen, _step_size(config, seen) if eta is None else eta, corrupted)


def _step_size(config: Any, batch: Batch) -> float:
    """That of a run's gradient descent; of another family's, of least loss on these contexts in as many steps."""
    if isinstance(config, RegressionConfig):
        return float(find_gd(config).step_size)
    if batch.x_query.ndim == 3:
        pairs = batch.x.shape[1] - int(predicts_every_pair(batch))
        x_query, y_query = batch.x_query[:, -1], batch.y_query[:, -1]
        batch = Batch(batch.x[:, :pairs], batch.y[:, :pairs], x_query, y_query, batch.w)
    return search_step_size(batch, config.model.num_layers)


def layers_below(at: str, depth: int) -> int:
    """How many of the layers have done their work where an activation is seen, its own among them."""
    if not at.startswith("blocks."):
        return depth if at == "prediction" else 0
    _, layer, name = at.split(".", 2)
    return int(layer) + (name != "resid_pre")


def features_at(
    model: Model, params: Params, batch: Any, names: tuple[str, ...], rows: Sequence[int]
) -> dict[str, np.ndarray]:
    """Activations by address, in float64: [P, B, F] at rows [P], or [1, B, F] of those that have no rows."""
    contexts, where = len(jax.tree.leaves(batch)[0]), np.asarray(rows)
    pieces = (jax.tree.map(lambda leaf, at=at: leaf[at : at + CHUNK], batch) for at in range(0, contexts, CHUNK))
    found = [jax.device_get(_features(model, params, piece, names, where)) for piece in pieces]
    return {at: np.concatenate([part[at] for part in found], axis=1).astype(np.float64) for at in names}


@partial(jax.jit, static_argnums=(0, 3))
def _features(model: Model, params: Params, batch: Any, names: tuple[str, ...], rows: Array) -> dict[str, Array]:
    def flat(at: str, value: Array) -> Array:
        axes = axes_of(at)
        if POSITION not in axes:
            return value.reshape(1, len(value), -1)
        place = axes.index(POSITION)
        taken = jnp.moveaxis(jnp.take(value, rows, axis=place), place, 0)
        return taken.reshape(*taken.shape[:2], -1)

    return {at: flat(at, value) for at, value in patching.capture(model, params, batch, names).items()}
