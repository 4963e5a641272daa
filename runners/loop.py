"""Trains a pack of runs in their directories; a single run is a pack of one.

The host reads values only between chunks: there it records, checks for divergence, saves, and checks for signals.
`src.train` has the step and the chunk, `pack` the state, `resume` what begins and goes on, `finish` the outputs.
"""

from __future__ import annotations

import contextlib
import threading
import time
import traceback
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from icl_lab.families.shared_arrays import note_frozen
from icl_lab.families.task import model_of
from icl_lab.lab.configs.run import RunConfig
from icl_lab.lab.executors.signals import Signals, Stopped, catch_signals
from icl_lab.lab.native.kernel import ASKED, AUTO, XLA, Kernel
from icl_lab.lab.progress import NULL_LOGGER, Logger
from icl_lab.runners import kernel as kernels
from icl_lab.runners import llc
from icl_lab.runners.conditions import device_text, note_conditions
from icl_lab.runners.distributed import agree_on, check_same_step
from icl_lab.runners.early_ends import EarlyEnds, check_column
from icl_lab.runners.extend import extend
from icl_lab.runners.finish import DEFAULT_OUTPUTS, OutputOptions, add_asked, check_parts, finalize, preload_packages
from icl_lab.runners.llc import Watch
from icl_lab.runners.locks import locked_runs
from icl_lab.runners.pack import GROWTH, Pack
from icl_lab.runners.parameters import check_parameters
from icl_lab.runners.resume import (
    AT_STEP_0,
    DEFAULT_PERSISTENCE,
    Persistence,
    Start,
    begin,
    by_checkpoint,
    cut_files,
)
from icl_lab.runners.static_shape import Run, static_shape, training_part
from icl_lab.src.checks import one_of
from icl_lab.src.precision import use_highest_precision
from icl_lab.src.train import NEVER
from icl_lab.src.words import printable
from icl_lab.store import checkpoint, provenance, rundir, snapshots
from icl_lab.store.metrics import append_metrics, last_metrics
from icl_lab.store.rundir import now
from icl_lab.store.weights import Given, weights_of

__all__ = ["OutputOptions", "Run", "run_one", "run_pack"]


def run_pack(
    runs: Sequence[Run],
    logger: Logger,
    outputs: OutputOptions = DEFAULT_OUTPUTS,
    width: int = 1,
    signals: Signals | None = None,
    persistence: Persistence = DEFAULT_PERSISTENCE,
    start: Start = AT_STEP_0,
    kernel: Kernel = XLA,
) -> str:
    """Trains and analyses the runs that are not done, in directories that the caller has locked.

    A pack holds at most `width` trainings and is padded to it, since a run's bits depend on the width. The configs may
    differ in seeds, learning rate, evaluation and the fields in `Family.batched`; `ValueError` otherwise. Configs that
    differ in evaluation alone share a training. `signals` is given by a caller who catches signals between packs too,
    `start` where runs that have not begun are to start from, and `kernel` what `runners.kernel` has chosen.
    Returns "done", "stopped" (by a signal, with work left) or "diverged" (all that trained).
    """
    trainings = {training_part(run.config) for run in runs}
    if len(trainings) > width or len({static_shape(run.config) for run in runs}) > 1:
        raise ValueError(f"a pack holds at most {width} trainings here, of one static shape")
    for run in runs:
        check_parts(run.config)
        llc.check(outputs.llc, run.directory, run.config)
        check_parameters(run, start.weights_of(run.config))
        check_column(run)
    use_highest_precision()
    logger.line(f"device: {device_text()}")
    for note in dict.fromkeys(note for run in runs for note in run.config.notes()):
        logger.line(printable(note))
    status = {run: rundir.read_status(run.directory) for run in runs}
    pending = [run for run in runs if status[run] not in rundir.FINISHED]
    for run in (run for run in pending if checkpoint.steps(run.directory)):
        llc.check_resumed(outputs.llc, run.directory)
    groups = [(together, kernels.settled(kernel, together)) for together in by_checkpoint(pending)]
    for line in dict.fromkeys(settled.line() for _, settled in groups if settled.path or settled.why):
        logger.line(printable(line))
    if persistence.strict_resume:
        for together, settled in groups:
            conditions = provenance.current_conditions(width, device_text(), settled.described)
            for run in together:
                provenance.check_conditions(run.directory, conditions)
    with contextlib.nullcontext(signals) if signals else catch_signals() as caught:
        try:
            for run in (run for run in runs if status[run] == "done"):
                checkpoint.remove(run.directory)  # left if it was killed just after its status became "done"
                caught.check()
                add_asked(run.directory, run.config, outputs)
            for together, settled in groups:
                caught.check()
                _train_and_finish(together, width, logger, outputs, caught, persistence, start, settled)
        except Stopped as stop:
            _mark_stopped(pending, stop.signal)
            return "stopped"
        except Exception:
            if len(pending) == 1:  # else it is not known yet which run failed
                rundir.mark_failed(pending[0].directory, traceback.format_exc())
            raise
    return "done" if any(rundir.read_status(run.directory) == "done" for run in runs) else "diverged"


