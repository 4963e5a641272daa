"""The columns of a table of regression runs: their contexts, and what was measured of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from icl_lab.families.regression.config import RegressionConfig
from icl_lab.lab.configs import columns
from icl_lab.lab.configs.outputs import Columns, Results
from icl_lab.src.config import ContextConfig
from icl_lab.src.registries import BASELINES, NAMED_BASELINES


def _settings(context: ContextConfig) -> dict[str, Any]:
    """What is in force: without noise, p and sigma are 0 whatever was asked for the other context."""
    clean = context.noise_mode == "clean"
    return {
        "ordering": context.ordering,
        "noise_mode": context.noise_mode,
        "p": 0.0 if clean else context.noise_p,
        "sigma": 0.0 if clean else context.noise_sigma,
        "placement": context.noise_placement,
        "difficulty": context.difficulty,
    }


def _setting(context: str, name: str) -> Callable[[RegressionConfig], Any]:
    return lambda config: _settings(getattr(config, context))[name]


IN_FORCE = tuple(_settings(ContextConfig()))
SETTINGS: dict[str, Callable[[RegressionConfig], Any]] = {
    **{f"{context}_{name}": _setting(context, name) for context in ("train", "eval") for name in IN_FORCE},
    **columns.fields("training.steps"),
}


def _not_defined(results: Results) -> str | None:
    """Which baselines and detectors have no value, and why."""
    parts = {**results["separation"].get("detectors", {}), **results["comparators"]}
    reasons = {name: part["reason"] for name, part in parts.items() if isinstance(part, Mapping) and "reason" in part}
    return "; ".join(f"{name}: {reason}" for name, reason in reasons.items()) or None


def _scaled(alpha: float, name: str) -> Callable[[Results], Any]:
    def value(results: Results) -> Any:
        rows = {row["alpha"]: row for row in results.get("ood", ())}  # contexts from a file are not scaled
        return rows[alpha][name] if rows else None

    return value


def _score(whose: str, score: str) -> Callable[[Results], Any]:
    """A score's AUROC: gradient descent's; the model's influence; or of its last layer's heads, their mean."""
    if whose:
        return columns.at("separation", "gd", score, "auroc")
    return columns.at("separation", score, "auroc") if score == "influence" else _of_layer(-1, score)


def _of_layer(layer: int, score: str) -> Callable[[Results], float | None]:
    def value(results: Results) -> float | None:
        heads = results["separation"]["layers"][layer]["heads"]
        return columns.mean([head["scores"][score]["auroc"] for head in heads])

    return value


def gain(results: Results) -> float | None:
    """(l_0 - l) / (l_0 - l_1): what a model gains over predicting zero, over what one step of gradient descent gains.

    l, l_0 and l_1 are the losses of the model, of zero and of `families.regression.task.references` on the same test
    tasks. None where one is unknown.
    """
    step = results["one_step"]
    model, zero, one = results["headline"]["tf_loss"], step["zero_loss"], step["loss"]
    return None if None in (model, zero, one) else columns.ratio(zero - model, zero - one)


SCORES = ("influence", "attention", "abs_attention", "contribution", "abs_contribution")
OF_INFLUENCE = ("auroc_raw", "auroc_position")
DETECTORS = tuple(name for name, baseline in BASELINES.items() if baseline.pairs)  # positive controls
FIRST: dict[str, Callable[[Results], Any]] = {
    "test_mse": columns.doubled("headline", "tf_loss"),
    "align_cos": columns.at("alignment", "align_cos"),
    "align_l2": columns.at("alignment", "l2_pred_diff"),
    "auroc": columns.at("separation", "abs_influence", "auroc"),
    "ood_alpha3": _scaled(3.0, "test_mse"),
}
POSITION_WEIGHTED = ("gd_positions", "gd_positions_trained")  # runs of earlier versions lack them
MEASURED: dict[str, Callable[[Results], Any]] = {
    "trained": columns.trained,
    "test_gain": lambda results: gain(results),
    "not_defined": _not_defined,
    "test_loss": columns.at("headline", "tf_loss"),
    "test_loss_se": columns.at("headline", "tf_loss_se"),
    "gd_mse": columns.doubled("headline", "gd_loss"),
    "test_gd_loss": columns.at("headline", "gd_loss"),
    "test_loss_ratio": columns.at("headline", "loss_ratio"),
    "test_loss_ratio_se": columns.at("headline", "loss_ratio_se"),
    "test_ridge_loss": columns.at("headline", "ridge_loss"),
    **{
        f"test_{name}_loss": columns.at("comparators", name, "loss")
        for name in ("gd_tuned_step", "linear_mmse", "mask_bayes")
    },
    **{f"test_{name}_loss": columns.if_there("comparators", name, "loss") for name in POSITION_WEIGHTED},
    "gd_tuned_over_clean_step": lambda results: columns.ratio(
        results["comparators"]["tuned_step_size"], results["alignment"]["eta"]
    ),
    "eval_slope": columns.at("alignment", "slope"),
    "eval_preds_diff": columns.at("alignment", "preds_diff"),
    "auroc_low": columns.at("separation", "abs_influence", "auroc_interval", 0),
    "auroc_high": columns.at("separation", "abs_influence", "auroc_interval", 1),
    **{name: columns.at("separation", "abs_influence", name) for name in OF_INFLUENCE},
    "gd_auroc": columns.at("separation", "gd", "abs_influence", "auroc"),
    "gd_auroc_raw": columns.at("separation", "gd", "abs_influence", "auroc_raw"),
    **{f"{name}_auroc": columns.if_there("separation", "detectors", name, "auroc") for name in DETECTORS},
    **{name: columns.at("separation", "abs_influence", name) for name in ("twin_change_noisy", "twin_change_clean")},
    **{f"{whose}auroc_{score}": _score(whose, score) for score in SCORES for whose in ("", "gd_")},
    "auroc_first_abs_contribution": _of_layer(0, "abs_contribution"),
    **{
        f"{whose}ood_alpha{alpha:g}": _scaled(alpha, f"{whose}test_mse")
        for whose in ("", "gd_")
        for alpha in (1.0, 1.5, 2.0, 3.0)
        if whose or alpha != 3.0
    },
}


def further_losses(config: RegressionConfig | None) -> dict[str, Callable[[Results], Any]]:
    """The columns of the baselines that a config names, or of all that one can name."""
    names = NAMED_BASELINES if config is None else config.baselines
    columns_of = (f"{name}_{number}{se}" for name in names for number in ("loss", "ratio") for se in ("", "_se"))
    return {f"test_{column}": columns.at("headline", column) for column in columns_of}


FILES = {"separation": "analysis/attention_stats.json", "comparators": "analysis/comparators.json"}
MEANINGS_OF_COLUMNS = {
    "ordering": "order of the pairs at evaluation",
    "noise_mode": "corruption at evaluation",
    "p": "probability that a pair is corrupted at evaluation",
    "sigma": "standard deviation of label noise at evaluation",
    "placement": "where corrupted pairs are placed at evaluation",
    "align_cos": "cosine of sensitivities with gradient descent",
    "align_l2": "root mean squared difference of predictions from gradient descent's",
    "auroc": "AUROC of |influence|, within positions; above .5, corrupted pairs have less influence",
    "eval_slope": "slope of predictions against gradient descent's, on the evaluation batch: how large its step is",
    "eval_preds_diff": "mean absolute difference of predictions from gradient descent's, on the evaluation batch",
    "train_*": "the setting used in training",
    "eval_*": "the setting used at evaluation",
    "test_gain": "gain over predicting zero, divided by that of one step of gradient descent with the best step size "
    "for the training contexts",
    "test_loss_ratio": "`test_loss` over `test_gd_loss`, on the same tasks",
    "test_gd_tuned_step_loss": "loss of gradient descent with its step size tuned on corrupted contexts",
    "test_linear_mmse_loss": "loss of the best linear predictor, which knows p and sigma",
    "test_mask_bayes_loss": "loss of the posterior mean over masks, which knows p and sigma",
    "test_gd_positions_loss": "loss of one step with a step size for each position, fitted on evaluation contexts",
    "test_gd_positions_trained_loss": "the same, fitted on training contexts",
    "gd_tuned_over_clean_step": "step size tuned on corrupted contexts, divided by the one tuned on clean contexts",
    "auroc_low": "lower end of the 95 % interval of `auroc`",
    "auroc_high": "upper end of the 95 % interval of `auroc`",
    "auroc_raw": "AUROC of |influence| over all positions together",
    "auroc_position": "AUROC of the position alone",
    "gd_auroc": "`auroc` of gradient descent",
    "gd_auroc_raw": "`auroc_raw` of gradient descent",
    "mask_bayes_auroc": "AUROC of the posterior probability of being clean, which knows p and sigma",
    "loo_gd_auroc": "AUROC of minus the leave-one-out error of gradient descent at its clean step",
    "twin_change_*": "change of |influence| of noisy (or clean) pairs relative to the same context without noise",
    "gd_auroc_*": "AUROC of this score of gradient descent, within positions",
    "auroc_first_abs_contribution": "AUROC of |contribution| in the first layer, mean of its heads",
    "auroc_*": "AUROC of this score, within positions; of attention and contribution in the last layer, mean of heads",
    "gd_ood_alpha*": "mean squared error of gradient descent on inputs times the number in the column's name",
    "ood_alpha*": "mean squared error on inputs times the number in the column's name",
}


COLUMNS = Columns(
    {name: _setting("eval", name) for name in IN_FORCE if name != "difficulty"},
    MEASURED,
    FIRST,
    SETTINGS,
    FILES,
    further_losses,
    MEANINGS_OF_COLUMNS,
)
