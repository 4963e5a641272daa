"""Locks run directories, checks that their runs can be trained, and restores an unfinished run's thread count."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from icl_lab.lab.configs.run import RunConfig
from icl_lab.lab.environment import (
    MOST_THREADS,
    check_devices,
    fix_threads,
    jax_has_started,
    num_threads,
    threads_are_set,
)
from icl_lab.src.checks import UserError
from icl_lab.src.words import printable
from icl_lab.store import checkpoint, layout, provenance, rundir
from icl_lab.store.lock import locked
from icl_lab.store.readers import expecting, is_count, is_number

MAX_NAMED = 8  # files named in a message


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
            made = [place for place in (directory, *directory.parents) if not place.exists()]
            locks.enter_context(locked(directory, below=below))
            if made:
                locks.enter_context(_leaving_nothing(directory, made))
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


@contextmanager
def _leaving_nothing(directory: Path, made: Sequence[Path]) -> Iterator[None]:
    """Removes a locked directory, and the folders made for its lock, innermost first, if the run is refused."""
    try:
        yield
    except UserError:
        if not rundir.has_begun(directory):
            with suppress(OSError):
                (directory / layout.LOCK).unlink()
                for folder in made:
                    folder.rmdir()
        raise


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
