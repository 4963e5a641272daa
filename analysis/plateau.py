"""Did a run train? Each family names a number of its summary and how far it must get to have left the plateau.

Training of these models may stay for long where it began, near the loss of predicting zero. A run that ends there is
no result about what such models learn. Everything is computed from config.json and metrics_summary.json, so also for
older runs. Where no number can tell, nothing is said but why.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from configs.regression import RegressionConfig
from src.checks import ConfigError

ALIGNED = 0.6  # cosine with gradient descent's sensitivities: .1 to .5 on the plateau, above .9 once it is left
UNTRAINED = 0.9  # of the loss of predicting zero: what ends above it did not train
SINE_LEFT = 0.5  # of that of predicting zero: see `CRITERIA`
IN_CONTEXT = 0.5  # of what exact inference gains from the context: see `_gain`
NEGLIGIBLE = 0.01  # of the targets: who recovers no more than this is as good as zero
NO_GAIN = 0.05  # of the loss before any pair: with less to gain, the noise of that loss decides

Summary = Mapping[str, Any]


class Criterion(NamedTuple):
    """What is measured, its value in a summary, the threshold, whether to reach it from below or from above.

    undefined: why the value says nothing about a run, or None.
    """

    words: str
    value: Callable[[RegressionConfig, Summary], float | None]
    threshold: float
    at_least: bool = False
    undefined: Callable[[RegressionConfig, Summary], str | None] = lambda config, summary: None


def _over(value: float | None, zero: float | None) -> float | None:
    return None if value is None or not zero else value / zero


def _last_layer(summary: Summary) -> float | None:
    """Of a stack its last layer; of a layer that is rolled out its first application, as it was trained."""
    layerwise = summary["layerwise"]
    loss = layerwise["trimmed_mean"][0 if layerwise["rolled_out"] else -1]
    return _over(loss, layerwise["references"]["zero"]["mse"][0])


def _nothing_to_learn(config: RegressionConfig, summary: Summary) -> str | None:
    """Where the best linear predictor of the training contexts is as good as zero, a cosine with it means nothing."""
    if config.train.hit_rate == 0 and config.data.noise_std == 0:
        return None
    from baselines.linear_mmse import recovered  # brings JAX, which most runs do without

    try:
        share = recovered(config.data, config.train)
    except ConfigError:  # nobody has said what the best predictor is
        return None
    if share > NEGLIGIBLE:
        return None
    return f"the best linear predictor of the training contexts recovers {share:.2g} of the targets, so zero is as good"


def _gain(config: RegressionConfig, summary: Summary) -> float | None:
    """What a model gains from the context over what the exact predictor gains that gains less.

        (l_1 - l) / min_r (l_r1 - l_r)

    l is the id loss over all positions, l_1 that of the first prediction, which has seen no pair, but at most zero's.
    dMMSE and the model begin at that of the pool's mean task, ridge at zero's. So a predictor that ignores the context
    has 0 whatever it knows of the pool: on 1024 sequences of the presets -.1 to .1 for the mean of pools of 2 to 1024
    tasks, whose loss is .42 to 1 of zero's. dMMSE and ridge have 1 or more, their losses being .07 and .40 of zero's
    for M = 2, .35 and .38 for M = 1024, and one best step of gradient descent .5 to .8. In a pool of one task there is
    nothing to infer, dMMSE is the mean task, and the gain is counted from zero's loss.
    """
    gain, possible = _gains(config, summary)
    return gain / possible if possible and not math.isnan(gain) else None


def _gains(config: RegressionConfig, summary: Summary) -> tuple[float, float | None]:
    """A model's gain, and that of the exact predictor that gains less; None where there is no such predictor."""
    headline, errors = summary["headline"], [_number(error) for error in summary.get("id_errors", [math.nan])]
    zero, loss = _number(headline["id_zero_loss"]), sum(errors) / len(errors)
    start = zero if config.data.num_tasks == 1 else min(errors[0], zero)
    names = {name for name in headline if name.startswith("id_") and name.endswith("_loss")}
    exact = {name: _number(headline[name]) for name in names - {"id_tf_loss", "id_zero_loss"}}
    gains = [(start if name == "id_dmmse_loss" else zero) - value for name, value in exact.items()]
    return start - loss, min((gain for gain in gains if math.isfinite(gain)), default=None)


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


def _nothing_to_infer(config: RegressionConfig, summary: Summary) -> str | None:
    if "id_errors" not in summary:
        return "the summary has no errors by position"
    gain, possible = _gains(config, summary)
    if not math.isfinite(gain):
        return None  # it has diverged
    if possible is None:
        return "there is no exact predictor to compare with"
    if possible <= NO_GAIN * summary["headline"]["id_zero_loss"]:
        return "the exact predictor gains next to nothing from the context"
    return None


# family -> its criterion. A predictor of sines that knows the mean function E y = E[a] (2/pi) cos x, and ignores the
# context, has 1 - (E[a]^2 / E[a^2]) (2/pi)^2 E[cos^2 x] / E[sin^2(x + phi)] = .67 of zero's loss.
CRITERIA: Mapping[str, Criterion] = {
    "regression": Criterion(
        "cosine of sensitivities",
        lambda config, summary: summary["alignment"]["align_cos"],
        ALIGNED,
        at_least=True,
        undefined=_nothing_to_learn,
    ),
    "layerwise": Criterion(
        "last layer's MSE over that of zero", lambda config, summary: _last_layer(summary), UNTRAINED
    ),
    "sine": Criterion(
        "loss after the context over that of zero",
        lambda config, summary: _over(summary["headline"]["loss"], summary["headline"]["zero_loss"]),
        SINE_LEFT,
    ),
    "diversity": Criterion(
        "gain from the context over that of the exact predictor",
        _gain,
        IN_CONTEXT,
        at_least=True,
        undefined=_nothing_to_infer,
    ),
}


def left_plateau(config: RegressionConfig, summary: Summary) -> dict[str, Any]:
    """Whether a run has left the plateau: `met`, the `criterion` in words, its `value` and the `threshold`.

    A value that is not finite has not. Where the value says nothing, `met` is None and there is a `reason`.
    """
    words, value_of, threshold, at_least, undefined = CRITERIA[config.family]
    reason, measured = undefined(config, summary), value_of(config, summary)
    value = None if measured is None or not math.isfinite(measured) else float(measured)
    met = value is not None and (value >= threshold if at_least else value <= threshold)
    criterion = f"{words}, {'at least' if at_least else 'at most'} {threshold:g}"
    verdict = {"met": met if reason is None else None, "criterion": criterion, "value": value, "threshold": threshold}
    return verdict if reason is None else verdict | {"reason": reason}


def in_words(config: RegressionConfig, summary: Summary) -> str:
    """The line of a printed summary."""
    verdict, (words, _, threshold, at_least, _) = left_plateau(config, summary), CRITERIA[config.family]
    if verdict["met"] is None:
        return f"left the plateau: not defined: {verdict['reason']}"
    value = "not finite" if verdict["value"] is None else f"{verdict['value']:.4f}"
    if verdict["met"]:
        return f"left the plateau: {words} {value}, {'at least' if at_least else 'at most'} {threshold:g}"
    missed = "less" if at_least else "more"
    bound = "" if verdict["value"] is None else f", {missed} than {threshold:g}"
    return f"NOT off the plateau: {words} {value}{bound}; train longer (--steps) or take another --seed"
