"""What the runs of all families end with, and what can be asked of them beyond that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from analysis.plateau import left_plateau
from configs.columns import HALF_MSE
from configs.regression import RegressionConfig
from plots.run_figures import draw_run
from store import checkpoint, layout, rundir, snapshots
from store.atomic import write_json
from store.provenance import now


class Wanted(NamedTuple):
    """What a finished run leaves beyond what every run does.

    attention_batch: how many tasks to capture attention of, or None; figures; corruption: what the corruption of its
    evaluation contexts does, to attention and to the algorithms that know of it.
    """

    attention_batch: int | None = None
    figures: bool = True
    corruption: bool = False


NOTHING_MORE = Wanted()


def end(run: Path, config: RegressionConfig, measured: Mapping[str, Any], figures: bool) -> Iterator[None]:
    """The last of a run of any family: its summary, its figures if wanted, and the status "done"."""
    if config.snapshots:
        snapshots.export(run)
        yield
    facts = {"name": config.name, "num_steps": config.training.steps}
    numbers = rundir.read_metrics(run)[-1] | facts | measured
    summary = numbers | {"left_plateau": left_plateau(config, numbers), "loss_convention": HALF_MSE}
    write_json(run / layout.SUMMARY, summary)
    yield
    if figures:
        draw_run(run)
        yield
    rundir.update_meta(run, status="done", end=now())
    checkpoint.remove(run)


def import_what_ends_a_run() -> None:
    """Imports what tables and figures need, which takes a second. What fails is said where it is needed, not here."""
    with suppress(Exception):
        for name in ("pandas", "matplotlib.figure", "matplotlib.backends.backend_agg"):
            import_module(name)
