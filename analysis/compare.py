"""Finished runs side by side; their mean with a 95 % interval where they differ in seeds alone.

python -m analysis.compare RUN RUN ...
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from icl_lab.analysis import trained
from icl_lab.lab import cli
from icl_lab.lab.configs.run import RunConfig
from icl_lab.src.statistics import mean_and_interval
from icl_lab.src.words import printable
from icl_lab.store import layout, provenance
from icl_lab.store.metrics import read_summary
from icl_lab.store.outputs import in_path
from icl_lab.store.readers import StoreError, expecting
from icl_lab.store.rundir import read_config, read_meta

# column -> where it stands in metrics_summary.json
COLUMNS = {
    "loss ratio": ("headline", "loss_ratio"),
    "tf loss": ("headline", "tf_loss"),
    "gd loss": ("headline", "gd_loss"),
    "cosine": ("alignment", "model_cos"),
    "preds diff": ("alignment", "preds_diff"),
    "model diff": ("alignment", "model_diff"),
}
WORDS = {True: "yes", False: "NO", None: "not defined"}  # whether a run has trained


def table(header: Sequence[str], rows: dict[str, Sequence[Any]]) -> str:
    """Rows of numbers (or words) under their header, aligned."""
    first = max(len(name) for name in rows) + 2
    lines = [" " * first + "".join(f"{name:>14}" for name in header)]
    for name, values in rows.items():
        cells = (f"{value:14.4f}" if isinstance(value, float) else f"{value:>14}" for value in values)
        lines.append(f"{name:{first}}" + "".join(cells))
    return "\n".join(lines)


def compare(runs: Sequence[Path]) -> str:
    """The table of the test-set losses and alignment of runs; the mean where they are seeds of one experiment."""
    summaries = [_summary(run) for run in runs]
    values = np.array([_numbers(run, summary) for run, summary in zip(runs, summaries, strict=True)])
    verdicts = [trained.of_run(run) for run in runs]
    known = [met for met in verdicts if met is not None]
    rows: dict[str, Sequence[Any]] = {
        printable(run): [*map(float, row), WORDS[met]] for run, row, met in zip(runs, values, verdicts, strict=True)
    }
    if len(runs) > 1 and len({_without_seeds(read_config(run)) for run in runs}) == 1:
        mean, half_width = mean_and_interval(values)
        count = f"{sum(known)} of {len(known)}" if known else WORDS[None]
        rows |= {"mean": [*map(float, mean), count], "± 95 %": [*map(float, half_width), ""]}
    return "\n".join([table([*COLUMNS, "trained"], rows), *_resumed_elsewhere(runs)])


def _resumed_elsewhere(runs: Sequence[Path]) -> list[str]:
    """A line for each run that is not known to be bitwise identical to an uninterrupted one."""
    said = {run: provenance.is_bitwise(read_meta(run)) for run in runs}
    return [
        f"bitwise {provenance.in_words(bitwise)}: {printable(run)}"
        + (f", resumed elsewhere with {provenance.describe_resumes(run)}" if bitwise is False else "")
        for run, bitwise in said.items()
        if not bitwise
    ]


def _summary(run: Path) -> dict[str, Any]:
    read_config(run)
    if not (run / layout.SUMMARY).exists():
        raise StoreError(f"{run} is not finished: it has no {layout.SUMMARY}")
    return read_summary(run)


def _numbers(run: Path, summary: Mapping[str, Any]) -> list[float]:
    with expecting(run / layout.SUMMARY, "a run's summary"):
        return [float(summary[part][name]) for part, name in COLUMNS.values()]


def _without_seeds(config: RunConfig) -> RunConfig:
    return replace(config, data_seed=0, init_seed=0, preset="")


def parser() -> cli.Parser:
    """The flags."""
    built = cli.Parser("analysis.compare", "Shows finished runs side by side, with the mean over seeds.")
    built.add_argument("runs", type=in_path, nargs="+", help="run directories")
    return built


def main(argv: list[str]) -> None:
    """The command line."""
    print(compare(parser().parse(argv).runs))


if __name__ == "__main__":
    cli.launch(main)
