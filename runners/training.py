"""Trains a pack of configs into their run directories; a single run is a pack of one.

The host reads values only between chunks: there it logs, checks for divergence, saves, and checks for signals.
"""

from __future__ import annotations

import contextlib
import threading
import time
import traceback
from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np

from icl_lab.families.shared_arrays import note_frozen
from icl_lab.lab.cli import printable
from icl_lab.lab.configs.run import RunConfig
from icl_lab.lab.environment import num_threads
from icl_lab.lab.executors.signals import Signals, Stopped, catch_signals
from icl_lab.runners import llc
from icl_lab.runners.distributed import check_same_step, share
from icl_lab.runners.finish import DEFAULT_WANTED, Wanted, check_parts, ending_of, finish, preload_packages
from icl_lab.runners.llc import Watch
from icl_lab.runners.locking import locked_runs
from icl_lab.runners.pack import GROWTH, Job, Pack, by_checkpoint
from icl_lab.runners.persistence import DEFAULT_PERSISTENCE, Persistence
from icl_lab.runners.progress import NULL_LOGGER, Logger
from icl_lab.runners.static_shape import static_shape, training_part
from icl_lab.src.precision import use_highest_precision
from icl_lab.src.train import NEVER
from icl_lab.store import checkpoint, provenance, rundir, snapshots
from icl_lab.store.provenance import changed_files, provenance_of
from icl_lab.store.rundir import now

__all__ = ["Job", "Wanted", "run_one", "run_pack"]


def run_pack(
    jobs: Sequence[Job],
    logger: Logger,
    wanted: Wanted = DEFAULT_WANTED,
    width: int = 1,
    signals: Signals | None = None,
    persistence: Persistence = DEFAULT_PERSISTENCE,
) -> str:
    """Trains and analyses the jobs that are not done, in run directories that the caller has locked.

    A pack holds at most `width` trainings and is padded to it, since a run's bits depend on the width. The configs may
    differ in seeds, learning rate, evaluation and the fields in `Family.lane`; `ValueError` otherwise. Configs that
    differ in evaluation alone share a training. `signals` is given by a caller who catches signals between packs too.
    Returns "done", "stopped" (by a signal, with work left) or "diverged" (all that trained).
    """
    trainings = {training_part(job.config) for job in jobs}
    if len(trainings) > width or len({static_shape(job.config) for job in jobs}) > 1:
        raise ValueError(f"a pack holds at most {width} trainings here, of one static shape")
    for job in jobs:
        check_parts(job.config)
        llc.check(wanted.llc, job.run, job.config)
    use_highest_precision()
    logger.line(f"device: {device_text()}")
    status = {job: rundir.read_status(job.run) for job in jobs}
    pending = [job for job in jobs if status[job] not in rundir.FINISHED]
    for job in (job for job in pending if checkpoint.steps(job.run)):
        llc.check_resumed(wanted.llc, job.run)
    if persistence.strict_resume:
        for job in pending:
            provenance.check_conditions(job.run, provenance.current_conditions(width, device_text()))
    with contextlib.nullcontext(signals) if signals else catch_signals() as caught:
        try:
            for job in (job for job in jobs if status[job] == "done"):
                checkpoint.remove(job.run)  # left if it was killed just after its status became "done"
                caught.check()
                ending_of(job.config).add(job.run, wanted)
            for together in by_checkpoint(pending):
                caught.check()
                _train_and_finish(together, width, logger, wanted, caught, persistence)
        except Stopped as stop:
            _mark_stopped(pending, stop.signal)
            return "stopped"
        except Exception:
            if len(pending) == 1:  # else it is not known yet which job failed
                rundir.mark_failed(pending[0].run, traceback.format_exc())
            raise
    return "done" if any(rundir.read_status(job.run) == "done" for job in jobs) else "diverged"


def run_one(
    config: RunConfig,
    run: Path,
    logger: Logger = NULL_LOGGER,
    persistence: Persistence = DEFAULT_PERSISTENCE,
) -> str:
    """Trains or resumes a config in a run directory, as the runners do; for use from Python.

    `StoreError` if the directory holds another config; if strict, also if the run would resume under other conditions.
    """
    rundir.choose(config, str(run), overwrite=False)
    with locked_runs([(run, config)], strict=persistence.strict_resume):
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
    _begin(jobs, width, wanted)
    share(signals)
    signals.check()
    pack = Pack(jobs, width)
    check_same_step(pack.step, [job.run for job in jobs])
    share(signals)
    signals.check()
    watch = Watch(wanted.llc)
    _align_files(pack, watch)
    _record_conditions(pack, logger)
    _train(pack, logger, signals, persistence, watch)
    if jax.process_index() > 0:
        return
    for index, (job, _, eval_set) in enumerate(pack.lanes):
        if pack.alive[index]:
            for _ in finish(job.run, job.config, pack.model, pack.params(index), eval_set, wanted):
                signals.check()


def _begin(jobs: Sequence[Job], width: int, wanted: Wanted) -> None:
    """Starts or resumes the runs in their directories."""
    for job in jobs:
        if not checkpoint.steps(job.run):
            rundir.clear(job.run)
            rundir.begin(job.run, job.config)
            facts = provenance_of(job.config, device_text()) | llc.note(wanted.llc)
            rundir.update_meta(job.run, **facts, pack_width=width, start=now(), run_seconds=0.0)
        elif names := changed_files(rundir.read_meta(job.run)):
            rundir.update_meta(job.run, sources_changed=names)
        rundir.mark_running(job.run)


