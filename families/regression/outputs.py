"""What a run of regression leaves: its analyses, the columns of its table, when it has trained, and its summary."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from shlex import quote
from typing import Any

from icl_lab.families.regression.config import RegressionConfig, gd_steps
from icl_lab.families.summary import LABELS, header, row, shown
from icl_lab.lab.configs import columns
from icl_lab.lab.configs.family import Flag
from icl_lab.lab.configs.outputs import Analysis, Columns, Criterion, Curve, NamedLoss, Outputs, Panel, Results, Summary
from icl_lab.lab.flag_types import COUNT
from icl_lab.src import loss_conventions
from icl_lab.src.config import ContextConfig
from icl_lab.src.registries import BASELINES, NAMED_BASELINES
from icl_lab.store import layout
from icl_lab.store.readers import read_json

ALIGNED = 0.6  # cosine with gradient descent's sensitivities: .1 to .5 before a run has trained, above .9 after
GAIN = 0.9  # of what one step of gradient descent gains over predicting zero: at most .5 before a run has trained
NEGLIGIBLE = 0.01  # of the loss of predicting zero: where one step gains less, there is next to nothing to learn
ALPHAS = (1.0, 1.5, 2.0, 3.0)  # inputs are scaled by these
A_SECOND = 2**25  # masks times tasks that the posterior over masks takes about a second for
DISTRACTED = "ridge that ignores the distractors"  # in place of ridge where the contexts hold distractor labels
AVERAGED = "one step, w and query averaged in closed form"
CORRUPTED = {  # labels that replace others where the contexts are corrupted
    "gd": "gradient descent, {steps} step{s} (clean step size)",
    "ridge": "ridge that ignores the corruption",
    "least squares": "least squares that ignores the corruption",
}
COPIED = {"averaged_before_norm": "gradient averaged over tasks", "per_task": "norm of each task"}
INFORMED = {  # baselines that know of the corruption
    "gd_tuned_step": "gradient descent, step size tuned on it",
    "linear_mmse": "linear MMSE, knows p and sigma",
    "mask_bayes": "Bayes over masks, knows p and sigma",
}
BY_POSITION = {  # baselines that know an order or a placement
    "gd_positions": "1 step, a step size for each position",
    "gd_positions_trained": "the same, fitted on the training's contexts",
}


# --- columns of a table ---


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
    "steps": lambda config: config.training.steps,
}


def _not_defined(results: Results) -> str | None:
    """Which baselines and detectors have no value, and why."""
    parts = {**results["separation"].get("detectors", {}), **results["comparators"]}
    reasons = {name: part["reason"] for name, part in parts.items() if isinstance(part, Mapping) and "reason" in part}
    return "; ".join(f"{name}: {reason}" for name, reason in reasons.items()) or None


def _scaled(alpha: float, name: str) -> Callable[[Results], Any]:
    return lambda results: {row["alpha"]: row for row in results["ood"]}[alpha][name]


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
    "p": "share of pairs hit at evaluation",
    "sigma": "standard deviation of label noise at evaluation",
    "placement": "where corrupted pairs stand at evaluation",
    "align_cos": "cosine of sensitivities with gradient descent",
    "align_l2": "root mean squared difference of predictions from gradient descent's",
    "auroc": "AUROC of |influence|, within positions: above .5, corrupted pairs get less",
    "eval_slope": "slope of predictions on gradient descent's, on the evaluation batch: the step it takes",
    "eval_preds_diff": "mean absolute difference of predictions from gradient descent's, on the evaluation batch",
    "train_*": "the setting in force in training",
    "eval_*": "the setting in force at evaluation",
    "test_gain": "gain over predicting zero, over that of one step of gradient descent, the best for the training",
    "test_loss_ratio": "`test_loss` over `test_gd_loss`, on the same tasks",
    "test_gd_tuned_step_loss": "loss of gradient descent with its step size tuned on the corruption",
    "test_linear_mmse_loss": "loss of the best linear predictor, which knows p and sigma",
    "test_mask_bayes_loss": "loss of the posterior mean over masks, which knows p and sigma",
    "test_gd_positions_loss": "loss of one step with a step size for each position, fitted on evaluation contexts",
    "test_gd_positions_trained_loss": "the same, fitted on training contexts",
    "gd_tuned_over_clean_step": "step size tuned on the corruption, over the clean one",
    "auroc_low": "lower end of the 95 % interval of `auroc`",
    "auroc_high": "upper end of the 95 % interval of `auroc`",
    "auroc_raw": "AUROC of |influence| over all positions together",
    "auroc_position": "AUROC of the position alone",
    "gd_auroc": "`auroc` of gradient descent",
    "gd_auroc_raw": "`auroc_raw` of gradient descent",
    "mask_bayes_auroc": "AUROC of the posterior probability of being clean, which knows p and sigma",
    "loo_gd_auroc": "AUROC of minus the leave-one-out error of gradient descent at its clean step",
    "twin_change_*": "change of |influence| of noisy, or clean, pairs from the clean twin",
    "gd_auroc_*": "AUROC of this score of gradient descent, within positions",
    "auroc_first_abs_contribution": "AUROC of |contribution| in the first layer, mean of its heads",
    "auroc_*": "AUROC of this score, within positions; of attention and contribution in the last layer, mean of heads",
    "gd_ood_alpha*": "mean squared error of gradient descent on inputs times this",
    "ood_alpha*": "mean squared error on inputs times this",
}


# --- analyses ---


ATTENTION = (
    Flag("save_attention", "", bool, "capture attention at the end"),
    Flag("attention_batch", "", COUNT, "tasks to capture attention of", default=512),
)


def positions_differ(config: RegressionConfig) -> bool:
    """Whether an order or a placement tells the positions of the training or the evaluation contexts apart."""
    return any(not context.exchangeable for context in (config.train, config.eval))


def take_a_second(config: RegressionConfig) -> bool:
    """Whether a run's pairs are corrupted or its positions differ, and its baselines take about a second or less."""
    from icl_lab.baselines.mask_bayes import MAX_PAIRS  # brings JAX

    pairs = config.data.num_pairs
    masks = 2**pairs if pairs <= MAX_PAIRS and config.eval.hit_rate > 0 else 0
    tells_more = config.eval.hit_rate > 0 or positions_differ(config)
    return tells_more and gd_steps(config.model) == 1 and masks * config.test_tasks <= A_SECOND


