"""The command line of a runner: flags, a run directory, one run, its summary."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NoReturn

import cli
from cli import printable
from configs.run import RunConfig
from environment import MOST_THREADS, check_devices, num_threads, threads_are_set
from runners import compile_cache, flags
from runners.signals import RESUMES, hearing_signals
from runners.summary import summary_text
from src.checks import ConfigError
from store import checkpoint, conditions, layout, rundir, sources
from store.lock import locked
from store.readers import StoreError, expecting, is_count, is_number

MOST_NAMED = 8  # files in a sentence


def run(models: str | Sequence[str], prog: str, description: str) -> NoReturn:
    """Runs a runner, of one model or of the one that `--model` says, on this process's arguments and exits."""
    launch(lambda argv: main(models, prog, description, argv))


def launch(main: Callable[[list[str]], int]) -> NoReturn:
    """Runs a command that trains on this process's arguments, and exits."""
    cli.launch(main, StoreError, ConfigError)


def main(models: str | Sequence[str], prog: str, description: str, argv: Sequence[str]) -> int:
    """Parses, chooses the run directory, trains what is left to train, and prints the summary."""
    request = flags.read(models, prog, description, argv)
    programs = compile_cache.default_folder() if request.compile_cache else None
    directory = rundir.choose(request.config, request.out, request.overwrite)
    strict = request.persistence.strict_resume
    with held([(directory, request.config)], request.overwrite, programs=programs, strict=strict):
        # JAX, which reads the number of threads once, has its devices from here on
        from runners.common import Job, Wanted, run_pack
        from utils_log import ConsoleLogger

        if programs:
            compile_cache.enable(programs)
        with ConsoleLogger(request.quiet) as logger, hearing_signals(RESUMES) as signals:
            job = Job(directory, request.config)
            wanted, kept = Wanted(options=request.options), request.persistence
            status = run_pack([job], logger, wanted, signals=signals, persistence=kept)
    if status == "stopped":
        return report_stop([directory], signals.heard[0])
    ended = report(directory, request.config.name, status)
    say_changed([directory])
    return ended


@contextmanager
def held(
    runs: Sequence[tuple[Path, RunConfig]],
    overwrite: bool = False,
    width: int = 1,
    programs: Path | None = None,
    strict: bool = False,
) -> Iterator[None]:
    """Holds the directories of runs that can be trained, cleared if they are to be trained anew.

    Whatever may refuse comes before the first is cleared: locks, what the directories hold now that nobody else can
    change it, the conditions of a resume, the folder of compiled programs; devices even before a folder is made for a
    lock. To be entered before JAX has devices.
    """
    check_devices()
    with ExitStack() as locks:
        for run, _ in runs:
            locks.enter_context(locked(run))
        for run, config in runs:
            rundir.check_usable(run, config, overwrite)
            for identity in config.requires:
                rundir.find(identity, run)
            if not overwrite:
                restore_conditions(run, width, strict)
        if programs:
            compile_cache.part(programs)  # its name has the number of threads, which is settled now
        for run, _ in runs if overwrite else ():
            say_what_stays(run, rundir.clear(run))
        yield


def say_what_stays(run: Path, others: Sequence[str]) -> None:
    """Names what lies in a cleared run directory and is not the run's."""
    if others:
        more = f" and {len(others) - MOST_NAMED} more" if len(others) > MOST_NAMED else ""
        print(printable(f"{run}: left alone what is not the run's: {', '.join(others[:MOST_NAMED])}{more}"))


def report(directory: Path, name: str, status: str) -> int:
    """Says how a run ended that nobody stopped; the exit status."""
    if status == "done":
        print(summary_text(directory))
        return 0
    return report_divergence(directory, name)


def say_changed(runs: Sequence[Path]) -> None:
    """Says in a line if finished runs were made by other sources, and in another if some were resumed elsewhere."""
    metas = [rundir.read_meta(run) for run in runs]
    for line in filter(None, (sources.remark(metas), conditions.remark(metas))):
        print(line)


def report_stop(runs: Sequence[Path], number: int) -> int:
    """Says where runs that a signal ended will go on, and how; the exit status that the signal gives a process."""
    stopped = [run for run in runs if rundir.read_status(run) == "stopped"]
    steps = {max(checkpoint.steps(run), default=0) for run in stopped} or {0}  # 0 if none had begun
    where = ", ".join(map(str, sorted(steps)))
    print(f"stopped at step {where}; the same command without --overwrite resumes it: {same_command()}")
    return 128 + number


def same_command() -> str:
    """The command line of this process as it was typed, less --overwrite, for a shell."""
    return printable(shlex.join(word for word in sys.orig_argv if word != "--overwrite"))


def report_divergence(run: Path, name: str) -> int:
    """Says at which step a run diverged, after which losses, and what usually helps."""
    meta = rundir.read_meta(run)
    with expecting(run / layout.META, "a run's meta.json"):
        losses = ", ".join("not finite" if loss is None else f"{loss:.4g}" for loss in meta["last_losses"])
        diverged_at = int(meta["diverged_at"])
    steps = checkpoint.steps(run)
    kept = f"; the state after step {steps[-1]} is kept in {layout.checkpoint(run, steps[-1])}" if steps else ""
    print(
        f"error: {name} diverged at step {diverged_at} after test losses {losses}; a smaller --lr, a smaller "
        f"--config.grad_clip or --config.activation_clip=10 usually helps{kept}",
        file=sys.stderr,
    )
    return 1


def restore_conditions(directory: Path, width: int = 1, strict: bool = False) -> None:
    """Gives an unfinished run the thread count it had, unless the user chose another or JAX has read it already.

    To be called before JAX has devices. `StoreError` if meta.json is not one; if strict, also if the run would go on
    under other conditions than it had, as far as they are known without JAX.
    """
    meta, steps = rundir.read_meta(directory), checkpoint.steps(directory)
    if meta.get("status") in rundir.FINISHED or not ("versions" in meta or steps):
        return
    threads = _checked_threads(directory, meta, max(steps, default=0))
    if threads != num_threads() and not threads_are_set() and "jax" not in sys.modules:
        os.environ["NPROC"] = str(threads)
    if strict:
        conditions.check(directory, conditions.here(width))


def _checked_threads(run: Path, meta: Mapping[str, Any], step: int) -> int:
    """The thread count a run had at a step; `StoreError` unless all that a resume takes from meta.json is there."""
    found = conditions.in_force(run, step)
    with expecting(run / layout.META, "a run's meta.json; --overwrite trains the run anew"):
        chunk_steps = meta.get("chunk_steps", 1)  # it is there from the first checkpoint on
        counts = (found["threads"], found["pack_width"], chunk_steps)
        if not all(is_count(count) and count > 0 for count in counts) or found["threads"] > MOST_THREADS:
            raise ValueError
        if not (is_number(meta["run_seconds"]) and all(isinstance(found[name], str) for name in meta["versions"])):
            raise ValueError
        return int(found["threads"])
