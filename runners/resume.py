"""How runs are kept and go on: flags, locks, the thread count that a run had, and what its files say at a resume."""

from __future__ import annotations

import argparse
import math
import os
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from icl_lab.lab import cli
from icl_lab.lab.configs.run import RunConfig
from icl_lab.lab.environment import (
    MOST_THREADS,
    check_devices,
    fix_threads,
    jax_has_started,
    num_threads,
    threads_are_set,
)
from icl_lab.lab.flag_types import INFINITY, Either, Number
from icl_lab.runners.static_shape import Run
from icl_lab.src.words import printable
from icl_lab.store import checkpoint, layout, provenance, rundir
from icl_lab.store.lock import locked
from icl_lab.store.metrics import truncate_metrics
from icl_lab.store.provenance import changed_files, provenance_of
from icl_lab.store.readers import expecting, is_count, is_number
from icl_lab.store.rundir import now

MAX_NAMED = 8  # files named in a message
SAVE_FRACTION = 0.02  # of training time, at most, that saving a large state takes


# --- flags ---


class Persistence(NamedTuple):
    """checkpoint_seconds: seconds of training between saves of the state; 0 saves after every chunk.

    strict_resume: whether to refuse to resume a run under other conditions (`store.provenance`).
    """

    checkpoint_seconds: float = 20.0
    strict_resume: bool = False

    def pause(self, save_seconds: float) -> float:
        """Seconds of training after a save that took so long: more than asked if saves were over 2 % of them."""
        return max(self.checkpoint_seconds, save_seconds / SAVE_FRACTION) if self.checkpoint_seconds else 0.0


DEFAULT_PERSISTENCE = Persistence()


def add_flags(built: cli.Parser) -> None:
    """Adds the flags of commands that train and resume runs; they are not part of the config."""
    built.add_argument(
        "--checkpoint_seconds",
        type=Either(INFINITY, math.inf, Number(0.0, 1e9, why="30 years")),
        default=DEFAULT_PERSISTENCE.checkpoint_seconds,
        help="seconds of training between saves of the state, more where a save takes over 2 %% of them; a kill loses "
        "at most this and one chunk",
    )
    built.add_argument(
        "--strict_resume",
        action="store_true",
        help="refuse to resume a run if versions, threads, pack width or device have changed",
    )


def from_flags(flags: argparse.Namespace) -> Persistence:
    """The values of these flags."""
    return Persistence(**{name: getattr(flags, name) for name in Persistence._fields})


# --- before JAX starts: locks and threads ---


@contextmanager
def locked_runs(
    runs: Sequence[tuple[Path, RunConfig]],
    overwrite: bool = False,
    width: int = 1,
    strict: bool = False,
    check: Callable[[Path, RunConfig], None] = lambda directory, config: None,
    below: Path | None = None,
) -> Iterator[list[Path]]:
    """Locks the directories of runs that can be trained, and clears those to retrain (`overwrite`).

    `below` is the folder of them that the user has named, if it was not each of them (`store.lock.locked`). Gives those
    that are finished, and so will only be shown.

    All checks come before the first directory is cleared: devices and required runs even before a lock file is created,
    then the locks, the directories' contents, the conditions of a resume, and the family's parts with what else the
    caller checks. Must be entered before JAX has its devices.
    """
    check_devices()
    for directory, config in runs:
        if overwrite or rundir.read_status(directory) not in rundir.FINISHED:
            rundir.find_required(config, directory)
    with ExitStack() as locks:
        for directory, _ in runs:
            locks.enter_context(locked(directory, below=below))
        for directory, config in runs:
            rundir.check_usable(directory, config, overwrite)
            if not overwrite:
                restore_threads(directory, width, strict)
        fix_threads()
        if overwrite:
            from icl_lab.runners.finish import check_parts  # imports JAX

            for directory, config in runs:
                check_parts(config)
                check(directory, config)
            for directory, _ in runs:
                print_kept_files(directory, rundir.clear(directory))
        yield [directory for directory, _ in runs if rundir.read_status(directory) in rundir.FINISHED]


def print_kept_files(directory: Path, others: Sequence[str]) -> None:
    """Prints the foreign files that stay in a cleared run directory."""
    if others:
        more = f" and {len(others) - MAX_NAMED} more" if len(others) > MAX_NAMED else ""
        print(printable(f"{directory}: kept files that are not the run's: {', '.join(others[:MAX_NAMED])}{more}"))


def restore_threads(directory: Path, width: int = 1, strict: bool = False) -> None:
    """Sets the thread count that an unfinished run had, unless the user chose one or JAX has started.

    Must be called before JAX has its devices. `StoreError` for a bad meta.json; if strict, also if the run would resume
    under other conditions (as far as they are known without JAX).
    """
    meta, steps = rundir.read_meta(directory), checkpoint.steps(directory)
    if meta.get("status") in rundir.FINISHED or not ("versions" in meta or steps):
        return
    threads = _checked_threads(directory, meta, max(steps, default=0))
    if threads != num_threads() and not threads_are_set() and not jax_has_started():
        os.environ["NPROC"] = str(threads)
    if strict:
        provenance.check_conditions(directory, provenance.current_conditions(width))


def _checked_threads(directory: Path, meta: Mapping[str, Any], step: int) -> int:
    """The thread count a run had at a step; `StoreError` unless meta.json has all that a resume needs."""
    before = provenance.conditions_at(directory, step)
    with expecting(directory / layout.META, "a run's meta.json; --overwrite retrains the run"):
        chunk_steps = meta.get("chunk_steps", 1)  # present from the first checkpoint on
        texts = (*meta["versions"], *meta.get("variables", {}))
        counts = (before["threads"], before["pack_width"], chunk_steps)
        if not all(is_count(count) and count > 0 for count in counts) or before["threads"] > MOST_THREADS:
            raise ValueError
        if not (is_number(meta["run_seconds"]) and all(isinstance(before[name], str) for name in texts)):
            raise ValueError
        return int(before["threads"])


# --- the files of runs that begin or go on ---


def by_checkpoint(runs: Sequence[Run]) -> list[list[Run]]:
    """Groups of runs that can resume together from a common checkpoint; 0 stands for runs that have not begun."""
    groups: list[tuple[set[int], list[Run]]] = []
    for run in runs:
        steps = set(checkpoint.steps(run.directory)) or {0}
        for common, together in groups:
            if common & steps:
                common &= steps
                together.append(run)
                break
        else:
            groups.append((steps, [run]))
    return [together for _, together in groups]


def begin(run: Run, width: int, device: str, facts: Mapping[str, Any]) -> None:
    """Starts a run in its directory, with further facts in meta.json, or resumes it."""
    directory, config = run
    if not checkpoint.steps(directory):
        rundir.clear(directory)
        rundir.begin(directory, config)
        known = {**provenance_of(config, device), **facts}
        rundir.update_meta(directory, **known, pack_width=width, start=now(), run_seconds=0.0)
    elif names := changed_files(rundir.read_meta(directory)):
        rundir.update_meta(directory, sources_changed=names)
    rundir.mark_running(directory)


def cut_files(directory: Path, step: int, record_steps: Sequence[int]) -> None:
    """Removes checkpoints, then records, after a step; `StoreError` if one up to it is missing."""
    checkpoint.remove_after(directory, step)
    truncate_metrics(directory, step, list(record_steps[: bisect_right(record_steps, step)]) if step > 0 else [])