ANALYSES = (
    Analysis("contexts", ("contexts",)),
    Analysis("attention_maps", options=ATTENTION, file=layout.ATTENTION_SUMMARY),
    Analysis("attention_stats", when=lambda config, table: table),
    Analysis("comparators", when=lambda config, table: table or take_a_second(config)),
    Analysis("weights"),
    Analysis("test_set", ("headline",)),
    Analysis("alignment", ("alignment",)),
    Analysis("ood_eval", ("ood",), {"alphas": list(ALPHAS)}),
    Analysis("copying", ("copying",), when=lambda config, table: config.model.interleaved),
)


def nothing_to_tell(config: RegressionConfig, summary: Summary) -> str | None:
    """Why neither the gain over predicting zero nor the cosine with gradient descent can tell whether a run trained."""
    step = summary["one_step"]
    loss, zero_loss, align_cos = (_finite(step[name]) for name in ("loss", "zero_loss", "align_cos"))
    share = (zero_loss - loss) / zero_loss if zero_loss else math.nan
    if not share >= NEGLIGIBLE:
        return f"one step of gradient descent gains {share:.2g} of the loss of predicting zero on the test tasks"
    if not align_cos >= ALIGNED:
        return f"the cosine of the best preconditioned step with gradient descent is {align_cos:.2g} itself"
    return None


def _finite(value: float | None) -> float:
    """A number; nan in place of none and of an infinite one, which no comparison passes."""
    return math.nan if value is None or math.isinf(value) else value


# --- the printed summary ---


def summary_lines(summary: Mapping[str, Any], run: Path, config: RegressionConfig) -> list[str]:
    """Losses with standard errors, alignment, other input scales."""
    summary = {**summary, "comparators": shown(_known_losses(run, config))}
    numbers, align = summary["headline"], summary["alignment"]
    lines = [header(numbers), *_losses(summary, config)]
    lines.append(row("transformer / gradient descent, same tasks", numbers, "loss_ratio"))
    if "gd_plus_plus_ratio" in numbers:
        lines.append(row("transformer / GD++, same tasks", numbers, "gd_plus_plus_ratio"))
    lines += [row(f"transformer / {name}, same tasks", numbers, f"{name}_ratio") for name in config.baselines]
    lines += [
        f"alignment on {align['tasks']} tasks: cosine of sensitivities {align['model_cos']:.4f}, mean |prediction "
        f"difference| {align['preds_diff']:.4f}, mean ‖sensitivity difference‖ {align['model_diff']:.4f}",
        f"eta/N {align['eta']:.4f} ({align['eta_source']})",
        "inputs times "
        + ", ".join(f"{row['alpha']:g}: {row['test_mse'] / row['gd_test_mse']:.3f}" for row in summary["ood"])
        + " (MSE over gradient descent's)",
    ]
    copied = summary.get("copying", {})
    return lines + [_copying_row(words, copied[name]) for name, words in COPIED.items() if name in copied]


