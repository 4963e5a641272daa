"""Finishes trained runs: the files of its family, then those of every run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from icl_lab.analysis.trained import with_verdict
from icl_lab.families.experiment import experiment_of, part
from icl_lab.lab.configs.identity import config_id
from icl_lab.lab.configs.registry import family_of
from icl_lab.lab.configs.run import RunConfig
from icl_lab.plots.run_figures import draw_run
from icl_lab.runners.llc import Llc
from icl_lab.src.model import Batch, Model
from icl_lab.store import checkpoint, layout, rundir, snapshots
from icl_lab.store.atomic import write_json, write_npz
from icl_lab.store.params import write_params
from icl_lab.store.rundir import now


class Wanted(NamedTuple):
    """What to write beyond the files of every run.

    figures: figures. table: what the sweep's CSV needs. options: values of the family's option flags. llc: when the
    local learning coefficient is estimated during the training.
    """

    figures: bool = True
    table: bool = False
    options: Mapping[str, Any] = {}
    llc: Llc | None = None


DEFAULT_WANTED = Wanted()


class Ending(NamedTuple):
    """How a family's runs end.

    finish(run, config, model, params, eval_set, wanted) writes the family's files and yields measures, one part at a
    time so that a signal can stop it in between; a second call writes the same files. The parameters and the evaluation
    batch are written already. summary(summary, run, config) gives the lines of the printed summary. add(run, wanted)
    writes further files of a run that is done.
    """

    finish: Callable[[Path, Any, Model, Any, Any, Wanted], Iterator[Mapping[str, Any]]]
    summary: Callable[[Mapping[str, Any], Path, Any], list[str]]
    add: Callable[[Path, Wanted], None] = lambda run, wanted: None


def check_parts(config: RunConfig) -> None:
    """`ConfigError` if a config's family lacks a part; those of plugins are imported only here."""
    experiment_of(config)
    ending_of(config)


def ending_of(config: RunConfig) -> Ending:
    """The ending of a config's family."""
    family = family_of(config)
    return part(family.name, family.modules[1], "ENDING", Ending)


def finish(run: Path, config: RunConfig, model: Model, params: Any, eval_set: Any, wanted: Wanted) -> Iterator[None]:
    """Writes the files of a finished run, and then the status "done"."""
    write_params(run, params, {"config_id": config_id(config), "step": config.training.steps})
    write_batch(run, experiment_of(config).eval_batch(eval_set))
    measured: dict[str, Any] = {}
    for part_measured in ending_of(config).finish(run, config, model, params, eval_set, wanted):
        measured |= part_measured
        yield
    yield from _end(run, config, measured, wanted.figures)


def write_batch(run: Path, batch: Batch, name: str = layout.ANALYSIS_BATCH) -> None:
    """Writes an evaluation batch (a NamedTuple of arrays)."""
    write_npz(run / name, jax.tree.map(np.asarray, batch)._asdict())


def _end(run: Path, config: RunConfig, measured: Mapping[str, Any], figures: bool) -> Iterator[None]:
    """Writes what every run has: snapshots, summary, figures if wanted, and the status "done"."""
    if config.snapshots:
        snapshots.export(run)
        yield
    facts = {"name": config.name, "num_steps": config.training.steps}
    numbers = {**rundir.last_metrics(run, 1)[0], **facts, **measured}
    convention = {"loss_convention": family_of(config).loss_convention}
    write_json(run / layout.SUMMARY, {**with_verdict(config, numbers), **convention})
    yield
    if figures:
        draw_run(run)
        yield
    rundir.update_meta(run, status="done", end=now())
    checkpoint.remove(run)


def preload_packages() -> None:
    """Imports the packages for tables and figures, which takes a second. Errors are left to where they are used."""
    with suppress(Exception):
        for name in ("pandas", "matplotlib.figure", "matplotlib.backends.backend_agg"):
            import_module(name)
