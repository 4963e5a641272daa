"""A finished run in a table on the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cli import printable
from configs.run import RunConfig
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


def summary_text(run: Path) -> str:
    """The table of a finished run: what its family shows, whether it left the plateau, time."""
    from analysis.plateau import in_words  # this and the next import JAX
    from runners.finish import ending_of

    summary, config = read_json(run / layout.SUMMARY), rundir.read_config(run)
    with expecting(run / layout.SUMMARY, "a run's summary"):
        found = shown(summary)
        lines = [
            "",
            _title(config),
            *ending_of(config).summary(found, run, config),
            *filter(None, [in_words(config, found)]),
        ]
    meta = rundir.read_meta(run)
    with expecting(run / layout.META, "a run's meta.json"):
        seconds, per_step = meta["run_seconds"], 1e3 * meta["run_seconds"] / config.training.steps
        times = f"run_seconds {seconds:.1f} ({per_step:.2f} ms a step), compile_seconds {meta['compile_seconds']:.1f}"
    return "\n".join([*lines, f"{times}; figures in {printable(run / layout.FIGURES)}"])


def _title(config: RunConfig) -> str:
    return (
        f"{config.name}, seed {config.data_seed}: {config.training.steps} steps of {config.training.batch_size} tasks"
    )


def header(numbers: Mapping[str, Any], loss: str = "half MSE") -> str:
    """The line above losses on the test set, which says what the loss is."""
    return f"{f'loss ({loss}) on ' + str(numbers['tasks']) + ' further tasks':<50}    loss   ± s.e."


def shown(value: Any) -> Any:
    """JSON's null as the number it stands for, one that is not finite; text as a terminal shows it."""
    if isinstance(value, dict):
        return {printable(name): shown(item) for name, item in value.items()}
    if isinstance(value, list):
        return [shown(item) for item in value]
    if isinstance(value, str):
        return printable(value)
    return float("nan") if value is None else value


def row(label: str, numbers: Mapping[str, Any], key: str, digits: int = 4, deeper: int = 0) -> str:
    """A number with its standard error, or why there is none, below the header that it belongs to."""
    indented = f"{'  ' * (1 + deeper) + label:<50}"
    if f"{key}_reason" in numbers:
        return f"{indented}not defined: {numbers[f'{key}_reason']}"
    return f"{indented}{numbers[key]:8.{digits}f}   {numbers[f'{key}_se']:.{digits}f}"
