"""What a run of task diversity leaves: its analyses, the columns of its table, when it has trained, its summary."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from icl_lab.families.diversity.config import DiversityConfig
from icl_lab.families.summary import LABELS, counted, first_line, own_contexts, row
from icl_lab.lab.configs import columns
from icl_lab.lab.configs.outputs import Analysis, Columns, Criterion, Curve, NamedLoss, Outputs, Panel, Results, Summary
from icl_lab.src import loss_conventions
from icl_lab.src.registries import BAYES_IS_RIDGE, POSTERIOR_MEANS

IN_CONTEXT = 0.5  # of what exact inference gains from the context: see `gain`
NO_GAIN = 0.05  # of the loss before any pair: a smaller gain is within the noise of that loss
POOL = "its pool's tasks"
OWN = "other contexts of the file"

# --- columns of a table; a column keeps the name that its field had first ---

ASKED: dict[str, Callable[[DiversityConfig], Any]] = {
    **columns.fields("data.num_tasks"),
    "task_law": lambda config: config.data.task_distribution,
    **columns.fields("data.dim", "data.num_pairs", "data.noise_std", "model.num_layers", "model.num_heads"),
    "embed_size": lambda config: config.model.d_model,
    **columns.fields("model.mlp_width", *(f"training.{name}" for name in ("batch_size", "steps", "lr"))),
    **columns.fields("training.weight_decay", "training.schedule"),
}
HEADLINE = tuple(
    f"{prefix}_{name}"
    for prefix in ("id", "ood")
    for name in (
        *(f"{who}_loss{se}" for who in ("tf", "ridge", "dmmse", "laplace") for se in ("", "_se")),
        *(f"delta_{who}{se}" for who in ("ridge", "dmmse", "laplace") for se in ("", "_se")),
        "apart",
    )
)


def further_means(config: DiversityConfig | None) -> dict[str, Callable[[Results], Any]]:
    """The columns of the posterior mean of a config's tasks, or of all there are; those of laplace all tables have."""
    distributions = POSTERIOR_MEANS if config is None else [config.data.task_distribution]
    further = [name for name in distributions if name in POSTERIOR_MEANS and name != "laplace"]
    named = [f"{prefix}_{text}" for prefix in ("id", "ood") for text in ("{}_loss", "delta_{}")]
    names = [f"{text.format(name)}{se}" for text in named for name in further for se in ("", "_se")]
    return {f"test_{name}": _on_test_set(name) for name in names}


def _not_defined(results: Results) -> str | None:
    headline, before, after = results["headline"], "id_", "_loss_reason"
    names = [key for key in headline if key.startswith(before) and key.endswith(after)]
    return "; ".join(f"{key[len(before) : -len(after)]}: {headline[key]}" for key in names) or None


def _on_test_set(name: str) -> Callable[[Results], Any]:
    return lambda results: results["headline"].get(name)


MEASURED: dict[str, Callable[[Results], Any]] = {
    "verdict": _on_test_set("verdict"),
    "trained": columns.trained,
    "not_defined": _not_defined,
    **{f"test_{name}": _on_test_set(name) for name in HEADLINE},
}
MEANINGS_OF_COLUMNS = {
    "*_se": columns.MEANINGS["*_se"],
    "num_tasks": "tasks in the pool, M; inf: a fresh one for each sequence",
    "dim": "input dimension, D",
    "num_heads": "heads of each layer",
    "mlp_width": "hidden channels of an MLP",
    "batch_size": "sequences in a training batch",
    "lr": "learning rate",
    "weight_decay": "decoupled weight decay",
    "verdict": "dmmse, ridge or between",
    "test_id_*_loss": "error on tasks of the pool (`tf`: the model): mean squared, noiseless labels, over D",
    "test_ood_*_loss": "error on fresh tasks (`tf`: the model): mean squared, noiseless labels, over D",
    "test_id_delta_*": "mean squared difference of predictions from this predictor's on tasks of the pool, over D",
    "test_ood_delta_*": "mean squared difference of predictions from this predictor's on fresh tasks, over D",
    "*_apart": "mean squared difference of ridge's predictions from dMMSE's, over D",
}


# --- when it has trained ---


def gain(config: DiversityConfig, summary: Summary) -> float | None:
    """What a model gains from the context, relative to the exact predictor with the smaller gain.

        (l_1 - l) / min_r (l_r1 - l_r)

    l is the id loss over all positions, l_1 that of the first prediction, which has seen no pair, capped at the loss of
    predicting zero. dMMSE and the model start at the loss of the pool's mean task, ridge at that of zero. So a
    predictor that ignores the context has gain 0 whatever it knows of the pool: on 1024 sequences of the presets -.1
    to .1 for the mean of pools of 2 to 1024 tasks, whose loss is .42 to 1 of zero's. dMMSE and ridge have 1 or more
    (losses .07 and .40 of zero's for M = 2, .35 and .38 for M = 1024), one best step of gradient descent .5 to .8. In a
    pool of one task there is nothing to infer, dMMSE is the mean task, and the gain is measured from the loss of
    predicting zero.
    """
    gained, possible = gains(config, summary)
    return gained / possible if possible and not math.isnan(gained) else None


