"""What a run of regression leaves: its analyses, the columns of its table, when it has trained, and its summary."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from shlex import quote
from typing import Any

from icl_lab.families.regression import solutions
from icl_lab.families.regression.config import RegressionConfig, gd_steps
from icl_lab.families.regression.table import COLUMNS, gain
from icl_lab.families.summary import LABELS, counted, first_line, header, own_contexts, row, shown
from icl_lab.lab.command_end import typed
from icl_lab.lab.configs import columns
from icl_lab.lab.configs.family import Flag
from icl_lab.lab.configs.outputs import (
    TRAIN_LONGER,
    Analysis,
    Criterion,
    Curve,
    NamedLoss,
    Outputs,
    Panel,
    Summary,
)
from icl_lab.lab.flag_types import COUNT
from icl_lab.src import loss_conventions
from icl_lab.store import layout
from icl_lab.store.readers import read_json

ALIGNED = 0.6  # cosine with gradient descent's sensitivities: .1 to .5 before a run has trained, above .9 after
GAIN = 0.9  # of what one step of gradient descent gains over predicting zero: at most .5 before a run has trained
NEGLIGIBLE = 0.01  # of the loss of predicting zero: where one step gains less, there is next to nothing to learn
ALPHAS = (1.0, 1.5, 2.0, 3.0)  # inputs are scaled by these
A_SECOND = 2**25  # masks times tasks that the posterior over masks takes about a second for
DISTRACTED = "ridge that ignores the distractors"  # in place of ridge where the contexts hold distractor labels
AVERAGED = "expected loss over w and the query, exact"
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
RIVALS = {  # of a run on corrupted contexts
    "linear_mmse": "the best linear predictor that knows the noise",
    "gd_tuned_step": "{steps} of gradient descent tuned on the noise",
}
BY_POSITION = {  # baselines that know an order or a placement
    "gd_positions": "1 step, a step size for each position",
    "gd_positions_trained": "the same, fitted on the training's contexts",
}


# --- analyses ---


ATTENTION = (
    Flag("save_attention", "", bool, "save attention maps at the end of training"),
    Flag("attention_batch", "", COUNT, "number of tasks whose attention is saved", default=512),
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
    Analysis("own_data", ("data",), when=lambda config, table: config.shares_arrays),
    Analysis("contexts", ("contexts",)),
    Analysis("attention_maps", options=ATTENTION, file=layout.ATTENTION_SUMMARY),
    Analysis("attention_stats", when=lambda config, table: table),
    Analysis("comparators", when=lambda config, table: table or take_a_second(config)),
    Analysis("weights"),
    Analysis("solutions", when=lambda config, table: not solutions.reason_against(config)),
    Analysis("test_set", ("headline",)),
    Analysis("alignment", ("alignment",)),
    Analysis("ood_eval", ("ood",), {"alphas": list(ALPHAS)}, when=lambda config, table: not config.data.file),
    Analysis("copying", ("copying",), when=lambda config, table: config.model.interleaved),
)


def nothing_to_tell(config: RegressionConfig, summary: Summary) -> str | None:
    """Why neither the gain over predicting zero nor the cosine with gradient descent can tell whether a run trained."""
    step = summary["one_step"]
    loss, zero_loss, align_cos = (_finite(step[name]) for name in ("loss", "zero_loss", "align_cos"))
    share = (zero_loss - loss) / zero_loss if zero_loss else math.nan
    if not share >= NEGLIGIBLE:
        return (
            f"one step of gradient descent does not lower the loss of predicting zero by {100 * NEGLIGIBLE:g} % on the "
            f"test tasks: it changes by {-100 * share:+.2g} %"
        )
    if not align_cos >= ALIGNED:
        return f"even the best preconditioned step has a cosine of only {align_cos:.2g} with gradient descent"
    return None


def _finite(value: float | None) -> float:
    """A number; nan in place of none and of an infinite one, which no comparison passes."""
    return math.nan if value is None or math.isinf(value) else value


# --- the printed summary ---


def meaning(summary: Mapping[str, Any], run: Path, config: RegressionConfig) -> str:
    """What a run is, and how its loss compares with those of the algorithms: "" where no loss is known.

    Where contexts are corrupted, with those that know of it: the others are no rivals.
    """
    numbers, steps = summary["headline"], counted(summary["alignment"]["gd_steps"], "step")
    others = {f"{steps} of GD++": numbers.get("gd_plus_plus_loss"), f"{steps} of gradient descent": numbers["gd_loss"]}
    if config.eval.hit_rate > 0:
        measured = shown(_known_losses(run, config))
        told = {RIVALS[name].format(steps=steps): measured.get(name, {}).get("loss") for name in RIVALS}
        others = told if any(loss is not None for loss in told.values()) else others
    return first_line(layers_in_words(config), config.data_seed, numbers["tf_loss"], others)


def layers_in_words(config: RegressionConfig) -> str:
    """`one linear layer`, `two linear layers with shared weights`, `a softmax and a linear layer`."""
    model = config.model
    kinds = [model.attention[min(layer, len(model.attention) - 1)] for layer in range(model.num_layers)]
    same = len({*kinds}) == 1
    words = counted(len(kinds), f"{kinds[0]} layer") if same else f"a {' and a '.join(kinds)} layer"
    shared = " with shared weights" if model.recurrent and len(kinds) > 1 else ""
    return f"{words}{shared}"


def summary_lines(summary: Mapping[str, Any], run: Path, config: RegressionConfig) -> list[str]:
    """Losses with standard errors, alignment, other input scales."""
    summary = {**summary, "comparators": shown(_known_losses(run, config))}
    numbers, align = summary["headline"], summary["alignment"]
    lines = [*own_contexts(summary), header(numbers), *_losses(summary, config)]
    lines.append(row("transformer / gradient descent, same tasks", numbers, "loss_ratio"))
    if "gd_plus_plus_ratio" in numbers:
        lines.append(row("transformer / GD++, same tasks", numbers, "gd_plus_plus_ratio"))
    lines += [row(f"transformer / {name}, same tasks", numbers, f"{name}_ratio") for name in config.baselines]
    lines += [
        f"alignment on {align['tasks']} tasks: cosine of sensitivities {align['model_cos']:.4f}, mean |prediction "
        f"difference| {align['preds_diff']:.4f}, mean ‖sensitivity difference‖ {align['model_diff']:.4f}",
        f"eta/N {align['eta']:.4f} ({align['eta_source']})",
    ]
    if "ood" in summary:  # labels of one's own contexts do not follow scaled inputs
        scales = ", ".join(f"{row['alpha']:g}" for row in summary["ood"])
        ratios = ", ".join(f"{row['test_mse'] / row['gd_test_mse']:.3f}" for row in summary["ood"])
        lines.append(f"transformer MSE / gradient descent MSE with inputs scaled by {scales}: {ratios}")
    if (run / layout.SOLUTIONS).exists():
        lines.append(solutions.in_words(read_json(run / layout.SOLUTIONS), config))
    copied = summary.get("copying", {})
    return lines + [_copying_row(words, copied[name]) for name, words in COPIED.items() if name in copied]


def remedy(run: Path, config: RegressionConfig) -> str:
    """What to do where a run has not trained; where its solution is known, that line says it."""
    path = run / layout.SOLUTIONS
    told = path.exists() and read_json(path)["solution"] not in solutions.GRADIENT_DESCENT
    return "what to do stands behind its solution, above" if told else TRAIN_LONGER


def _known_losses(run: Path, config: RegressionConfig) -> dict[str, Any]:
    """The baselines of a run that know something of its contexts, or the command that measures them, by label."""
    labels = _informed(config)
    if not labels:
        return {}
    path = run / layout.COMPARATORS
    if not path.exists():
        return {"command": f"{typed('analysis.comparators')} --run {quote(str(run))}"}
    values = read_json(path)
    return {name: values[name] for name in labels if name in values or name not in BY_POSITION}


def _informed(config: RegressionConfig) -> dict[str, str]:
    """The baselines that have something to know, with their labels: a corruption, an order or a placement."""
    of_corruption = INFORMED if config.eval.hit_rate > 0 else {}
    return of_corruption | (BY_POSITION if positions_differ(config) else {})


def _losses(summary: Mapping[str, Any], config: RegressionConfig) -> Iterator[str]:
    """A row per loss: the model's, baselines that know what is wrong with the contexts, then those that do not."""
    numbers, corrupted = summary["headline"], config.eval.hit_rate > 0
    steps = summary["alignment"]["gd_steps"]
    labels = LABELS | ({"ridge": DISTRACTED} if config.data.num_distractors else {}) | (CORRUPTED if corrupted else {})
    if corrupted and config.data.noise_std == 0:
        labels["ridge"] = CORRUPTED["least squares"]
    for name in (key.removesuffix("_loss") for key in numbers if key.endswith("_loss")):
        label = labels.get(name, name).format(steps=steps, s="s" * (steps > 1))
        yield row(label, numbers, f"{name}_loss")
        if name == "tf":
            yield from _informed_rows(summary["comparators"], config)
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
    COLUMNS,
    (WITH_DESCENT,),
    summary_lines,
    ANALYSES,
    meaning=meaning,
    commands=(
        "alignment",
        "ood_eval",
        "shifts",
        "comparators",
        "attention_stats",
        "copying",
        "over_training",
        "position_steps",
        "solutions",
    ),
    criteria=(
        Criterion("cosine of sensitivities", lambda config, results: results["alignment"]["align_cos"], ALIGNED, True),
        Criterion("fraction of one GD step's loss reduction", lambda config, results: gain(results), GAIN, True),
    ),
    undefined=nothing_to_tell,
    remedy=remedy,
)
