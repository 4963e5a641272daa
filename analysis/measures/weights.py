"""Weight products W_K^T W_Q and P W_V of each head, compared with the construction of gradient descent.

Only the products matter, and in a linear layer a scale can move between the two, so both are shown with it moved to
where the construction has it: W_K^T W_Q is divided by beta, the mean of its first D diagonal entries, and P W_V
multiplied. Softmax layers have no such freedom and are shown as they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from icl_lab.analysis.compared_run import ComparedRun
from icl_lab.baselines.construction import gd_params
from icl_lab.src.attn import merged_of
from icl_lab.src.checks import ConfigError
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
