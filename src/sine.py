"""Sines in context: the data, and the transformer with an embedding and an MLP before its layers.

A task is y = a sin(x + phi). Linear attention on the pairs alone cannot learn it; on what an MLP makes of them one
layer can take a step of gradient descent on the MLP's output weights. Von Oswald et al. 2023, Sec. 4 (Prop. 2, Fig. 4).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

import haiku as hk
import jax
import jax.numpy as jnp
from jax import Array

from icl_lab.src.activations import Hook
from icl_lab.src.batch import Batch
from icl_lab.src.config import Architecture, SineModel
from icl_lab.src.data import concatenated_tokens
from icl_lab.src.data_config import SineData
from icl_lab.src.inputs import sample_inputs
from icl_lab.src.model import Model, Params, as_model
from icl_lab.src.prng import Purpose, purpose_key
from icl_lab.src.transformer import run_stack

EMBEDDING_VARIANCE = 0.05  # over fan-in, at initialisation: inputs reach 5, and embeddings should start at order one

# (embedded tokens [B, R, W], the architecture of what follows, hook) -> predictions [B]; a prediction is minus the last
# channel of the last row, as in `src.transformer`
Layers = Callable[[Array, Architecture[SineModel], Hook], Array]


def sines(x: Array, w: Array) -> Array:
    """Labels a sin(x + phi) of inputs x [B, N, 1], w = (a, phi) [B, 2] -> [B, N]."""
    amplitude, phase = (jnp.broadcast_to(w[:, index, None], x.shape[:2]) for index in (0, 1))
    return amplitude * jnp.sin(x[:, :, 0] + phase)


def sample_sines(key: Array, data: SineData, batch_size: int) -> Batch:
    """B fresh tasks: a ~ U(amplitude_low, amplitude_high), phi ~ U(0, pi), no noise, inputs as elsewhere.

    w [B, 2] holds amplitude and phase; a tied phase is the amplitude's place in its range, times pi. The same (key,
    data, batch_size) gives the same batch. Von Oswald et al. 2023, App. A.8; amplitudes as in the published code.
    """
    unit = jax.random.uniform(purpose_key(key, Purpose.TASK), (batch_size, 2))
    amplitude = data.amplitude_low + (data.amplitude_high - data.amplitude_low) * unit[:, 0]
    phase = math.pi * unit[:, 0 if data.tied_phase else 1]
    w = jnp.stack([amplitude, phase], axis=1)
    x = sample_inputs(purpose_key(key, Purpose.INPUT), data, (batch_size, data.num_pairs, 1))
    x_query = sample_inputs(purpose_key(key, Purpose.QUERY), data, (batch_size, 1))
    return Batch(x, sines(x, w), x_query, sines(x_query[:, None], w)[:, 0], w)


@lru_cache
def make_model(architecture: Architecture[SineModel], layers: Layers = run_stack) -> Model:
    """An embedding, an MLP and these layers: always the same model for equal arguments."""
    model = architecture.model
    inner = replace(architecture, dim=model.d_model - 1, model=replace(model, mlp_width=0))

    def stack(tokens: Array, hook: Hook) -> Array:
        return layers(embed(tokens, model), inner, hook)

    return as_model(stack, concatenated_tokens, (architecture.num_rows, architecture.token_width))


def embed(tokens: Array, model: SineModel) -> Array:
    """Embedded tokens [B, R, W] of tokens (x, y) [B, R, 2], W = `d_model`; to be called inside `hk.transform`.

    Of inputs, as in Prop. 2: (m(x), y - w_0.m(x)), the features and the label's residual from the initial function.
    Of pairs, as in the published code: m(x, y), whose last channel serves as that label.
    """
    if model.embedded == "pairs":
        return _features(tokens, model.d_model, model)
    features = _features(tokens[..., :1], model.d_model - 1, model)
    initial = hk.Linear(1, with_bias=False, w_init=jnp.zeros, name="initial")(features)
    return jnp.concatenate([features, tokens[..., 1:] - initial], axis=-1)


def _features(values: Array, size: int, model: SineModel) -> Array:
    """m = h + MLP(h) of h, a linear map of the values to `size` channels; h alone if the MLP has no width."""
    init = hk.initializers.VarianceScaling(EMBEDDING_VARIANCE, "fan_in", "truncated_normal")
    embedded: Array = hk.Linear(size, with_bias=False, w_init=init, name="embedding")(values)
    if model.mlp_width == 0:
        return embedded
    hidden = jax.nn.gelu(hk.Linear(model.mlp_width, model.mlp_bias, name="mlp_in")(embedded))
    return embedded + hk.Linear(size, model.mlp_bias, name="mlp_out")(hidden)


def read_outs(model: Model, params: Params, batch: Batch) -> tuple[Array, Array]:
    """The predictions before the layers, [B], and after them, [B]: the initial function and the updated one."""
    before: list[Array] = []

    def look(name: str, layer: int | None, value: Array) -> Array:
        if name == "embed":
            before.append(-value[:, -1, -1])
        return value

    model.forward(params, concatenated_tokens(batch), look)
    return before[0], model.predict(params, batch)