def run_one(
    config: RunConfig,
    directory: Path,
    logger: Logger = NULL_LOGGER,
    persistence: Persistence = DEFAULT_PERSISTENCE,
    init_from: Given | None = None,
    kernel: str = AUTO,
) -> str:
    """Trains or resumes a config in a run directory, as the runners do; for use from Python.

    It starts from the parameters `init_from` (a run[@step], a safetensors file, or arrays), or goes on from a shorter
    run of the same training beside it (`runners.extend`). `StoreError` if the directory holds another config; if
    strict, also if the run would resume under other conditions.
    """
    weights = None if init_from is None else weights_of(init_from)
    config = config if weights is None else replace(config, init_from=weights.source)
    rundir.choose(config, str(directory), overwrite=False)
    run, start = Run(directory, config), Start(True, () if weights is None else (weights,))
    one_of("kernel", kernel, ASKED)
    chosen = kernels.chosen(kernel, [run])
    with locked_runs([run], strict=persistence.strict_resume):
        return run_pack([run], logger, persistence=persistence, start=start, kernel=chosen)


def _train_and_finish(
    runs: Sequence[Run],
    width: int,
    logger: Logger,
    outputs: OutputOptions,
    signals: Signals,
    persistence: Persistence,
    start: Start,
    kernel: Kernel,
) -> None:
    for run in runs:
        if not run.config.requires and not run.config.shared:
            model_of(run.config)  # a part of a plugin's that cannot be is refused before anything is written
    for run in runs:
        new = begin(run, width, device_text(), llc.note(outputs.llc) | kernels.facts(kernel), start)
        if new and start.extend and jax.process_count() == 1:
            conditions = provenance.current_conditions(width, device_text(), kernel.described)
            if line := extend(run, conditions, outputs.llc):
                logger.line(line)
    _check_signals(signals)
    pack = Pack(runs, width, kernel)
    check_same_step(pack.step, [run.directory for run in runs])
    _check_signals(signals)
    watch = Watch(outputs.llc)
    ends = EarlyEnds(pack)
    _align_files(pack, watch, ends)
    note_conditions(pack, logger)
    _train(pack, logger, signals, persistence, watch, ends)
    if jax.process_index() > 0:
        return
    for index, (directory, config) in enumerate(pack.runs):
        if pack.alive[index]:
            for _ in finalize(directory, config, pack.model, ends.last_params(index), pack.eval_sets[index], outputs):
                signals.check()


def _check_signals(signals: Signals) -> None:
    agree_on(signals)
    signals.check()


# --- the files of runs that begin or go on ---


