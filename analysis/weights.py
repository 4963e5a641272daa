"""Weight products W_K^T W_Q and P W_V of linear layers: compared with the construction of gradient descent and with
theoretical preconditioners, interpolated with the construction, and rolled out.

Only the products matter, and in a linear layer a scale can move between the two, so both are shown with it moved to
where the construction has it: W_K^T W_Q is divided by beta, the mean of its first D diagonal entries, and P W_V
multiplied. Softmax layers have no such freedom and are shown as they are.

The midpoint of trained weights and the construction is as good if both are the same algorithm (von Oswald et al. 2023,
Sec. 3 and App. A.3). It needs what the construction needs; layers with untied weights can be permuted and rotated, so
their midpoint means nothing.

Rolled out, one trained layer is applied K times, as gradient descent repeats its step; only labels are updated:
e_y <- e_y + damping * attention, of every row; the prediction after k applications is minus the query's label. Damped
gradient descent with the same damping is what one layer of the construction gives (Fig. 1 and App. A.7: undamped, the
errors of some tasks grow). Activations are not clipped here. A layer is its two products, as trained or as constructed,
and all rows' updates tell which tasks are unstable; `src.layerwise.roll_out` rolls out a model, for its predictions
alone, and sums in another order, so results differ by rounding.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.tree_util import Partial

from icl_lab.analysis.loaded_run import ComparedRun, LoadedRun
from icl_lab.baselines.construction import gd_params
from icl_lab.families.regression.config import RegressionConfig
from icl_lab.src.attn import merged_of
from icl_lab.src.batch import Batch
from icl_lab.src.checks import ConfigError, require, same_shape
from icl_lab.store import layout
from icl_lab.store.atomic import write_npz

SMALLEST_SCALE = 1e-6  # below it there is no scale to move


def products(config: Any, params: dict[str, dict[str, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """W_K^T W_Q and P W_V, each [L, H, W, W], for column vectors as in the paper (biases left out).

    Recurrent layers share their weights, so they are one.
    """
    parts = [merged_of(params[f"{name}/attention"]) for name in config.model.layer_names]
    return np.stack([part["key_query"] for part in parts]), np.stack([part["projection_value"] for part in parts])


def rescale(kq: np.ndarray, pv: np.ndarray, dim: int) -> tuple[np.ndarray, np.ndarray]:
    """The products with beta, the mean of the first D diagonal entries of W_K^T W_Q, moved from one to the other."""
    beta = np.diagonal(kq, axis1=-2, axis2=-1)[..., :dim].mean(axis=-1)[..., None, None]
    beta = np.where(np.abs(beta) < SMALLEST_SCALE, 1.0, beta)
    return kq / beta, pv * beta


def write(loaded: ComparedRun) -> None:
    """Writes weights.npz: the products as trained and rescaled, and the construction's (empty where there is none)."""
    config = loaded.config
    kq, pv = products(config, loaded.params)
    linear = np.array([config.model.kind(layer) == "linear" for layer in range(len(kq))])
    arrays = {"kq": kq, "pv": pv}
    for name, product, scaled in zip(("kq", "pv"), (kq, pv), rescale(kq, pv, config.data.dim), strict=True):
        arrays[f"rescaled_{name}"] = np.where(linear[:, None, None, None], scaled, product)
    arrays["construction_kq"], arrays["construction_pv"] = construction(config, float(loaded.gd.step_size))
    write_npz(loaded.run / layout.WEIGHTS, arrays)


def construction(config: Any, step_size: float) -> tuple[np.ndarray, np.ndarray]:
    """The products of the construction, or empty arrays where it is not defined."""
    try:
        return products(config, gd_params(config.architecture, step_size))
    except ConfigError:
        return np.empty(0), np.empty(0)


def learnt_preconditioners(config: Any, params: dict[str, dict[str, np.ndarray]]) -> np.ndarray:
    """The input blocks [L, H, D, D] of W_K^T W_Q, transposed: x_i^T A x_query is key times query."""
    kq, _ = products(config, params)
    dim = config.data.dim
    return np.asarray(kq[:, :, :dim, :dim])


