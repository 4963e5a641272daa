"""A model as pure functions of its parameters, and how one is made of a Haiku function from tokens to predictions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import haiku as hk
import jax.numpy as jnp
from jax import Array

from icl_lab.src.activations import Hook, Only, no_hook
from icl_lab.src.losses import LOSSES, OF_A_NUMBER

Params = Mapping[str, Mapping[str, Any]]  # module -> name -> array, JAX's or NumPy's
Batch = Any  # any pytree of arrays with a leading axis of tasks


class Trace(NamedTuple):
    """What one forward pass did.

    layer_predictions [L, B, ...] after each layer (the last is the prediction); attention, one [B, H, R, N] a layer;
    tokens, one [B, R, W] after each layer.
    """

    layer_predictions: Array
    attention: tuple[Array, ...]
    tokens: tuple[Array, ...]


def untraced(*_: Any) -> Any:
    """The trace, watch and forward of a model without hooks: raises `NotImplementedError`."""
    raise NotImplementedError("this model has no hooks, so its activations can be neither read nor replaced")


class Model(NamedTuple):
    """A model as pure functions of params and a batch of B tasks.

    init(key) -> params; predict(params, batch) -> predictions [B, ...]; losses(params, batch) -> [B], one a task: what
    training, samplers of the posterior and Hessians use. watch(params, batch, hook) -> predictions shows the hook every
    activation (`src.activations`), forward(params, tokens, hook) the same from tokens; trace(params, batch) -> Trace.
    decayed(params) -> a tree of booleans: the parameters that weight decay applies to, if not all. mean_loss(params,
    batch) is the mean loss where it is taken over all predictions at once and not over tasks, which rounds differently.
    null_losses(batch) -> [B]: those of a predictor that ignores the context, by which `analysis.llc` measures
    saturation. alone_without_vmap: a run alone is trained without an axis of runs, which for decoders is faster and for
    other models slower. Code that replaces losses must replace mean_loss and null_losses too.
    """

    init: Callable[[Array], Params]
    predict: Callable[[Params, Batch], Array]
    losses: Callable[[Params, Batch], Array]
    trace: Callable[[Params, Batch], Trace] = untraced
    watch: Callable[[Params, Batch, Hook], Array] = untraced
    forward: Callable[[Params, Array, Hook], Array] = untraced
    decayed: Callable[[Params], Any] | None = None
    mean_loss: Callable[[Params, Batch], Array] | None = None
    null_losses: Callable[[Batch], Array] | None = None
    alone_without_vmap: bool = False

    def loss(self, params: Params, batch: Batch) -> Array:
        """The mean of the losses: what training minimises."""
        return jnp.mean(self.losses(params, batch)) if self.mean_loss is None else self.mean_loss(params, batch)


def as_model(
    stack: Callable[[Array, Hook], Array],
    tokenise: Callable[[Batch], Array],
    tokens_of_a_task: tuple[int, ...],
    loss: str = "half_squared_error",
    by_layer: bool = False,
    deep_supervision: bool = False,
    decayed: Callable[[Params], Any] | None = None,
) -> Model:
    """The model of a Haiku function from tokens [B, R, W] and a hook to predictions, on a loss of `src.losses.LOSSES`.

    The predictions are of the batch's y_query, of whatever shape; `by_layer`, the function gives those of all layers
    [L, ...], of which the last are the model's, and the loss is theirs or with `deep_supervision` the mean over layers.
    The function shows its hook its activations, "attn.pattern", "resid_post" and "prediction" of each layer among them.
    """
    transformed: Any = hk.without_apply_rng(hk.transform(stack))

    def init(key: Array) -> Params:
        params: Params = transformed.init(key, jnp.zeros((1, *tokens_of_a_task)), no_hook)
        return params

    def forward(params: Params, tokens: Array, hook: Hook) -> Array:
        predictions: Array = transformed.apply(params, tokens, hook)
        return predictions

    def supervised(params: Params, batch: Batch) -> Array:
        predictions = forward(params, tokenise(batch), no_hook)
        return predictions[-1] if by_layer and not deep_supervision else predictions

    def watch(params: Params, batch: Batch, hook: Hook) -> Array:
        predictions = forward(params, tokenise(batch), hook)
        watched: Array = hook("prediction", None, predictions[-1] if by_layer else predictions)
        return watched

    def predict(params: Params, batch: Batch) -> Array:
        return watch(params, batch, no_hook)

    def losses(params: Params, batch: Batch) -> Array:
        errors = LOSSES[loss](supervised(params, batch), batch.y_query)
        tasks = int(deep_supervision)  # the axis of tasks: behind that of layers
        return jnp.mean(errors, axis=tuple(axis for axis in range(errors.ndim) if axis != tasks))

    def mean_loss(params: Params, batch: Batch) -> Array:
        return jnp.mean(LOSSES[loss](supervised(params, batch), batch.y_query))

    return Model(init, predict, losses, tracing(watch), watch, forward, decayed, mean_loss, losses_of_zero(loss))


def tracing(watch: Callable[[Params, Batch, Hook], Array]) -> Callable[[Params, Batch], Trace]:
    """The trace of a pass that shows its activations."""

    def trace(params: Params, batch: Batch) -> Trace:
        seen: dict[str, list[Array]] = defaultdict(list)

        def collect(name: str, layer: int | None, value: Array) -> Array:
            if layer is not None:
                seen[name].append(value)
            return value

        watch(params, batch, Only(("attn.pattern", "resid_post", "prediction"), collect))
        return Trace(jnp.stack(seen["prediction"]), tuple(seen["attn.pattern"]), tuple(seen["resid_post"]))

    return trace


def losses_of_zero(loss: str) -> Callable[[Batch], Array] | None:
    """The losses [B] of predicting zero, which ignores the context; as a logit, zero is probability 1/2.

    None for a loss of several logits: their number is not the batch's to say.
    """
    if loss not in OF_A_NUMBER:
        return None

    def losses(batch: Batch) -> Array:
        errors = LOSSES[loss](jnp.zeros_like(batch.y_query), batch.y_query)
        return jnp.mean(errors, axis=tuple(range(1, errors.ndim)))

    return losses