def _align_files(pack: Pack, watch: Watch, ends: EarlyEnds) -> None:
    """Cuts checkpoints and metrics at the pack's step, so that no checkpoint is later than its records."""
    first_losses = pack.first_losses() if pack.step == 0 else np.empty(0)
    for index, (directory, config) in enumerate(pack.runs):
        cut_files(directory, pack.step, pack.record_steps)
        if config.snapshots and pack.step == 0:
            snapshots.begin(directory, pack.record_steps, pack.params(index))
        elif config.snapshots:
            snapshots.check(directory)
        if pack.step == 0:
            note_frozen(directory, pack.shared, config)
            ends.see(index, _record(pack, index, float(first_losses[index]), watch))
        else:
            ends.see_again(index, pack.runs[index])
    meta = rundir.read_meta(pack.runs[0].directory)
    pack.run_seconds = float(meta["run_seconds"])
    pack.chunk_steps = min(int(meta.get("chunk_steps", 1)), GROWTH)  # the machine may be slower now


# --- training ---


class Saved(NamedTuple):
    """The last save: the step, when it ended by the monotonic clock, and the seconds it took."""

    step: int
    at: float
    seconds: float


def _train(
    pack: Pack, logger: Logger, signals: Signals, persistence: Persistence, watch: Watch, ends: EarlyEnds
) -> None:
    """Trains to the end, a signal, or until every run has ended or diverged; saves now and then, and when it stops."""
    imports = threading.Thread(target=preload_packages)
    imports.start()  # Python is idle during training
    logger.start(pack.step, pack.num_steps)
    saved, recorded = Saved(pack.step, time.monotonic(), 0.0), {*pack.record_steps}
    while pack.step < pack.num_steps and ends.any_trains:
        losses, diverged_at = pack.advance()
        for index, run in enumerate(pack.runs):
            if ends.trains(index) and diverged_at[index] != NEVER:
                pack.alive[index] = False
                _mark_diverged(run.directory, int(diverged_at[index]), pack.run_seconds)
            elif ends.trains(index) and pack.step in recorded:
                ends.see(index, _record(pack, index, float(losses[index]), watch))
        if time.monotonic() - saved.at >= persistence.pause(saved.seconds):
            saved = _save(pack, ends)
        logger.progress(pack.step, float(np.mean(losses)), watch.note)
        agree_on(signals)
        if signals.received:
            break
    logger.stop()
    if any(pack.alive):  # else nothing is left to stop
        if pack.step > saved.step:
            _save(pack, ends)
        signals.check()
    imports.join()


def _record(pack: Pack, index: int, train_loss: float, watch: Watch) -> dict[str, Any]:
    """Appends a record to a run's metrics, after its snapshot, so that every record has one; returns it."""
    directory, config = pack.runs[index]
    if config.snapshots:
        snapshots.write(directory, pack.step, pack.params(index))
    record = pack.record(index, train_loss) | watch.values(pack, index)
    append_metrics(directory, record)
    return record


def _save(pack: Pack, ends: EarlyEnds) -> Saved:
    """Saves the runs that have neither ended nor diverged.

    The records up to this step are on disk already; a resume cuts later ones.
    """
    began = time.monotonic()
    for index in filter(ends.trains, range(len(pack.runs))):
        ends.save(index)
    ended = time.monotonic()
    return Saved(pack.step, ended, ended - began)


def _mark_diverged(directory: Path, step: int, run_seconds: float) -> None:
    losses = [record["eval_loss"] for record in last_metrics(directory, 3)]
    ended = {"diverged_at": step, "last_losses": losses, "run_seconds": run_seconds, "end": now()}
    rundir.update_meta(directory, status="diverged", **ended)


def _mark_stopped(runs: Sequence[Run], number: int) -> None:
    """Sets the status "stopped" of unfinished runs, and the step at which they will resume."""
    for directory, _ in runs:
        if rundir.read_status(directory) == "running":
            step = max(checkpoint.steps(directory), default=0)
            rundir.update_meta(directory, status="stopped", stopped_at=step, signal=number, end=now())
