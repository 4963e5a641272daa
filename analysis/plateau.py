"""Did a run train? Each family names a number of its summary and how far it must get to have left the plateau.

Training of these models may stay for long where it began, near the loss of predicting zero. A run that ends there is
no result about what such models learn. Everything is computed from metrics_summary.json, so also for older runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

ALIGNED = 0.6  # cosine with gradient descent's sensitivities: .1 to .5 on the plateau, above .9 once it is left
UNTRAINED = 0.9  # of the loss of predicting zero: what ends above it did not train
SINE_LEFT = 0.5  # of that of predicting zero: see `CRITERIA`


class Criterion(NamedTuple):
    """What is measured, its value in a summary, the threshold, and whether to reach it from below or from above."""

    words: str
    value: Callable[[Mapping[str, Any]], float | None]
    threshold: float
    at_least: bool = False


def _over(value: float | None, zero: float | None) -> float | None:
    return None if value is None or not zero else value / zero


def _last_layer(summary: Mapping[str, Any]) -> float | None:
    """Of a stack its last layer; of a layer that is rolled out its first application, as it was trained."""
    found = summary["layerwise"]
    loss = found["trimmed_mean"][0 if found["rolled_out"] else -1]
    return _over(loss, found["references"]["zero"]["mse"][0])


# family -> its criterion. A predictor of sines that knows the mean function E y = E[a] (2/pi) cos x, and ignores the
# context, has 1 - (E[a]^2 / E[a^2]) (2/pi)^2 E[cos^2 x] / E[sin^2(x + phi)] = .67 of zero's loss.
CRITERIA: Mapping[str, Criterion] = {
    "regression": Criterion("cosine of sensitivities", lambda s: s["alignment"]["align_cos"], ALIGNED, at_least=True),
    "layerwise": Criterion("last layer's MSE over that of zero", _last_layer, UNTRAINED),
    "sine": Criterion(
        "loss after the context over that of zero",
        lambda s: _over(s["headline"]["loss"], s["headline"]["zero_loss"]),
        SINE_LEFT,
    ),
    "diversity": Criterion(
        "loss on its pool's tasks over that of zero",
        lambda s: _over(s["headline"]["id_tf_loss"], s["headline"]["id_zero_loss"]),
        UNTRAINED,
    ),
}


def left_plateau(family: str, summary: Mapping[str, Any]) -> dict[str, Any]:
    """Whether a run has left the plateau: `met`, the `criterion` in words, its `value` and the `threshold`.

    A value that is not finite has not.
    """
    words, value_of, threshold, at_least = CRITERIA[family]
    found = value_of(summary)
    value = None if found is None or not math.isfinite(found) else float(found)
    met = value is not None and (value >= threshold if at_least else value <= threshold)
    criterion = f"{words}, {'at least' if at_least else 'at most'} {threshold:g}"
    return {"met": met, "criterion": criterion, "value": value, "threshold": threshold}


def in_words(family: str, summary: Mapping[str, Any]) -> str:
    """The line of a printed summary."""
    found, (words, _, threshold, at_least) = left_plateau(family, summary), CRITERIA[family]
    value = "not finite" if found["value"] is None else f"{found['value']:.4f}"
    if found["met"]:
        return f"left the plateau: {words} {value}, {'at least' if at_least else 'at most'} {threshold:g}"
    missed = "less" if at_least else "more"
    bound = "" if found["value"] is None else f", {missed} than {threshold:g}"
    return f"NOT off the plateau: {words} {value}{bound}; train longer (--steps) or take another --seed"