def _known_losses(run: Path, config: RegressionConfig) -> dict[str, Any]:
    """The baselines of a run that know something of its contexts, or the command that measures them, by label."""
    labels = _informed(config)
    if not labels:
        return {}
    path = run / layout.COMPARATORS
    if not path.exists():
        return {"command": f"python -m analysis.comparators --run {quote(str(run))}"}
    values = read_json(path)
    return {name: values[name] for name in labels if name in values or name not in BY_POSITION}


def _informed(config: RegressionConfig) -> dict[str, str]:
    """The baselines that have something to know, with their labels: a corruption, an order or a placement."""
    of_corruption = INFORMED if config.eval.hit_rate > 0 else {}
    return of_corruption | (BY_POSITION if positions_differ(config) else {})


def _losses(summary: Mapping[str, Any], config: RegressionConfig) -> Iterator[str]:
    """A row per loss; the baselines that know something of the contexts come before ridge."""
    numbers, corrupted = summary["headline"], config.eval.hit_rate > 0
    steps = summary["alignment"]["gd_steps"]
    labels = LABELS | ({"ridge": DISTRACTED} if config.data.num_distractors else {}) | (CORRUPTED if corrupted else {})
    if corrupted and config.data.noise_std == 0:
        labels["ridge"] = CORRUPTED["least squares"]
    for name in (key.removesuffix("_loss") for key in numbers if key.endswith("_loss")):
        if name == "ridge":
            yield from _informed_rows(summary["comparators"], config)
        label = labels.get(name, name).format(steps=steps, s="s" * (steps > 1))
        yield row(label, numbers, f"{name}_loss")
        if name == "gd" and "gd_loss_averaged" in numbers:
            yield row(AVERAGED, numbers, "gd_loss_averaged", deeper=1)


def _informed_rows(measured: Mapping[str, Any], config: RegressionConfig) -> Iterator[str]:
    if "command" in measured:
        known = "corruption" if config.eval.hit_rate > 0 else "order"
        yield f"  {f'baselines that know of the {known}:':<48}{measured['command']}"
        return
    for name, values in measured.items():
        reason = {"loss_reason": values["reason"]} if "reason" in values else {}
        yield row(_informed(config)[name], values | reason, "loss")


def _copying_row(version: str, values: Mapping[str, float]) -> str:
    published = "next_over_other_with_next"  # earlier versions did not write it
    with_next = f" ({values[published]:.1f} as published, with the following among the other)"
    return (
        f"first layer's sensitivity ({version}): own {values['own']:.3f}, following {values['next']:.3f}, "
        f"other {values['other']:.3f}; following / other {values['next_over_other']:.1f}"
        f"{with_next if published in values else ''}"
    )


WITH_DESCENT = Panel(
    "loss (half MSE)",
    (
        Curve("train_loss", "train batch", "train"),
        Curve("eval_loss", "Trained Transformer", "model"),
        Curve("eval_gd_loss", "Gradient descent", "descent"),
    ),
)

OUTPUTS = Outputs(
    loss_conventions.LOSS_AND_MSE,
    NamedLoss("test_loss", columns.at("headline", "tf_loss")),
    Columns(
        {name: _setting("eval", name) for name in IN_FORCE if name != "difficulty"},
        MEASURED,
        FIRST,
        SETTINGS,
        FILES,
        further_losses,
        MEANINGS_OF_COLUMNS,
    ),
    (WITH_DESCENT,),
    summary_lines,
    ANALYSES,
    commands=(
        "alignment",
        "ood_eval",
        "shifts",
        "comparators",
        "attention_stats",
        "copying",
        "over_training",
        "algorithm_distance",
        "position_steps",
    ),
    criteria=(
        Criterion("cosine of sensitivities", lambda config, results: results["alignment"]["align_cos"], ALIGNED, True),
        Criterion("gain over predicting zero", lambda config, results: gain(results), GAIN, True, "of one GD step's"),
    ),
    undefined=nothing_to_tell,
)
