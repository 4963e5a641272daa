"""Finishes trained runs: their predictions, the analyses that their family declares, and the files of every run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from icl_lab.analysis.loaded_run import LoadedRun, load_run
from icl_lab.analysis.trained import with_verdict
from icl_lab.families.task import task_of
from icl_lab.lab.configs.identity import config_id
from icl_lab.lab.configs.outputs import Analysis
from icl_lab.lab.configs.registry import family_of, outputs_of
from icl_lab.lab.configs.run import RunConfig
from icl_lab.lab.configs.stopping import reason_of
from icl_lab.lab.native.kernel import XLA_NAME
from icl_lab.plots.run_figures import draw_run
from icl_lab.runners import kernel
from icl_lab.runners.analyses import ANALYSES, write_batch
from icl_lab.runners.llc import Llc
from icl_lab.src.model import Model
from icl_lab.store import best_params, checkpoint, layout, provenance, rundir, snapshots
from icl_lab.store.atomic import write_json, write_npz
from icl_lab.store.metrics import last_metrics, last_step, metrics
from icl_lab.store.params import write_params
from icl_lab.store.rundir import now


class OutputOptions(NamedTuple):
    """What to write beyond the files of every run.

    figures: figures. table: what the sweep's CSV needs. options: values of the flags that ask for analyses. llc: when
    the local learning coefficient is estimated during the training. keep_state: the state at the end, from which a
    longer run can go on.
    """

    figures: bool = True
    table: bool = False
    options: Mapping[str, Any] = {}
    llc: Llc | None = None
    keep_state: bool = True


DEFAULT_OUTPUTS = OutputOptions()


def check_parts(config: RunConfig) -> None:
    """`ConfigError` if a config's family lacks a part; those of plugins are imported only here."""
    task_of(config)
    outputs_of(family_of(config))


def finalize(
    run: Path, config: RunConfig, model: Model, params: Any, eval_set: Any, outputs: OutputOptions
) -> Iterator[None]:
    """Writes the files of a finished run, and then the status "done".

    It yields after each part, so that a signal can stop it there; a second call writes the same files.
    """
    task = task_of(config)
    write_params(run, params, {"config_id": config_id(config), "step": last_step(run, config)})
    write_batch(run, eval_set.batch)
    if predictions := task.predictions(model, params, eval_set):
        write_npz(run / layout.PREDICTIONS, {name: np.asarray(values) for name, values in predictions.items()})
    yield
    loaded = LoadedRun(run, config, model, params, jax.tree.map(np.asarray, eval_set.batch), eval_set=eval_set)
    sections: dict[str, Any] = {}
    if numbers := task.test_metrics(config, model, params, eval_set):
        sections["headline"] = numbers
        yield
    for analysis in outputs_of(family_of(config)).analyses:
        if analysis.when(config, outputs.table) and (not analysis.options or _asked(analysis, outputs)):
            sections |= _sections(analysis, loaded, outputs)
            yield
    yield from _end(run, config, sections, outputs)


def add_asked(run: Path, config: RunConfig, outputs: OutputOptions) -> None:
    """Adds the analyses that options ask for to a run that is done, where it lacks them."""
    for analysis in outputs_of(family_of(config)).analyses:
        if analysis.options and _asked(analysis, outputs) and not (run / analysis.file).exists():
            _sections(analysis, load_run(run), outputs)
            draw_run(run)


def _asked(analysis: Analysis, outputs: OutputOptions) -> bool:
    return bool(outputs.options.get(analysis.options[0].name))


def _sections(analysis: Analysis, loaded: LoadedRun, outputs: OutputOptions) -> Mapping[str, Any]:
    """Runs an analysis, and gives its sections of the summary."""
    options = {flag.name: outputs.options[flag.name] for flag in analysis.options[1:]}
    result = ANALYSES[analysis.name](loaded, **analysis.arguments, **options)
    if len(analysis.sections) == 1:
        return {analysis.sections[0]: result}
    return {name: result[name] for name in analysis.sections if name in result}


def _end(run: Path, config: RunConfig, sections: Mapping[str, Any], outputs: OutputOptions) -> Iterator[None]:
    """Writes what every run has: snapshots, summary, figures if outputs, and the status "done"."""
    if config.snapshots:
        snapshots.export(run)
        yield
    facts = {"name": config.name, "num_steps": last_step(run, config), **_early_end(run, config)}
    if (computed := kernel.of_run(run)) != XLA_NAME:
        facts[provenance.KERNEL] = computed
    if config.keep_best:
        facts["best"] = best_params.facts(run)
    numbers = {**last_metrics(run, 1)[0], **facts, **sections}
    convention = {"loss_convention": outputs_of(family_of(config)).of(config).loss_convention}
    write_json(run / layout.SUMMARY, {**with_verdict(config, numbers), **convention})
    yield
    if outputs.figures:
        draw_run(run)
        yield
    kept = {checkpoint.KEEPS_STATE: True} if outputs.keep_state else {}
    rundir.update_meta(run, status="done", end=now(), **kept)
    checkpoint.remove(run)


def _early_end(run: Path, config: RunConfig) -> dict[str, Any]:
    """Why a training has ended before its last step, for the summary; nothing if it has not."""
    if (step := last_step(run, config)) == config.training.steps:
        return {}
    return {"stopped_early": {"step": step, "reason": reason_of(config.stop_when, config.patience, metrics(run))}}


def preload_packages() -> None:
    """Imports the packages for tables and figures, which takes a second. Errors are left to where they are used."""
    with suppress(Exception):
        for name in ("pandas", "matplotlib.figure", "matplotlib.backends.backend_agg"):
            import_module(name)
