"""Independent references: NumPy, float64, written from the equations and sharing nothing with the library."""

import numpy as np

from icl_lab.src.batch import Batch


def gd_weights(x, y, step_size, steps, start):
    """Weights of `steps` steps of w <- w - c sum_i (w.x_i - y_i) x_i, pair by pair, for one context."""
    w = np.array(start, dtype=float)
    for _ in range(steps):
        gradient = sum((w @ x_i - y_i) * x_i for x_i, y_i in zip(x, y, strict=True))
        w = w - step_size * gradient
    return w


def gd(batch, step_size, steps, start=None):
    """Predictions of `steps` steps of gradient descent for every context of a batch."""
    start = np.zeros_like(batch.x_query) if start is None else start
    weights = [gd_weights(x, y, step_size, steps, w) for x, y, w in zip(batch.x, batch.y, start, strict=True)]
    return np.einsum("bd,bd->b", weights, batch.x_query)


def gd_plus_plus(batch, step_sizes, gammas):
    """Predictions of GD++, token by token: every row moves by its own data, (x, y) <- (x - gamma S x, y - c b.x)."""
    predictions = []
    for x, y, x_query in zip(batch.x, batch.y, batch.x_query, strict=True):
        rows, values = np.vstack([x, x_query]), np.append(y, 0.0)
        for c, gamma in zip(step_sizes, gammas, strict=True):
            scatter, slope = rows[:-1].T @ rows[:-1], rows[:-1].T @ values[:-1]
            rows, values = rows - gamma * rows @ scatter, values - c * rows @ slope
        predictions.append(-values[-1])
    return np.array(predictions)


def random_batch(seed, size=5, pairs=6, dim=4):
    """A float64 batch of standard normal inputs, labels and queries; the labels need no teacher."""
    rng = np.random.default_rng(seed)
    shapes = ((size, pairs, dim), (size, pairs), (size, dim), (size,), (size, dim))
    return Batch(*(rng.normal(size=shape) for shape in shapes))


def softmax(scores):
    """softmax over the last axis."""
    shifted = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return shifted / shifted.sum(axis=-1, keepdims=True)


def factored(merged):
    """Factors of merged matrices W_K^T W_Q and P W_V, [H, W, W] for columns: W_K and P are the identity."""
    num_heads, width, _ = merged["key_query"].shape
    identity = np.eye(width)
    return {
        "query": np.transpose(merged["key_query"], (2, 0, 1)),
        "key": np.repeat(identity[:, None], num_heads, axis=1),
        "value": np.transpose(merged["projection_value"], (2, 0, 1)),
        "projection": np.repeat(identity[None], num_heads, axis=0),
    }


def attention(parameters, kind, rows, context):
    """Multi-head attention with explicit Q, K, V and P, head by head: the update and the weights [B, H, R, N]."""
    if "key_query" in parameters:
        parameters = factored(parameters)
    update, maps = np.zeros_like(rows), []
    num_heads, key_size = parameters["query"].shape[1:]
    for head in range(num_heads):
        q, k, v = (
            tokens @ parameters[name][:, head] + parameters.get(f"{name}_bias", np.zeros((1, num_heads, 1)))[0, head]
            for name, tokens in (("query", rows), ("key", context), ("value", context))
        )
        scores = q @ np.swapaxes(k, 1, 2)
        weights = softmax(scores / np.sqrt(key_size)) if kind == "softmax" else scores
        update = update + weights @ v @ parameters["projection"][head]
        maps.append(weights)
    return update + parameters.get("projection_bias", 0.0), np.stack(maps, axis=1)


def layer_norm(parameters, tokens):
    """(t - mean) / sqrt(var + 1e-5) over the channels, scaled and shifted. Ba et al. 2016."""
    centred = tokens - tokens.mean(axis=-1, keepdims=True)
    spread = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5)
    return centred / spread * parameters["scale"] + parameters["offset"]


def gelu(x):
    """The tanh form of the Gaussian error linear unit. Hendrycks & Gimpel 2016."""
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def prediction_channel(config):
    """The label's channel, behind the input or its last, or the last of a token."""
    if config.model.prediction_channel == "last":
        return -1
    return config.data.dim - 1 if config.model.tokens == "interleaved_shared" else config.data.dim


def stack(params, config, tokens):
    """The whole transformer on tokens [B, R, W]: tokens, attention and prediction after every layer."""
    model, bound = config.model, config.model.activation_clip or np.inf
    history = []
    for layer in range(model.num_layers):
        name = "layer" if model.recurrent else f"layer_{layer}"
        part = {key.removeprefix(f"{name}/"): value for key, value in params.items() if key.startswith(f"{name}/")}
        mlp = params if model.shared_mlp else part
        normed = model.layer_norm and (layer > 0 or model.first_norm)
        seen = layer_norm(part["attention_norm"], tokens) if normed else tokens
        update, maps = attention(part["attention"], model.kind(layer), seen, seen[:, :-1])
        tokens = tokens + model.damping * update
        if model.mlp_width:
            tokens = np.clip(tokens, -bound, bound) if model.clip_before_mlp else tokens
            hidden = layer_norm(part["mlp_norm"], tokens) if model.layer_norm else tokens
            hidden = gelu(hidden @ mlp["mlp_in"]["w"] + mlp["mlp_in"].get("b", 0.0))
            tokens = tokens + model.damping * (hidden @ mlp["mlp_out"]["w"] + mlp["mlp_out"].get("b", 0.0))
        tokens = np.clip(tokens, -bound, bound)
        history.append((tokens, maps, -tokens[:, -1, prediction_channel(config)]))
    return history