def relative_distance(matrix: np.ndarray, target: np.ndarray) -> float:
    """min_c |c matrix - target| / |target| in the Frobenius norm; 1 for a matrix of zeros or one orthogonal to it."""
    same_shape(matrix=matrix, target=target)
    norm = float(np.sum(matrix * matrix))
    if norm == 0:
        return 1.0
    c = float(np.sum(matrix * target)) / norm
    return float(np.linalg.norm(c * matrix - target) / np.linalg.norm(target))


def params_of_products(config: RegressionConfig, kq: np.ndarray, pv: np.ndarray) -> dict[str, dict[str, np.ndarray]]:
    """Parameters of one head whose products are these, [L, 1, W, W]: W_Q and W_V are the identity."""
    if config.model.merged:
        return {
            f"{name}/attention": {
                "key_query": kq[layer].astype(np.float32),
                "projection_value": pv[layer].astype(np.float32),
            }
            for layer, name in enumerate(config.model.layer_names)
        }
    identity = np.eye(config.architecture.token_width, dtype=np.float32)[:, None, :]
    return {
        f"{name}/attention": {
            "query": identity,
            "key": kq[layer, 0][:, None, :].astype(np.float32),
            "value": identity,
            "projection": pv[layer, 0].T[None].astype(np.float32),
        }
        for layer, name in enumerate(config.model.layer_names)
    }


def interpolated(loaded: LoadedRun, step_size: float, gamma: float = 0.0, share: float = 0.5) -> Partial:
    """The predictor whose products are `share` of the trained ones and the rest the construction's.

    The construction is gradient descent at this step size, or GD++ if gamma is not 0. `ConfigError` where there is
    none, or where layers have untied weights.
    """
    config = loaded.config
    require(len(config.model.layer_names) == 1, "layers with untied weights cannot be interpolated")
    trained = rescale(*products(config, loaded.params), config.data.dim)
    construction = products(config, gd_params(config.architecture, step_size, gamma))
    kq, pv = (share * own + (1 - share) * other for own, other in zip(trained, construction, strict=True))
    return Partial(loaded.model.predict, params_of_products(config, kq, pv))


class Rollout(NamedTuple):
    """Predictions [K, B] after each application, and whether a task's updates grow, unstable [B]."""

    predictions: Array
    unstable: Array


@partial(jax.jit, static_argnames="steps")
def rollout(kq: Array, pv: Array, batch: Batch, steps: int, damping: float | Array = 1.0) -> Rollout:
    """Rolls out the linear layer of products W_K^T W_Q and P W_V, both [W, W] for columns, on tokens (x, y).

    A task is unstable if its last update is larger than the one halfway: of a converging iteration none is.
    """
    inputs = jnp.concatenate([batch.x, batch.x_query[:, None]], axis=1)
    start = jnp.concatenate([batch.y, jnp.zeros_like(batch.y_query)[:, None]], axis=1)

    def apply(label: Array, _: None) -> tuple[Array, tuple[Array, Array]]:
        rows = jnp.concatenate([inputs, label[:, :, None]], axis=2)
        context = rows[:, :-1]
        weights = jnp.einsum("bnw,wv,brv->brn", context, kq, rows)
        update = damping * jnp.einsum("brn,bnw,w->br", weights, context, pv[-1])
        label = label + update
        return label, (-label[:, -1], jnp.linalg.norm(update, axis=1))

    _, (predictions, sizes) = jax.lax.scan(apply, start, None, length=steps)
    return Rollout(predictions, ~(sizes[-1] <= sizes[steps // 2 - 1]) | ~jnp.isfinite(sizes[-1]))


def gd_products(dim: int, step_size: float) -> tuple[np.ndarray, np.ndarray]:
    """The products of the construction: one application is one step of gradient descent from where labels stand."""
    width = dim + 1
    kq, pv = np.zeros((width, width), np.float32), np.zeros((width, width), np.float32)
    kq[np.arange(dim), np.arange(dim)] = 1
    pv[-1, -1] = -step_size
    return kq, pv
