"""A finished run in a table on the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from shlex import quote
from typing import Any

from analysis import plateau
from cli import printable
from configs.regression import RegressionConfig
from src.config import BAYES_IS_RIDGE, POSTERIOR_MEANS
from store import layout, rundir
from store.readers import expecting, read_json

LABELS = {
    "tf": "trained transformer",
    "gd": "gradient descent, {steps} step{s}",
    "gd_plus_plus": "GD++, {steps} step{s}, fitted rates",
    "ridge": "ridge (Bayes on clean data)",
    "dmmse": "dMMSE (Bayes for its pool)",
    "laplace": "Laplace prior's mean (sampled)",
    "zero": "zero",
}
DISTRACTED = "ridge that ignores the distractors"  # in place of ridge where the contexts hold distractor labels
AVERAGED = "one step, w and query averaged in closed form"
CORRUPTED = {  # what is called otherwise where the contexts are corrupted
    "gd": "gradient descent, {steps} step{s} (clean step size)",
    "ridge": "ridge that ignores the corruption",
    "least squares": "least squares that ignores the corruption",
}
INFORMED = {  # the comparators that know of the corruption
    "gd_tuned_step": "gradient descent, step size tuned on it",
    "linear_mmse": "linear MMSE, knows p and sigma",
    "mask_bayes": "Bayes over masks, knows p and sigma",
}


def summary_text(run: Path) -> str:
    """The table of a finished run: losses with standard errors, alignment, other input scales, time."""
    summary, config = read_json(run / layout.SUMMARY), rundir.read_config(run)
    with expecting(run / layout.SUMMARY, "a run's summary"):
        shown = _shown(summary | {"comparators": _comparators(run, config)})
        lines = ["", _title(config), *RESULTS[config.family](shown, config), plateau.in_words(config, shown)]
    meta = rundir.read_meta(run)
    with expecting(run / layout.META, "a run's meta.json"):
        seconds, per_step = meta["run_seconds"], 1e3 * meta["run_seconds"] / config.training.steps
        times = f"run_seconds {seconds:.1f} ({per_step:.2f} ms a step), compile_seconds {meta['compile_seconds']:.1f}"
    return "\n".join([*lines, f"{times}; figures in {printable(run / layout.FIGURES)}"])


def _results(summary: dict[str, Any], config: RegressionConfig) -> list[str]:
    numbers, align = summary["headline"], summary["alignment"]
    lines = [_header(numbers), *_losses(summary, config)]
    lines.append(_row("transformer / gradient descent, same tasks", numbers, "loss_ratio"))
    if "gd_plus_plus_ratio" in numbers:
        lines.append(_row("transformer / GD++, same tasks", numbers, "gd_plus_plus_ratio"))
    lines += [
        f"alignment on {align['tasks']} tasks: cosine of sensitivities {align['model_cos']:.4f}, mean |prediction "
        f"difference| {align['preds_diff']:.4f}, mean ‖sensitivity difference‖ {align['model_diff']:.4f}",
        f"eta/N {align['eta']:.4f} ({align['eta_source']})",
        "inputs times "
        + ", ".join(f"{row['alpha']:g}: {row['test_mse'] / row['gd_test_mse']:.3f}" for row in summary["ood"])
        + " (MSE over gradient descent's)",
    ]
    lines += [_copying_row(name, values) for name, values in summary.get("copying", {}).items() if name != "tasks"]
    return lines


def _comparators(run: Path, config: RegressionConfig) -> dict[str, Any]:
    """The comparators of a run on corrupted contexts, or the command that measures them; nothing for other runs."""
    if config.family != "regression" or config.eval.hit_rate == 0:
        return {}
    path = run / layout.COMPARATORS
    return read_json(path) if path.exists() else {"command": f"python -m analysis.comparators --run {quote(str(run))}"}


def _losses(summary: dict[str, Any], config: RegressionConfig) -> Iterator[str]:
    """A row for each loss; where contexts are corrupted, what knows of it stands before ridge, which does not."""
    numbers, found = summary["headline"], summary["comparators"]
    steps = summary["alignment"]["gd_steps"]
    labels = LABELS | ({"ridge": DISTRACTED} if config.data.num_distractors else {}) | (CORRUPTED if found else {})
    if found and config.data.noise_std == 0:
        labels["ridge"] = CORRUPTED["least squares"]
    for name in (key.removesuffix("_loss") for key in numbers if key.endswith("_loss")):
        if name == "ridge" and found:
            yield from _informed(found)
        label = labels.get(name, name).format(steps=steps, s="s" * (steps > 1))
        yield _row(label, numbers, f"{name}_loss")
        if name == "gd" and "gd_loss_averaged" in numbers:
            yield _row(AVERAGED, numbers, "gd_loss_averaged", deeper=1)


def _informed(found: dict[str, Any]) -> Iterator[str]:
    if "command" in found:
        yield f"  {'what knows of the corruption':<48}{found['command']}"
        return
    for name, label in INFORMED.items():
        part = found[name] | ({"loss_reason": found[name]["reason"]} if "reason" in found[name] else {})
        yield _row(label, part, "loss")


def _layerwise_results(summary: dict[str, Any], config: RegressionConfig) -> list[str]:
    found = summary["layerwise"]
    kind = f"rolled out with damping {found['damping']:g}" if found["rolled_out"] else f"{found['layers']} layers"
    lines = [
        f"{kind}: {found['verdict']}",
        f"{'MSE on ' + str(found['num_tasks']) + ' further tasks':<32}mean    ± s.e.    median GD median     TF/GD",
    ]
    for layer in (layer for layer in range(found["layers"]) if layer + 1 in (1, 2, 4, 8, 12, 24, found["layers"])):
        numbers = (found[name][layer] for name in ("mse", "sem", "median"))
        gd, ratio = found["gd"]["median"][layer], found["ratio_to_gd"][layer]
        lines.append(f"  layer {layer + 1:<20}" + "".join(f"{number:10.4g}" for number in (*numbers, gd, ratio)))
    for name, label in {"ridge": "ridge (Bayes)", "zero": "zero"}.items():
        numbers = (found["references"][name][statistic][0] for statistic in ("mse", "sem", "median"))
        lines.append(f"  {label:<26}" + "".join(f"{number:10.4g}" for number in numbers))
    return lines


def _sine_results(summary: dict[str, Any], config: RegressionConfig) -> list[str]:
    numbers, on_grid = summary["headline"], summary["functions"]
    rows = {"after the context": "loss", "before the context": "initial_loss", "zero": "zero_loss"}
    return [
        _header(numbers),
        *(_row(label, numbers, name, digits=5) for label, name in rows.items()),
        f"one fixed sine, over the range: loss {on_grid['before_loss']:.5f} before its context, "
        f"{on_grid['after_loss']:.5f} after",
    ]


def _diversity_results(summary: dict[str, Any], config: RegressionConfig) -> list[str]:
    numbers, tasks, exact = summary["headline"], config.data.num_tasks, ("dmmse", "ridge", *POSTERIOR_MEANS)
    ridge = "ridge (Bayes for fresh tasks)" if config.data.task_law in BAYES_IS_RIDGE else "ridge (best linear)"
    labels = {name: f"{name} prior's mean" for name in POSTERIOR_MEANS} | LABELS | {"ridge": ridge}
    lines = [f"{'squared error / D on ' + str(numbers['tasks']) + ' further sequences':<50}    loss   ± s.e."]
    for prefix, words in (("id", f"tasks of its pool of {tasks or 'infinity'}"), ("ood", "fresh tasks")):
        rows = {f"{prefix}_{name}_loss": labels[name] for name in ("tf", *exact, "zero")}
        rows |= {f"{prefix}_delta_{name}": f"Delta to {name}" for name in exact}
        lines += [f"  {words}:", *(_row(text, numbers, key, deeper=1) for key, text in rows.items() if key in numbers)]
    return [*lines, f"verdict: {numbers['verdict']}"]


# family -> the lines of its summary
RESULTS = {
    "regression": _results,
    "layerwise": _layerwise_results,
    "sine": _sine_results,
    "diversity": _diversity_results,
}


def _title(config: RegressionConfig) -> str:
    return (
        f"{config.name}, seed {config.data_seed}: {config.training.steps} steps of {config.training.batch_size} tasks"
    )


def _header(numbers: dict[str, Any]) -> str:
    return f"{'loss (half MSE) on ' + str(numbers['tasks']) + ' further tasks':<50}    loss   ± s.e."


def _shown(value: Any) -> Any:
    """JSON's null as the number it stands for, one that is not finite; text as a terminal shows it."""
    if isinstance(value, dict):
        return {printable(name): _shown(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_shown(item) for item in value]
    if isinstance(value, str):
        return printable(value)
    return float("nan") if value is None else value


def _row(label: str, numbers: Mapping[str, Any], key: str, digits: int = 4, deeper: int = 0) -> str:
    """A number with its standard error, or why there is none, below the header that it belongs to."""
    indented = f"{'  ' * (1 + deeper) + label:<50}"
    if f"{key}_reason" in numbers:
        return f"{indented}not defined: {numbers[f'{key}_reason']}"
    return f"{indented}{numbers[key]:8.{digits}f}   {numbers[f'{key}_se']:.{digits}f}"


def _copying_row(name: str, values: dict[str, float]) -> str:
    version = {"averaged_before_norm": "gradient averaged over tasks", "per_task": "norm of each task"}[name]
    return (
        f"first layer's sensitivity ({version}): own {values['own']:.3f}, following {values['next']:.3f}, "
        f"other {values['other']:.3f}; following / other {values['next_over_other']:.1f}"
    )
