"""Runs: trains a pack of configs into their run directories. One run is a pack of one.

The host looks at values between chunks only: there it logs, checks for divergence, saves, and hears of signals.
"""

from __future__ import annotations

import contextlib
import threading
import time
import traceback
from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path

import jax
import numpy as np

from cli import printable
from configs.run import RunConfig
from environment import num_threads
from families.shared_arrays import note_frozen
from runners.finish import NOTHING_MORE, Wanted, check_parts, ending_of, finish, import_what_ends_a_run
from runners.holding import held
from runners.pack import GROWTH, Job, Pack, by_checkpoint
from runners.persistence import USUAL, Persistence
from runners.shapes import static_shape, training_part
from runners.signals import Signals, Stopped, hearing_signals
from src.precision import use_highest_precision
from src.train import NEVER
from store import checkpoint, conditions, rundir, snapshots
from store.provenance import now, provenance
from store.sources import changed
from utils_log import NULL_LOGGER, Logger

__all__ = ["Job", "Wanted", "run_one", "run_pack"]


def run_pack(
    jobs: Sequence[Job],
    logger: Logger,
    wanted: Wanted = NOTHING_MORE,
    width: int = 1,
    signals: Signals | None = None,
    persistence: Persistence = USUAL,
) -> str:
    """Trains what is not done yet, analyses it and fills the run directories, which the caller has locked.

    At most `width` trainings go together; a run's bits depend on the width, so the pack is padded to it. The configs
    may differ in seeds, learning rate, evaluation and what their family lets differ (`Family.lane`); `ValueError`
    otherwise.
    Those that differ in evaluation alone share a training. `signals` are those of a caller who hears them for longer,
    as between packs. Gives "done", "stopped" (by a signal, with work left) or "diverged" (all that trained).
    """
    trainings = {training_part(job.config) for job in jobs}
    if len(trainings) > width or len({static_shape(job.config) for job in jobs}) > 1:
        raise ValueError(f"a pack holds at most {width} trainings here, of one static shape")
    for job in jobs:
        check_parts(job.config)
    use_highest_precision()
    logger.line(f"device: {device_text()}")
    status = {job: rundir.read_status(job.run) for job in jobs}
    pending = [job for job in jobs if status[job] not in rundir.FINISHED]
    if persistence.strict_resume:
        for job in pending:
            conditions.check(job.run, conditions.here(width, device_text()))
    with contextlib.nullcontext(signals) if signals else hearing_signals() as heard:
        try:
            for job in (job for job in jobs if status[job] == "done"):
                checkpoint.remove(job.run)  # left there if it was killed between its last two words
                heard.check()
                ending_of(job.config).add(job.run, wanted)
            for together in by_checkpoint(pending):
                heard.check()
                _train_and_finish(together, width, logger, wanted, heard, persistence)
        except Stopped as stop:
            _note_stop(pending, stop.signal)
            return "stopped"
        except Exception:
            if len(pending) == 1:  # else nobody knows yet whose error it is
                rundir.note_failure(pending[0].run, traceback.format_exc())
            raise
    return "done" if any(rundir.read_status(job.run) == "done" for job in jobs) else "diverged"


def run_one(
    config: RunConfig,
    run: Path,
    logger: Logger = NULL_LOGGER,
    persistence: Persistence = USUAL,
) -> str:
    """Trains one config into a run directory, or finishes what is there: what the runners do, for use from Python.

    `StoreError` if the directory holds a run of another config; if strict, also if it went on under other conditions.
    """
    rundir.choose(config, str(run), overwrite=False)
    with held([(run, config)], strict=persistence.strict_resume):
        return run_pack([Job(run, config)], logger, persistence=persistence)


def device_text() -> str:
    """The devices in words."""
    devices = jax.devices()
    count = f"{len(devices)} x " if len(devices) > 1 else ""
    threads = f", {num_threads()} threads" if devices[0].platform == "cpu" else ""
    return f"{count}{devices[0].device_kind}{threads}, jax {jax.__version__}"


def _train_and_finish(
    jobs: Sequence[Job], width: int, logger: Logger, wanted: Wanted, signals: Signals, persistence: Persistence
) -> None:
    _begin(jobs, width)
    signals.check()
    pack = Pack(jobs, width)
    signals.check()
    _take_up(pack)
    _note_conditions(pack, logger)
    _train(pack, logger, signals, persistence.checkpoint_seconds)
    for index, (job, _, setting) in enumerate(pack.lanes):
        if pack.alive[index]:
            for _ in finish(job.run, job.config, pack.model, pack.params(index), setting, wanted):
                signals.check()


def _begin(jobs: Sequence[Job], width: int) -> None:
    """Makes the directories runs, or says that they go on."""
    for job in jobs:
        if not checkpoint.steps(job.run):
            rundir.clear(job.run)
            rundir.begin(job.run, job.config)
            facts = provenance(job.config, device_text())
            rundir.update_meta(job.run, **facts, pack_width=width, start=now(), run_seconds=0.0)
        elif names := changed(rundir.read_meta(job.run)):
            rundir.update_meta(job.run, sources_changed=names)
        rundir.mark_running(job.run)


