"""The stack of the depth curve: a prediction after every layer, and the roll-out of one layer.

Queries see the context rows alone, and context rows never see a query. Without an embedding the prediction is minus the
label channel, as in `src.transformer`; with one, a layer norm and a linear map that all layers share, so that the map
meets the same statistics whatever layer it reads.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import haiku as hk
import jax.numpy as jnp
from jax import Array, lax

from icl_lab.src.activations import Hook, no_hook
from icl_lab.src.batch import Batch
from icl_lab.src.config import Architecture, EmbeddedModel
from icl_lab.src.model import Model, Params, as_model
from icl_lab.src.queries import tokenise
from icl_lab.src.transformer import ReadOut, clipped, make_blocks


@lru_cache
def make_model(architecture: Architecture[EmbeddedModel], deep_supervision: bool = False) -> Model:
    """The stack whose `forward` gives the predictions [L, B, Q] after every layer; `predict` gives the last ones.

    With deep supervision the loss is the mean over all layers' predictions.
    """
    return as_model(
        lambda tokens, hook: run_stack(tokens, architecture, hook),
        tokenise,
        (architecture.num_rows, architecture.token_width),
        by_layer=True,
        deep_supervision=deep_supervision,
    )


def run_stack(tokens: Array, architecture: Architecture[EmbeddedModel], hook: Hook = no_hook) -> Array:
    """Predictions [L, B, Q] after every layer from tokens [B, R, W]; to be called inside `hk.transform`.

    Without a hook the last layer computes the queries' rows alone.
    """
    model, queries = architecture.model, architecture.num_queries
    if model.d_model > 0:
        tokens = hk.Linear(model.d_model, name="embed")(tokens)
    tokens = hook("embed", None, tokens)
    read_out, blocks = read_out_of(architecture), make_blocks(architecture)
    predictions = []
    for layer, block in enumerate(blocks):
        only_queries = layer == len(blocks) - 1 and hook is no_hook
        num_rows = queries if only_queries else architecture.num_rows
        tokens = clipped(block(tokens, layer, num_rows, hook), model.activation_clip)
        tokens = hook("resid_post", layer, tokens)
        predictions.append(hook("prediction", layer, read_out(tokens[:, -queries:])))
    return jnp.stack(predictions)


def read_out_of(architecture: Architecture[EmbeddedModel]) -> Callable[[Array], Array]:
    """From rows [B, Q, W] to predictions [B, Q]: minus the label channel; of embedded tokens a learned linear map."""
    if architecture.model.d_model == 0:
        return lambda rows: -rows[:, :, architecture.dim]
    return ReadOut(lambda: hk.Linear(1, name="linear"), architecture.model.layer_norm, "read_out")


def roll_out(model: Model, params: Params, batch: Batch, layers: int, damping: float | Array) -> Array:
    """Predictions [L, B, Q] of one trained layer applied L times, only the label channel moving.

    y <- y + damping * (layer(tokens) - tokens)_y; the prediction is minus the queries' label channel. With the
    construction's weights this is gradient descent of step damping * c. Von Oswald et al. 2023, Fig. 1 and 10.
    """
    label, queries = batch.x.shape[-1], batch.x_query.shape[1]

    def step(tokens: Array, _: None) -> tuple[Array, Array]:
        seen: dict[str, Array] = {}

        def keep(name: str, layer: int | None, value: Array) -> Array:
            seen[name] = value
            return value

        model.forward(params, tokens, keep)
        tokens = tokens.at[:, :, label].add(damping * (seen["resid_post"] - tokens)[:, :, label])
        return tokens, -tokens[:, -queries:, label]

    _, predictions = lax.scan(step, tokenise(batch), None, length=layers)
    return predictions