def _align_files(pack: Pack, watch: Watch) -> None:
    """Cuts checkpoints and metrics at the pack's step, so that no checkpoint is later than its records."""
    first_losses = pack.first_losses() if pack.step == 0 else np.empty(0)
    for index, (job, *_) in enumerate(pack.lanes):
        checkpoint.remove_after(job.run, pack.step)
        rundir.truncate_metrics(job.run, pack.step, _record_steps(pack, pack.step) if pack.step > 0 else [])
        if job.config.snapshots and pack.step == 0:
            snapshots.begin(job.run, _record_steps(pack, pack.num_steps), pack.params(index))
        elif job.config.snapshots:
            snapshots.check(job.run)
        if pack.step == 0:
            note_frozen(job.run, pack.shared, job.config)
            _record(pack, index, float(first_losses[index]), watch)
    meta = rundir.read_meta(pack.lanes[0].job.run)
    pack.run_seconds = float(meta["run_seconds"])
    pack.chunk_steps = min(int(meta.get("chunk_steps", 1)), GROWTH)  # the machine may be slower now


def _record_conditions(pack: Pack, logger: Logger) -> None:
    """Records in meta.json how each run's conditions have changed since it began, and logs the new changes."""
    now = provenance.current_conditions(pack.width, device_text())
    changes: dict[int, list[provenance.Change]] = {}  # by training, whose state is that of its first run
    for job, slot, _ in pack.lanes:
        history = provenance.history(job.run, pack.step, now) if pack.step > 0 else []
        past = changes.setdefault(slot, [])
        past += [change for change in history if change not in past]
        facts = {"bitwise": provenance.verdict(past), "resumed_elsewhere": past}
        rundir.update_meta(job.run, compile_seconds=pack.compile_seconds, **facts, **_note_damaged(pack, job, logger))
        if new := [change for change in past if change["step"] == pack.step]:
            what = "not bitwise" if provenance.verdict(past) is False else "not known to be bitwise"
            logger.line(f"{printable(job.run)} is resumed elsewhere and {what}: {provenance.describe(new)}")


def _note_damaged(pack: Pack, job: Job, logger: Logger) -> dict[str, list[str]]:
    """The entry of meta.json on all damaged checkpoints that a run has had; logs those that were set aside now."""
    now = [path for path in pack.damaged if path.is_relative_to(job.run)]
    for path in now:
        logger.line(f"{printable(path)}: a damaged checkpoint, set aside; the run goes on from step {pack.step}")
    earlier = rundir.read_meta(job.run).get("damaged_checkpoints", [])
    names = [*earlier, *(path.relative_to(job.run).as_posix() for path in now)]
    return {"damaged_checkpoints": names} if names else {}


def _record_steps(pack: Pack, step: int) -> list[int]:
    """The steps of the records up to this step."""
    return pack.record_steps[: bisect_right(pack.record_steps, step)]


def _record(pack: Pack, index: int, train_loss: float, watch: Watch) -> None:
    """Appends a record to a run's metrics, after its snapshot, so that every record has one."""
    run, config = pack.lanes[index].job
    if config.snapshots:
        snapshots.write(run, pack.step, pack.params(index))
    rundir.append_metrics(run, pack.record(index, train_loss) | watch.values(pack, index))


def _train(pack: Pack, logger: Logger, signals: Signals, persistence: Persistence, watch: Watch) -> None:
    """Trains to the end, a signal, or until every run has diverged; saves now and then, and when it stops."""
    imports = threading.Thread(target=preload_packages)
    imports.start()  # Python is idle during training
    logger.start(pack.step, pack.num_steps)
    saved, recorded = Saved(pack.step, time.monotonic(), 0.0), {*pack.record_steps}
    while pack.step < pack.num_steps and any(pack.alive):
        losses, diverged_at = pack.advance()
        for index, lane in enumerate(pack.lanes):
            if pack.alive[index] and diverged_at[index] != NEVER:
                pack.alive[index] = False
                _mark_diverged(lane.job.run, int(diverged_at[index]), pack.run_seconds)
            elif pack.alive[index] and pack.step in recorded:
                _record(pack, index, float(losses[index]), watch)
        if time.monotonic() - saved.at >= persistence.pause(saved.seconds):
            saved = _save(pack)
        logger.progress(pack.step, float(np.mean(losses)), watch.note)
        share(signals)
        if signals.received:
            break
    logger.stop()
    if any(pack.alive):  # else nothing is left to stop
        if pack.step > saved.step:
            _save(pack)
        signals.check()
    imports.join()


class Saved(NamedTuple):
    """The last save: the step, when it ended by the monotonic clock, and the seconds it took."""

    step: int
    at: float
    seconds: float


def _save(pack: Pack) -> Saved:
    """Saves the runs that have not diverged.

    The records up to this step are on disk already; a resume cuts later ones.
    """
    began = time.monotonic()
    for index, lane in enumerate(pack.lanes):
        if pack.alive[index]:
            pack.save(index)
            rundir.update_meta(lane.job.run, run_seconds=pack.run_seconds, chunk_steps=pack.chunk_steps)
    ended = time.monotonic()
    return Saved(pack.step, ended, ended - began)


def _mark_diverged(run: Path, step: int, run_seconds: float) -> None:
    losses = [record["eval_loss"] for record in rundir.last_metrics(run, 3)]
    ended = {"diverged_at": step, "last_losses": losses, "run_seconds": run_seconds, "end": now()}
    rundir.update_meta(run, status="diverged", **ended)


def _mark_stopped(jobs: Sequence[Job], number: int) -> None:
    """Sets the status "stopped" of unfinished runs, and the step at which they will resume."""
    for job in jobs:
        if rundir.read_status(job.run) == "running":
            step = max(checkpoint.steps(job.run), default=0)
            rundir.update_meta(job.run, status="stopped", stopped_at=step, signal=number, end=now())