def _take_up(pack: Pack) -> None:
    """Makes checkpoints and metrics end where the pack begins: a later checkpoint must not outlive its records."""
    first_losses = pack.first_losses() if pack.step == 0 else np.empty(0)
    for index, (job, *_) in enumerate(pack.lanes):
        checkpoint.remove_after(job.run, pack.step)
        rundir.cut_metrics(job.run, pack.step, _recorded(pack, pack.step) if pack.step > 0 else [])
        if job.config.snapshots and pack.step == 0:
            snapshots.begin(job.run, _recorded(pack, pack.num_steps), pack.params(index))
        elif job.config.snapshots:
            snapshots.check(job.run)
        if pack.step == 0:
            note_frozen(job.run, pack.shared, job.config)
            _record(pack, index, float(first_losses[index]))
    meta = rundir.read_meta(pack.lanes[0].job.run)
    pack.run_seconds = float(meta["run_seconds"])
    pack.chunk_steps = min(int(meta.get("chunk_steps", 1)), GROWTH)  # it was chosen on a machine that may be slower now


def _note_conditions(pack: Pack, logger: Logger) -> None:
    """Leaves in meta.json what has changed of each run's conditions since it began, and says what is new of that."""
    here = conditions.here(pack.width, device_text())
    changes: dict[int, list[conditions.Change]] = {}  # by training: its state is that of the first run that shares it
    for job, place, _ in pack.lanes:
        own = conditions.history(job.run, pack.step, here) if pack.step > 0 else []
        past = changes.setdefault(place, [])
        past += [change for change in own if change not in past]
        told = {"bitwise": not past, "resumed_elsewhere": past}
        rundir.update_meta(job.run, compile_seconds=pack.compile_seconds, **told)
        if new := [change for change in past if change["step"] == pack.step]:
            words = f"{printable(job.run)} goes on elsewhere, with {conditions.in_words(new)}"
            logger.line(f"{words}: its bits are not those of an uninterrupted run")


def _recorded(pack: Pack, step: int) -> list[int]:
    """The steps up to this one that have records."""
    return pack.record_steps[: bisect_right(pack.record_steps, step)]


def _record(pack: Pack, index: int, train_loss: float) -> None:
    """Adds a record to a run's metrics; its snapshot comes first, so that what has a record is there."""
    run, config = pack.lanes[index].job
    if config.snapshots:
        snapshots.write(run, pack.step, pack.params(index))
    rundir.append_metrics(run, pack.record(index, train_loss))


def _train(pack: Pack, logger: Logger, signals: Signals, seconds: float) -> None:
    """Trains to the end, to a signal, or until every run has diverged; saves every so many seconds, and at a stop."""
    imports = threading.Thread(target=import_what_ends_a_run)
    imports.start()  # training leaves Python idle
    logger.start(pack.step, pack.num_steps)
    saved = pack.step, time.monotonic()
    while pack.step < pack.num_steps and any(pack.alive):
        losses, diverged_at = pack.advance()
        for index, lane in enumerate(pack.lanes):
            if pack.alive[index] and diverged_at[index] != NEVER:
                pack.alive[index] = False
                _note_divergence(lane.job.run, int(diverged_at[index]), pack.run_seconds)
            elif pack.alive[index] and pack.step in pack.record_steps:
                _record(pack, index, float(losses[index]))
        if time.monotonic() - saved[1] >= seconds:
            saved = _save(pack)
        logger.progress(pack.step, float(np.mean(losses)))
        if signals.heard:
            break
    logger.stop()
    if any(pack.alive):  # else there is nothing left to stop
        if pack.step > saved[0]:
            _save(pack)
        signals.check()
    imports.join()


def _save(pack: Pack) -> tuple[int, float]:
    """Saves the runs that have not diverged; gives the step, and the time when that was done.

    The records of all steps up to this one are on disk already: a resume cuts those of later ones.
    """
    for index, lane in enumerate(pack.lanes):
        if pack.alive[index]:
            pack.save(index)
            rundir.update_meta(lane.job.run, run_seconds=pack.run_seconds, chunk_steps=pack.chunk_steps)
    return pack.step, time.monotonic()


def _note_divergence(run: Path, step: int, run_seconds: float) -> None:
    losses = [record["test_loss"] for record in rundir.read_metrics(run)][-3:]
    ended = {"diverged_at": step, "last_losses": losses, "run_seconds": run_seconds, "end": now()}
    rundir.update_meta(run, status="diverged", **ended)


def _note_stop(jobs: Sequence[Job], number: int) -> None:
    """Leaves the status "stopped" with runs that have begun and not ended, and the step at which they will go on."""
    for job in jobs:
        if rundir.read_status(job.run) == "running":
            step = max(checkpoint.steps(job.run), default=0)
            rundir.update_meta(job.run, status="stopped", stopped_at=step, signal=number, end=now())
