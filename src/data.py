"""Contexts of pairs, where they come from, and how they become tokens.

A `Batch` holds pairs, so whatever acts on a context (noise, ordering, placement) means the same for every tokenisation
and never separates an input from its label. Tokenising is the last step. In every token the input comes first, then the
label, then the positional encoding: the label's channel is number D, or number D - 1 where it is one of the input's.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from icl_lab.src.batch import Batch
from icl_lab.src.config import ModelConfig
from icl_lab.src.covariance import Covariance, orthonormal, sample_covariance
from icl_lab.src.data_config import DataConfig
from icl_lab.src.inputs import sample_inputs
from icl_lab.src.prng import Purpose, purpose_key
from icl_lab.src.tasks import TASK_DISTRIBUTIONS


def labels(x: Array, w: Array) -> Array:
    """Noiseless labels w.x: x [B, N, D], w [B, D] -> [B, N]."""
    return jnp.einsum("bnd,bd->bn", x, w)


def query_labels(x_query: Array, w: Array) -> Array:
    """Noiseless labels w.x: x_query [B, D], w [B, D] -> [B]."""
    return jnp.einsum("bd,bd->b", x_query, w)


def sample_batch(key: Array, data: DataConfig, batch_size: int) -> Batch:
    """B fresh tasks, their inputs and their labels, as `DataConfig` says.

    By default w ~ N(0, weight_scale^2 I), x from the input distribution and y = w.x + noise_std * N(0, 1). The same
    (key, data, batch_size) gives the same batch. Von Oswald et al. 2023, Sec. 2 and App. A.1.
    """
    data.check_drawn("a context that is drawn")
    size, pairs, dim = batch_size, data.num_pairs, data.dim
    w = _sample_tasks(purpose_key(key, Purpose.TASK), data, size)
    x = sample_inputs(purpose_key(key, Purpose.INPUT), data, (size, pairs, dim))
    x_query = sample_inputs(purpose_key(key, Purpose.QUERY), data, (size, dim))
    if data.exact_covariance:
        x = orthonormal(x) * (pairs * data.coordinate_variance) ** 0.5
    if not (data.equal_inputs and data.task_covariance == "isotropic"):
        x, x_query, w = _with_covariance(sample_covariance(key, data, size), data, x, x_query, w)
    return _label(key, data, x, x_query, w + data.task_mean if data.task_mean else w)


TASK_POWERS = {"isotropic": 0.0, "inputs": 0.5, "inverse": -0.5}  # of the inputs' covariance, in tasks


def _sample_tasks(key: Array, data: DataConfig, size: int) -> Array:
    """Tasks [B, D] of the task distribution, scaled."""
    if data.task_distribution == "gaussian":
        return data.weight_scale * jax.random.normal(key, (size, data.dim))
    draw = TASK_DISTRIBUTIONS[data.task_distribution]
    numbers = jnp.arange(size, dtype=jnp.uint32)
    return data.weight_scale * jax.vmap(lambda number: draw(jax.random.fold_in(key, number), data.dim))(numbers)


def _with_covariance(
    covariance: Covariance, data: DataConfig, x: Array, x_query: Array, w: Array
) -> tuple[Array, Array, Array]:
    """Inputs, query and task with the covariances of their contexts; what is isotropic stays."""
    x = covariance.times_power(0.5, x)
    if data.query_covariance == "inputs":
        x_query = covariance.times_power(0.5, x_query)
    if data.task_covariance != "isotropic":
        w = covariance.times_power(TASK_POWERS[data.task_covariance], w)
    return x, x_query, w


TEACHERS = {"linear": lambda score: score, "relu": jax.nn.relu, "tanh": jnp.tanh}  # of w.x


def _label(key: Array, data: DataConfig, x: Array, x_query: Array, w: Array) -> Batch:
    """Labels of a task's inputs, with observation noise and distractors."""
    size, pairs = x.shape[:2]
    teacher = TEACHERS[data.teacher]
    y, y_query = teacher(labels(x, w)), teacher(query_labels(x_query, w))
    if data.noise_std > 0:
        noise = data.noise_std * jax.random.normal(purpose_key(key, Purpose.OBSERVATION), (size, pairs + 1))
        y, y_query = y + noise[:, :-1], y_query + noise[:, -1]
    if data.num_distractors > 0:
        values = jax.random.normal(purpose_key(key, Purpose.DISTRACTOR), (size, pairs))
        places = jax.random.uniform(purpose_key(key, Purpose.DISTRACTOR_PLACE), (size, pairs))
        y = jnp.where(jnp.argsort(places, axis=1) < data.num_distractors, values, y)  # a random permutation's first
    return Batch(x, y, x_query, y_query, w)


