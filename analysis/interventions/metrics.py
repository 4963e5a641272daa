"""What interventions are measured by: a number for each context, from the prediction of one query.

prediction: itself. squared_error: (prediction - label of the clean context)^2. A baseline's name: (prediction - its
prediction on the clean context)^2. Or a function (predictions [B], clean batch) -> [B] of JAX.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from icl_lab.analysis.named_baseline import baseline
from icl_lab.analysis.run import Run
from icl_lab.src.checks import require
from icl_lab.src.registries import BASELINES
from icl_lab.src.words import did_you_mean

PREDICTION, SQUARED_ERROR = "prediction", "squared_error"
OWN = (PREDICTION, SQUARED_ERROR)

Function = Callable[[Any, Any], Any]


class Metric(NamedTuple):
    """A metric of a set of pairs: its name and its values [B] of predictions [B] of the queries asked.

    signed: its gaps have both signs, so that shares are slopes.
    """

    name: str
    of: Callable[[Any], Any]
    signed: bool = False

    def values(self, predictions: Any) -> np.ndarray:
        """The metric [..., B] of predictions [..., B]."""
        flat = jnp.asarray(predictions).reshape(-1, np.shape(predictions)[-1])
        return np.asarray(jax.vmap(self.of)(flat), np.float64).reshape(np.shape(predictions))

    def slopes(self, predictions: Any) -> np.ndarray:
        """The derivative [B] of each context's metric by its prediction [B]."""
        return np.asarray(jax.grad(lambda each: jnp.sum(self.of(each)))(jnp.asarray(predictions)))


def check_metric(metric: str | Function) -> None:
    """`ConfigError` for a name that is neither a metric's nor a baseline's."""
    known = callable(metric) or metric in OWN or metric in BASELINES
    text = f"no metric is called {metric!r}{did_you_mean(str(metric), (*OWN, *BASELINES))}"
    require(known, f"{text}; it is {', '.join(OWN)}, or a baseline")


def metric_of(metric: str | Function, run: Run, clean: Any, query: int) -> Metric:
    """A metric by its name, or a user's function, of the predictions of query number `query` of the clean contexts."""
    check_metric(metric)
    if callable(metric):
        return Metric(getattr(metric, "__name__", "function"), _checked(metric, clean))
    if metric == PREDICTION:
        return Metric(metric, jnp.asarray, signed=True)
    if metric == SQUARED_ERROR:
        target = asked(clean.y_query, query)
        require(bool(np.isfinite(target).all()), "the clean contexts have no y_query, which squared_error needs")
    else:
        target = asked(baseline(metric, run)(clean), query)
        size = len(clean.y)
        require(target.shape == (size,), f"{metric} is a score of pairs and predicts nothing; take another baseline")
    return Metric(metric, lambda predictions: (predictions - target) ** 2)


def asked(values: Any, query: int, axes: int = 1) -> np.ndarray:
    """The values [..., B] of one query of [..., B, Q], float32; as they are where they have no more than these axes."""
    array = np.asarray(values, np.float32)
    return array[..., query] if array.ndim > axes else array


def _checked(function: Function, clean: Any) -> Callable[[Any], Any]:
    def of(predictions: Any) -> Any:
        values = function(predictions, clean)
        text = f"the metric gives an array of shape {np.shape(values)}; it must be {np.shape(predictions)}"
        require(np.shape(values) == np.shape(predictions), f"{text}, one for each context")
        return values

    return of
