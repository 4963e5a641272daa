"""Interpolation of trained weights and the construction: the midpoint is as good if both are the same algorithm.

The products W_K^T W_Q and P W_V are rescaled so that the first has the construction's scale, then averaged with it. Von
Oswald et al. 2023, Sec. 3 and App. A.3. It needs what the construction needs; layers with untied weights can
be permuted and rotated, so their midpoint means nothing.
"""

from __future__ import annotations

import numpy as np
from jax.tree_util import Partial

from icl_lab.analysis.loaded_run import LoadedRun
from icl_lab.analysis.measures.weights import products, rescale
from icl_lab.baselines.construction import gd_params
from icl_lab.families.regression.config import RegressionConfig
from icl_lab.src.checks import require


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
