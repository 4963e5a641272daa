"""One step of gradient descent from zero on clean contexts, in closed form: its best step size, and its loss.

The step size c is the paper's eta/N, of the least-squares loss of N pairs.
"""

from __future__ import annotations

from icl_lab.src.data_config import LinearData


def scatter_moments(data: LinearData) -> tuple[float, float]:
    """E tr S and E tr S^2 of a context's scatter matrix S = sum_i x_i x_i^T.

    E tr S = N D v and E tr S^2 = N (N - 1) D v^2 + N (D m + D (D - 1) v^2), with v the variance and m the fourth
    moment of one coordinate.
    """
    n, d, v, m = data.num_pairs, data.dim, data.input_variance, data.input_fourth_moment
    return n * d * v, n * (n - 1) * d * v**2 + n * (d * m + d * (d - 1) * v**2)


def one_step_size(data: LinearData) -> float:
    """The step size c = eta/N with the least expected loss after one step from zero, in closed form.

    c* = s^2 E tr S / (s^2 E tr S^2 + noise_std^2 E tr S), s = weight_scale: without noise E tr S / E tr S^2, which is
    8.333/13.75 = .606 at D = N = 10 and x ~ U(-1/2, 1/2). Clean labels only.
    """
    trace, trace_of_square = scatter_moments(data)
    signal = data.task_variance
    return signal * trace / (signal * trace_of_square + data.noise_std**2 * trace)


def one_step_loss(data: LinearData, step_size: float) -> float:
    """The expected half squared error of one step from zero, in closed form over tasks, contexts and queries.

    v/2 [s^2 (D - 2 c E tr S + c^2 E tr S^2) + c^2 noise_std^2 E tr S] + noise_std^2/2.
    """
    trace, trace_of_square = scatter_moments(data)
    error = data.task_variance * (data.dim - 2 * step_size * trace + step_size**2 * trace_of_square)
    noise = data.noise_std**2
    return 0.5 * data.input_variance * (error + step_size**2 * noise * trace) + 0.5 * noise