def gains(config: DiversityConfig, summary: Summary) -> tuple[float, float | None]:
    """A model's gain, and the smaller gain of the exact predictors; None where there is no such predictor."""
    headline, errors = summary["headline"], [_number(error) for error in summary.get("eval_id_errors", [math.nan])]
    zero, loss = _number(headline["id_zero_loss"]), sum(errors) / len(errors)
    start = zero if config.data.num_tasks == 1 else min(errors[0], zero)
    names = {name for name in headline if name.startswith("id_") and name.endswith("_loss")}
    exact = {name: _number(headline[name]) for name in names - {"id_tf_loss", "id_zero_loss"}}
    possible = [(start if name == "id_dmmse_loss" else zero) - value for name, value in exact.items()]
    return start - loss, min((value for value in possible if math.isfinite(value)), default=None)


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


def nothing_to_infer(config: DiversityConfig, summary: Mapping[str, Any]) -> str | None:
    """Why the gain from the context says nothing, or None."""
    if "eval_id_errors" not in summary:
        return "the summary has no errors by position"
    gain, possible = gains(config, summary)
    if not math.isfinite(gain):
        return None  # it has diverged
    if possible is None:
        return "there is no exact predictor to compare with"
    zero = summary["headline"]["id_zero_loss"]
    if zero is None or not possible > NO_GAIN * zero:
        return "the exact predictor gains next to nothing from the context"
    return None


# --- the printed summary ---


def summary_lines(summary: Mapping[str, Any], run: Path, config: DiversityConfig) -> list[str]:
    """The losses of the transformer and of its baselines."""
    numbers, tasks, exact = summary["headline"], config.data.num_tasks, ("dmmse", "ridge", *POSTERIOR_MEANS)
    ridge = (
        "ridge (Bayes for fresh tasks)" if config.data.task_distribution in BAYES_IS_RIDGE else "ridge (best linear)"
    )
    labels = {name: f"{name} prior's mean" for name in POSTERIOR_MEANS} | LABELS | {"ridge": ridge}
    lines = [f"{'squared error / D on ' + str(numbers['tasks']) + ' test sequences':<50}    loss   ± s.e."]
    pool = "contexts of the file, labels as they are" if config.data.file else f"tasks of its pool of {_size(tasks)}"
    for prefix, words in (("id", pool), *([] if config.data.file else [("ood", "fresh tasks")])):
        rows = {f"{prefix}_{name}_loss": labels[name] for name in ("tf", *exact, "zero")}
        rows |= {f"{prefix}_delta_{name}": f"Delta to {name}" for name in exact}
        lines += [f"  {words}:", *(row(text, numbers, key, deeper=1) for key, text in rows.items() if key in numbers)]
    return [*own_contexts(summary), *lines, f"verdict: {numbers['verdict']}"]


def meaning(summary: Mapping[str, Any], run: Path, config: DiversityConfig) -> str:
    """The decoder, and how it compares with dMMSE on tasks of its pool and with ridge on fresh ones."""
    numbers, file = summary["headline"], bool(config.data.file)
    layers, seed = f"a decoder of {counted(config.model.num_layers, 'layer')}", config.data_seed
    if file:
        others = {"ridge on other contexts of the file": numbers.get("id_ridge_loss")}
        return first_line(layers, seed, numbers["id_tf_loss"], others)
    tasks = config.data.num_tasks
    pool = "fresh tasks" if tasks == math.inf else f"pool of {counted(int(tasks), 'task')}"
    exact = {"dMMSE on its pool's tasks": numbers.get("id_dmmse_loss")}
    on_pool = first_line(f"{layers}, {pool}", seed, numbers["id_tf_loss"], exact)
    exact = {"ridge on fresh tasks": numbers.get("ood_ridge_loss")}
    fresh = first_line(f"{layers}, {pool}", seed, numbers["ood_tf_loss"], exact)
    return ", ".join(filter(None, [on_pool, fresh.partition(": ")[2] if on_pool else fresh]))


def _size(tasks: float) -> str:
    return "infinity" if tasks == math.inf else str(tasks)


def panels(loss: str) -> tuple[Panel, ...]:
    """The panels of runs on a loss."""
    exact = (Curve("eval_id_loss", POOL, "model"), Curve("eval_ood_loss", "fresh tasks", "other"))
    return (_loss_panel(f"{loss}, noise included", POOL), Panel("squared error / D (no noise)", exact))


def file_panels(loss: str) -> tuple[Panel, ...]:
    """The panels of such runs on contexts from a file."""
    return (_loss_panel(loss, OWN),)


def _loss_panel(loss: str, tasks: str) -> Panel:
    return Panel(f"loss ({loss})", (Curve("train_loss", "train batch", "train"), Curve("eval_loss", tasks, "model")))


SQUARED = Outputs(
    loss_convention=loss_conventions.LOSS_AND_MSE,
    test_loss=NamedLoss("test_id_loss", columns.at("headline", "id_tf_loss")),
    columns=Columns(ASKED, MEASURED, further=further_means, meanings=MEANINGS_OF_COLUMNS),
    panels=panels("half MSE"),
    file_panels=file_panels("half MSE"),
    summary=summary_lines,
    analyses=(
        Analysis("own_data", ("data",), when=lambda config, table: config.shares_arrays),
        Analysis("latent_batch", when=lambda config, table: not config.data.file),
        Analysis("task_diversity", ("headline",)),
    ),
    commands=("task_diversity",),
    criteria=(Criterion("gain from the context over that of the exact predictor", gain, IN_CONTEXT, at_least=True),),
    undefined=nothing_to_infer,
    meaning=meaning,
)
ERROR = "MAE"
ABSOLUTE = replace(
    SQUARED,
    loss_convention=loss_conventions.ABSOLUTE_AND_MSE,
    panels=panels(ERROR),
    file_panels=file_panels(ERROR),
)
OUTPUTS = replace(SQUARED, by_loss={"absolute_error": ABSOLUTE})
