"""Holding run directories: locks, what may refuse a run, and the conditions under which an unfinished one goes on."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from cli import printable
from configs.run import RunConfig
from environment import MOST_THREADS, check_devices, jax_has_started, num_threads, threads_are_set
from runners import compile_cache
from store import checkpoint, conditions, layout, rundir
from store.lock import locked
from store.readers import expecting, is_count, is_number

MOST_NAMED = 8  # files in a sentence


@contextmanager
def locked_runs(
    runs: Sequence[tuple[Path, RunConfig]],
    overwrite: bool = False,
    width: int = 1,
    programs: Path | None = None,
    strict: bool = False,
) -> Iterator[None]:
    """Holds the directories of runs that can be trained, cleared if they are to be trained anew.

    Whatever may refuse comes before the first is cleared: locks, what the directories hold now that nobody else can
    change it, the conditions of a resume, the parts of the family, the folder of compiled programs; devices and the
    runs that are required even before a folder is made for a lock. To be entered before JAX has devices.
    """
    check_devices()
    for run, config in runs:
        if overwrite or rundir.read_status(run) not in rundir.FINISHED:
            rundir.find_required(config, run)
    with ExitStack() as locks:
        for run, _ in runs:
            locks.enter_context(locked(run))
        for run, config in runs:
            rundir.check_usable(run, config, overwrite)
            if not overwrite:
                restore_threads(run, width, strict)
        if programs:
            compile_cache.part(programs)  # its name has the number of threads, which is settled now
        if overwrite:
            from runners.finish import check_parts  # imports JAX

            for _, config in runs:
                check_parts(config)
            for run, _ in runs:
                print_kept_files(run, rundir.clear(run))
        yield


def print_kept_files(run: Path, others: Sequence[str]) -> None:
    """Names what lies in a cleared run directory and is not the run's."""
    if others:
        more = f" and {len(others) - MOST_NAMED} more" if len(others) > MOST_NAMED else ""
        print(printable(f"{run}: left alone what is not the run's: {', '.join(others[:MOST_NAMED])}{more}"))


def restore_threads(directory: Path, width: int = 1, strict: bool = False) -> None:
    """Gives an unfinished run the thread count it had, unless the user chose another or JAX has read it already.

    To be called before JAX has devices. `StoreError` if meta.json is not one; if strict, also if the run would go on
    under other conditions than it had, as far as they are known without JAX.
    """
    meta, steps = rundir.read_meta(directory), checkpoint.steps(directory)
    if meta.get("status") in rundir.FINISHED or not ("versions" in meta or steps):
        return
    threads = _checked_threads(directory, meta, max(steps, default=0))
    if threads != num_threads() and not threads_are_set() and not jax_has_started():
        os.environ["NPROC"] = str(threads)
    if strict:
        conditions.check(directory, conditions.current(width))


def _checked_threads(run: Path, meta: Mapping[str, Any], step: int) -> int:
    """The thread count a run had at a step; `StoreError` unless all that a resume takes from meta.json is there."""
    found = conditions.at_step(run, step)
    with expecting(run / layout.META, "a run's meta.json; --overwrite trains the run anew"):
        chunk_steps = meta.get("chunk_steps", 1)  # it is there from the first checkpoint on
        counts = (found["threads"], found["pack_width"], chunk_steps)
        if not all(is_count(count) and count > 0 for count in counts) or found["threads"] > MOST_THREADS:
            raise ValueError
        if not (is_number(meta["run_seconds"]) and all(isinstance(found[name], str) for name in meta["versions"])):
            raise ValueError
        return int(found["threads"])
