"""A finished run in a table on the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cli import printable
from src.config import RunConfig
from store import layout, rundir
from store.readers import expecting, read_json

LABELS = {
    "tf": "trained transformer",
    "gd": "gradient descent, {steps} step{s}",
    "ridge": "ridge (Bayes on clean data)",
    "dmmse": "dMMSE (Bayes for its pool)",
    "laplace": "Laplace prior's mean (sampled)",
    "zero": "zero",
}


def summary_text(run: Path) -> str:
    """The table of a finished run: losses with standard errors, alignment, other input scales, time."""
    summary, config = read_json(run / layout.SUMMARY), rundir.read_config(run)
    with expecting(run / layout.SUMMARY, "a run's summary"):
        lines = ["", _title(config), *RESULTS[config.family](_shown(summary), config)]
    meta = rundir.read_meta(run)
    with expecting(run / layout.META, "a run's meta.json"):
        seconds, per_step = meta["run_seconds"], 1e3 * meta["run_seconds"] / config.training.steps
        times = f"run_seconds {seconds:.1f} ({per_step:.2f} ms a step), compile_seconds {meta['compile_seconds']:.1f}"
    return "\n".join([*lines, f"{times}; figures in {printable(run / layout.FIGURES)}"])


def _results(summary: dict[str, Any], config: RunConfig) -> list[str]:
    numbers, align = summary["headline"], summary["alignment"]
    steps = align["gd_steps"]
    lines = [_header(numbers)]
    for name in (key.removesuffix("_loss") for key in numbers if key.endswith("_loss")):
        label = LABELS.get(name, name).format(steps=steps, s="s" * (steps > 1))
        lines.append(_row(label, *_pair(numbers, f"{name}_loss")))
    if "gd_loss_averaged" in numbers:
        lines.append(_row("  one step, w and query averaged in closed form", *_pair(numbers, "gd_loss_averaged")))
    lines.append(_row("transformer / gradient descent, same tasks", *_pair(numbers, "loss_ratio")))
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


def _layerwise_results(summary: dict[str, Any], config: RunConfig) -> list[str]:
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
    ridge, zero = (found["references"][name] for name in ("ridge", "zero"))
    return [*lines, f"ridge (Bayes) {ridge['mse'][0]:.4g}, median {ridge['median'][0]:.4g}; zero {zero['mse'][0]:.4g}"]


def _sine_results(summary: dict[str, Any], config: RunConfig) -> list[str]:
    numbers, on_grid = summary["headline"], summary["functions"]
    rows = {"after the context": "loss", "before the context": "initial_loss", "zero": "zero_loss"}
    return [
        _header(numbers),
        *(_row(label, *_pair(numbers, name), digits=5) for label, name in rows.items()),
        f"one fixed sine, over the range: loss {on_grid['before_loss']:.5f} before its context, "
        f"{on_grid['after_loss']:.5f} after",
    ]


def _diversity_results(summary: dict[str, Any], config: RunConfig) -> list[str]:
    numbers, tasks = summary["headline"], config.data.num_tasks
    lines = [f"{'squared error / D on ' + str(numbers['tasks']) + ' further sequences':<50}    loss   ± s.e."]
    for prefix, words in (("id", f"tasks of its pool of {tasks or 'infinity'}"), ("ood", "fresh tasks")):
        rows = {f"{prefix}_{name}_loss": LABELS[name] for name in ("tf", "dmmse", "ridge", "laplace", "zero")}
        rows |= {f"{prefix}_delta_{name}": f"Delta to {name}" for name in ("dmmse", "ridge", "laplace")}
        lines += [f"{words}:", *(_row(text, *_pair(numbers, key)) for key, text in rows.items() if key in numbers)]
    return [*lines, f"verdict: {numbers['verdict']}"]


# family -> the lines of its summary
RESULTS = {
    "regression": _results,
    "layerwise": _layerwise_results,
    "sine": _sine_results,
    "diversity": _diversity_results,
}


def _title(config: RunConfig) -> str:
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


def _pair(numbers: dict[str, Any], key: str) -> tuple[float, float]:
    return numbers[key], numbers[f"{key}_se"]


def _row(label: str, value: float, error: float, digits: int = 4) -> str:
    return f"  {label:<48}{value:8.{digits}f}   {error:.{digits}f}"


def _copying_row(name: str, values: dict[str, float]) -> str:
    version = {"averaged_before_norm": "gradient averaged over tasks", "per_task": "norm of each task"}[name]
    return (
        f"first layer's sensitivity ({version}): own {values['own']:.3f}, following {values['next']:.3f}, "
        f"other {values['other']:.3f}; following / other {values['next_over_other']:.1f}"
    )
