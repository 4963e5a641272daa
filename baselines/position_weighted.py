"""One step of gradient descent with a step size for each position of the context.

    y^ = sum_k c_k f_k,   f_k = y_(k) x_(k).x_query,   c = E[f f^T]^-1 E[f y_query]

(k) is the pair at position k, after ordering and placement. c is the least-squares fit on tasks of one distribution,
order, noise and placement. Exchangeable positions have one c_k, that of `gradient_descent.fit_step_size`; an order or a
placement makes it depend on k. Losses follow from the second moments of (f, y_query) alone, so moments of two sets of
tasks give the loss on one set of a predictor fitted on the other.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from icl_lab.src.batch import Batch
from icl_lab.src.checks import require


def features(batch: Batch) -> Array:
    """f [B, N]: f_k = y_(k) x_(k).x_query, what position k adds to one step of gradient descent of step size 1."""
    return batch.y * jnp.einsum("bnd,bd->bn", batch.x, batch.x_query)


def position_weighted_gd(batch: Batch, step_sizes: ArrayLike) -> Array:
    """Predictions [B] of one step from zero, sum_k c_k y_(k) x_(k).x_query, with step sizes c [N].

    Equal step sizes are one step of `gradient_descent.gd`.
    """
    return jnp.einsum("bn,n->b", features(batch), jnp.asarray(step_sizes, batch.y.dtype))


class Moments(NamedTuple):
    """Second moments over tasks, float64: gram = E[f f^T] [..., N, N], cross = E[f y_query] [..., N], and E[y_query^2].

    Leading axes are sets of tasks.
    """

    gram: np.ndarray
    cross: np.ndarray
    square: np.ndarray

    @property
    def flat(self) -> Moments:
        """Of the feature sum_k f_k, with N = 1: what one step size for all positions sees."""
        return Moments(self.gram.sum(axis=(-1, -2))[..., None, None], self.cross.sum(axis=-1)[..., None], self.square)


def moments(batch: Batch, target: ArrayLike | None = None) -> Moments:
    """The moments of a batch's tasks; `target` [B], such as a model's predictions, stands in for y_query."""
    f, target = np.asarray(_features(batch), np.float64), np.asarray(batch.y_query if target is None else target, float)
    tasks = len(target)
    return Moments(f.T @ f / tasks, f.T @ target / tasks, np.asarray(target @ target / tasks))


def query_averaged_moments(batch: Batch, second_moment: ArrayLike | None = None, noise_std: float = 0.0) -> Moments:
    """The moments of a batch's tasks, each averaged over queries: their errors are several times smaller.

    With M = E[x_query x_query^T] [D, D] and u_k = y_(k) x_(k): gram = E[u_k^T M u_l], cross = E[u_k^T M w] and
    E[y_query^2] = E[w^T M w] + noise_std^2. For queries drawn independently of context and task, labelled w.x_query. M
    is v I for coordinates of variance v; if not given, that of the batch's queries.
    """
    u, w = (np.asarray(part, np.float64) for part in (_moved(batch), batch.w))
    m = _of_queries(batch) if second_moment is None else np.asarray(second_moment, np.float64)
    tasks, by_position = len(w), u.transpose(1, 0, 2).reshape(u.shape[1], -1)
    gram = by_position @ (u @ m).transpose(1, 0, 2).reshape(u.shape[1], -1).T / tasks
    square = np.asarray(np.sum(w @ m * w) / tasks + noise_std**2)
    return Moments(gram, by_position @ (w @ m).ravel() / tasks, square)


def _of_queries(batch: Batch) -> np.ndarray:
    """The second moment [D, D] of a batch's queries."""
    x_query = np.asarray(batch.x_query, np.float64)
    second_moment: np.ndarray = x_query.T @ x_query / len(x_query)
    return second_moment


_features = jax.jit(features)
_moved = jax.jit(lambda batch: batch.y[:, :, None] * batch.x)


def fit_step_sizes(task_moments: Moments) -> np.ndarray:
    """The step sizes c [..., N] of least loss on tasks with these moments: gram^-1 cross.

    Of fewer tasks than positions, or of positions that are always 0, the least-norm solution. `ConfigError` if the
    moments are not finite.
    """
    require(
        all(np.isfinite(part).all() for part in task_moments), "step sizes are fitted to labels that are not finite"
    )
    solution: np.ndarray = np.linalg.pinv(task_moments.gram, hermitian=True) @ task_moments.cross[..., None]
    return solution[..., 0]


def expected_loss(task_moments: Moments, step_sizes: np.ndarray) -> np.ndarray:
    """Half the mean squared error [...] of step sizes c [..., N] on tasks with these moments.

    (E[y_query^2] - 2 c.cross + c^T gram c) / 2.
    """
    fitted = np.einsum("...k,...kl,...l->...", step_sizes, task_moments.gram, step_sizes)
    loss: np.ndarray = 0.5 * (task_moments.square - 2 * np.sum(step_sizes * task_moments.cross, axis=-1) + fitted)
    return loss


class Fit(NamedTuple):
    """Step sizes c [N] with their standard errors [N], and R^2 = 1 - E(target - c.f)^2 / E target^2.

    Targets have mean 0 by the symmetry w -> -w, so there is no intercept. The standard errors allow for residuals whose
    variance depends on f (White 1980).
    """

    step_sizes: np.ndarray
    standard_errors: np.ndarray
    r2: float


def best_step_sizes(batch: Batch, noise_std: float = 0.0) -> Fit:
    """The step sizes of least loss on a batch's tasks, each averaged over queries: `query_averaged_moments`."""
    task_moments = query_averaged_moments(batch, noise_std=noise_std)
    step_sizes = fit_step_sizes(task_moments)
    u = np.asarray(_moved(batch), np.float64)
    missing = np.asarray(batch.w, np.float64) - np.einsum("bnd,n->bd", u, step_sizes)
    return _fit(task_moments, step_sizes, np.einsum("bnd,bd->bn", u, missing @ _of_queries(batch)))


def regress(batch: Batch, target: ArrayLike) -> Fit:
    """Least squares of targets [B], such as a model's predictions, on f: the step sizes that the model takes."""
    task_moments = moments(batch, target)
    step_sizes, f = fit_step_sizes(task_moments), np.asarray(_features(batch), np.float64)
    return _fit(task_moments, step_sizes, f * (np.asarray(target, np.float64) - f @ step_sizes)[:, None])


def _fit(task_moments: Moments, step_sizes: np.ndarray, scores: np.ndarray) -> Fit:
    """A fit with the standard errors of its scores [B, N], whose mean is 0."""
    inverse = np.linalg.pinv(task_moments.gram, hermitian=True) / len(scores)
    errors = np.sqrt(np.diag(inverse @ (scores.T @ scores) @ inverse))
    unexplained = (
        2 * expected_loss(task_moments, step_sizes) / task_moments.square if task_moments.square > 0 else np.nan
    )
    return Fit(step_sizes, errors, float(1 - unexplained))