def sample_other_batch(key: Array, data: DataConfig, batch_size: int, alpha: float = 1.0) -> Batch:
    """Tasks of another input distribution: exponential, normal or Laplace, each with probability 1/3 per task.

    A task's inputs are divided by the Frobenius norm of its context and multiplied by alpha; the query takes the same
    factor. Von Oswald et al. 2023, App. A.5 (published code). alpha = 1 is about a third of the training norm.
    """
    data.check_drawn("a context of another distribution")
    shape = (batch_size, data.num_pairs + 1, data.dim)
    input_key = purpose_key(key, Purpose.INPUT)
    exponential, normal, laplace = (
        draw(jax.random.fold_in(input_key, index), shape)
        for index, draw in enumerate((jax.random.exponential, jax.random.normal, jax.random.laplace))
    )
    kind = jax.random.randint(purpose_key(key, Purpose.INPUT_DISTRIBUTION), (batch_size, 1, 1), 0, 3)
    kind = jnp.broadcast_to(kind, shape)
    x = jnp.where(kind == 0, exponential, jnp.where(kind == 1, normal, laplace))
    norm = jnp.sqrt(jnp.sum(x[:, :-1] ** 2, axis=(1, 2), keepdims=True))
    x = alpha * x / jnp.broadcast_to(norm, shape)
    w = data.weight_scale * jax.random.normal(purpose_key(key, Purpose.TASK), (batch_size, data.dim))
    return _label(key, data, x[:, :-1], x[:, -1], w)


def scale_inputs(batch: Batch, alpha: float) -> Batch:
    """Inputs times alpha; the labels stay as they were, so the teacher shrinks by alpha."""
    return batch._replace(x=alpha * batch.x, x_query=alpha * batch.x_query)


def take_pairs(batch: Batch, index: Array) -> Batch:
    """The context's pairs in another order: position i holds pair index[b, i]. The query stays."""
    return batch._replace(
        x=jnp.take_along_axis(batch.x, index[:, :, None], axis=1),
        y=jnp.take_along_axis(batch.y, index, axis=1),
    )


def positional_encoding(num_rows: int, size: int) -> np.ndarray:
    """Sinusoidal positional encodings [R, size]: sin(r / 10000^(2i/size)) in the first half, the cosines in the second.

    Vaswani et al. 2017, Sec. 3.5; concatenated to the token, not added (von Oswald et al. 2023, App. A.1).
    """
    angle = np.arange(num_rows)[:, None] / 10_000 ** (2 * np.arange(size // 2)[None, :] / max(size, 1))
    return np.concatenate([np.sin(angle), np.cos(angle)], axis=1)


def concatenated_tokens(batch: Batch) -> Array:
    """Rows (x_1, y_1), ..., (x_N, y_N), (x_query, 0): [B, N + 1, D + 1]."""
    context = jnp.concatenate([batch.x, batch.y[:, :, None]], axis=2)
    query = jnp.pad(batch.x_query, ((0, 0), (0, 1)))
    return jnp.concatenate([context, query[:, None, :]], axis=1)


def interleaved_tokens(batch: Batch) -> Array:
    """Rows (x_1, 0), (0, y_1), ..., (x_N, 0), (0, y_N), (x_query, 0): [B, 2N + 1, D + 1]."""
    return interleaved_shared_tokens(
        batch._replace(x=jnp.pad(batch.x, ((0, 0), (0, 0), (0, 1))), x_query=jnp.pad(batch.x_query, ((0, 0), (0, 1))))
    )


def interleaved_shared_tokens(batch: Batch) -> Array:
    """Rows x_1, (0, ..., 0, y_1), ..., x_N, (0, ..., 0, y_N), x_query: [B, 2N + 1, D]; y is where x_D is.

    Von Oswald et al. 2023, Sec. 5 (published code).
    """
    size, pairs, dim = batch.x.shape
    outputs = jnp.pad(batch.y[:, :, None], ((0, 0), (0, 0), (dim - 1, 0)))
    context = jnp.stack([batch.x, outputs], axis=2).reshape(size, 2 * pairs, dim)
    return jnp.concatenate([context, batch.x_query[:, None, :]], axis=1)


TOKENISERS = {
    "concatenated": concatenated_tokens,
    "interleaved": interleaved_tokens,
    "interleaved_shared": interleaved_shared_tokens,
}


def tokenise(batch: Batch, model: ModelConfig) -> Array:
    """Tokens [B, R, W] of a batch, the positional encoding last. The last row is the query's; y_query is in none."""
    tokens = TOKENISERS[model.tokens](batch)
    if model.pos_enc_size == 0:
        return tokens
    size, rows, _ = tokens.shape
    encoding = jnp.asarray(positional_encoding(rows, model.pos_enc_size), tokens.dtype)
    return jnp.concatenate([tokens, jnp.broadcast_to(encoding[None], (size, *encoding.shape))], axis=2)
