"""Models in the units of their data: what they see is standardised, what they predict is taken back.

A model that is trained on standardised pairs takes batches, and gives predictions, in the data's own units. Its losses,
which training minimises, are those of standardised labels: the data's are `loss_unit` times as large.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from icl_lab.src.activations import Hook, no_hook
from icl_lab.src.batch import Batch
from icl_lab.src.data_config import FileData
from icl_lab.src.model import Model, Params, Trace


class Units(NamedTuple):
    """A model sees (x - x_mean) / x_scale, channel by channel, and (y - y_mean) / y_scale."""

    x_mean: tuple[float, ...]
    x_scale: tuple[float, ...]
    y_mean: float
    y_scale: float

    def loss_unit(self, degree: int = 2) -> float:
        """The loss of labels that differ by y_scale, over that of labels that differ by 1: of degree 2, if squared."""
        return self.y_scale**degree


def units_of(data: FileData) -> Units | None:
    """The units of standardised data; None where a model sees the data as they are."""
    return Units(data.x_mean, data.x_scale, data.y_mean, data.y_scale) if data.standardize else None


def standardised(batch: Batch, units: Units | None) -> Batch:
    """What a model of such units sees of a batch: the batch itself without any."""
    if units is None:
        return batch

    def inputs(x: Array) -> Array:
        shape = (1,) * (x.ndim - 1) + (-1,)
        mean, scale = (jnp.asarray(part, x.dtype).reshape(shape) for part in (units.x_mean, units.x_scale))
        return (x - mean) / scale

    def labels(y: Array) -> Array:
        return (y - units.y_mean) / units.y_scale

    x, y, x_query, y_query = (jnp.asarray(part) for part in batch[:4])
    return Batch(inputs(x), labels(y), inputs(x_query), labels(y_query), batch.w)


def taken_back(predictions: Array, units: Units) -> Array:
    """Predictions of standardised labels in the data's units."""
    return units.y_mean + units.y_scale * predictions


@lru_cache
def predictor_in_units(predict: Callable[..., Array], units: Units) -> Callable[..., Array]:
    """A predictor (.., batch) of standardised pairs, in the data's units: always the same one for equal arguments."""

    def predicted(*first: object) -> Array:
        *arguments, batch = first
        return taken_back(predict(*arguments, standardised(batch, units)), units)  # type: ignore[arg-type]

    return predicted


@lru_cache
def in_units(model: Model, units: Units | None) -> Model:
    """A model of standardised pairs in the data's units; `forward` takes tokens of standardised pairs, as before."""
    if units is None:
        return model

    def losses(params: Params, batch: Batch) -> Array:
        return model.losses(params, standardised(batch, units))

    def mean_loss(params: Params, batch: Batch) -> Array:
        return model.loss(params, standardised(batch, units))

    def null_losses(batch: Batch) -> Array:
        assert model.null_losses is not None
        return model.null_losses(standardised(batch, units))

    def trace(params: Params, batch: Batch) -> Trace:
        seen = model.trace(params, standardised(batch, units))
        return seen._replace(layer_predictions=taken_back(seen.layer_predictions, units))

    def watch(params: Params, batch: Batch, hook: Hook) -> Array:
        def in_data_units(name: str, layer: int | None, value: Array) -> Array:
            if name != "prediction":
                return hook(name, layer, value)
            return (hook(name, layer, taken_back(value, units)) - units.y_mean) / units.y_scale

        inner = no_hook if hook is no_hook else in_data_units
        return taken_back(model.watch(params, standardised(batch, units), inner), units)

    return model._replace(
        predict=predictor_in_units(model.predict, units),
        losses=losses,
        mean_loss=mean_loss,
        trace=trace,
        watch=watch,
        null_losses=None if model.null_losses is None else null_losses,
    )
