"""The summary of a finished run, printed on the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from icl_lab.lab.configs.run import RunConfig
from icl_lab.src.words import printable
from icl_lab.store import layout, rundir
from icl_lab.store.readers import expecting

LABELS = {
    "tf": "trained transformer",
    "gd": "gradient descent, {steps} step{s}",
    "gd_plus_plus": "GD++, {steps} step{s}, fitted rates",
    "ridge": "ridge (Bayes on clean data)",
    "dmmse": "dMMSE (Bayes for its pool)",
    "laplace": "Laplace prior's mean (sampled)",
    "mixture": "mixture prior's mean (exact)",
    "sparse": "sparse prior's mean (exact)",
    "zero": "zero",
}


def summary_text(run: Path) -> str:
    """The summary of a finished run: its family's lines, whether it trained, and times."""
    from icl_lab.analysis.trained import in_words  # this and the next import JAX
    from icl_lab.runners.finish import ending_of

    summary, config = rundir.read_summary(run), rundir.read_config(run)
    with expecting(run / layout.SUMMARY, "a run's summary"):
        values = shown(summary)
        lines = [
            "",
            _title(config),
            *ending_of(config).summary(values, run, config),
            *filter(None, [in_words(config, values)]),
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
    """The header of a table of losses on the test set."""
    return f"{f'loss ({loss}) on ' + str(numbers['tasks']) + ' test tasks':<50}    loss   ± s.e."


def shown(value: Any) -> Any:
    """JSON values for the terminal: NaN for null, and text without control characters."""
    if isinstance(value, dict):
        return {printable(name): shown(item) for name, item in value.items()}
    if isinstance(value, list):
        return [shown(item) for item in value]
    if isinstance(value, str):
        return printable(value)
    return float("nan") if value is None else value


def row(label: str, numbers: Mapping[str, Any], key: str, digits: int = 4, deeper: int = 0) -> str:
    """A row of a table: a number with its standard error, or the reason why it is not defined."""
    indented = f"{'  ' * (1 + deeper) + label:<50}"
    if f"{key}_reason" in numbers:
        return f"{indented}not defined: {numbers[f'{key}_reason']}"
    return f"{indented}{numbers[key]:8.{digits}f}   {numbers[f'{key}_se']:.{digits}f}"
