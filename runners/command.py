"""The command line of a runner: trains one run in its directory and prints the summary."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple, NoReturn

from icl_lab.lab import cli, compile_cache
from icl_lab.lab.configs.keys import leaves
from icl_lab.lab.configs.run import RunConfig, fields_of
from icl_lab.lab.executors.signals import RESUME_HINT, catch_signals
from icl_lab.runners import distributed, flags, kernel, llc
from icl_lab.runners.locks import locked_runs, restore_threads
from icl_lab.runners.resume import Start
from icl_lab.runners.static_shape import Run
from icl_lab.runners.summary import summary_text
from icl_lab.src.words import printable
from icl_lab.store import checkpoint, layout, provenance, rundir
from icl_lab.store.lock import locked
from icl_lab.store.readers import expecting


def run(models: str | Sequence[str], prog: str, description: str) -> NoReturn:
    """Runs a runner, of one model or of those that `--model` chooses from, with this process's arguments; exits."""
    launch(lambda argv: main(models, prog, description, argv))


def launch(main: Callable[[list[str]], int]) -> NoReturn:
    """Runs a command that trains with this process's arguments, and exits."""
    cli.launch(main)


def main(models: str | Sequence[str], prog: str, description: str, argv: Sequence[str]) -> int:
    """Parses the flags, chooses the run directory, trains what is left and prints the summary."""
    request = flags.read(models, prog, description, argv)
    if request.process is not None and request.process.follows:
        return _follow(request, request.process)
    directory = rundir.choose(request.config, request.out, request.overwrite)
    ended = train(request, directory, partial(_begin, request.process), RESUME_HINT)
    if ended.status == "stopped":
        return report_stop([directory], ended.signal)
    exit_status = report(directory, request.config.name, ended.status)
    print_notices([directory], ended.finished)
    return exit_status


class Ended(NamedTuple):
    """How a training has ended: a status of the run, or "stopped" by a signal; and the runs that were done before."""

    status: str
    signal: int
    finished: list[Path]


def train(
    request: flags.Request, directory: Path, begin: Callable[[], None] = lambda: None, hint: str | None = None
) -> Ended:
    """Trains what is left of a request in its directory. `begin` is called when the run can be trained, before JAX is.

    A command gives a hint on how to go on: then a second signal ends the process.
    """
    strict = request.persistence.strict_resume
    runs = [Run(directory, request.config)]
    if request.process is None:
        chosen = kernel.chosen(request.kernel, runs, request.overwrite)
    else:
        chosen = kernel.of_processes(request.kernel)

    def check(directory: Path, config: RunConfig) -> None:
        from icl_lab.runners.early_ends import check_column  # imports JAX
        from icl_lab.runners.parameters import check_parameters

        llc.check(request.llc, directory, config)
        check_parameters(Run(directory, config), request.weights)
        if request.process is None:  # else JAX must not have its devices yet
            check_column(Run(directory, config))

    with locked_runs(runs, request.overwrite, strict=strict, check=check) as finished:
        # imported only now: JAX reads the number of threads once, when it gets its devices
        from icl_lab.lab.progress import ConsoleLogger
        from icl_lab.runners.loop import OutputOptions, run_pack

        begin()
        with ConsoleLogger(request.quiet) as logger, catch_signals(hint) as signals:
            outputs = OutputOptions(options=request.options, llc=request.llc, keep_state=request.keep_state)
            start = Start(not request.overwrite, request.given)
            saving = request.persistence
            status = run_pack(runs, logger, outputs, signals=signals, persistence=saving, start=start, kernel=chosen)
    return Ended(status, next(iter(signals.received), 0), finished)


def _begin(process: distributed.Process | None) -> None:
    compile_cache.enable()
    if process is not None:
        distributed.start(process)
        distributed.wait_for_copies()


def _follow(request: flags.Request, process: distributed.Process) -> int:
    """Trains together with the process that owns the run directory, and keeps no files; returns the exit status."""
    directory = Path(request.out or "")
    restore_threads(directory)
    compile_cache.enable()
    distributed.start(process)
    with distributed.copied(directory) as copy:
        from icl_lab.lab.progress import NULL_LOGGER
        from icl_lab.runners.loop import run_pack

        copy.mkdir(exist_ok=True)
        with locked(copy), catch_signals() as signals:
            start = Start(weights=request.given)
            runs, chosen = [Run(copy, request.config)], kernel.of_processes(request.kernel)
            status = run_pack(runs, NULL_LOGGER, signals=signals, start=start, kernel=chosen)
    return 128 + signals.received[0] if status == "stopped" else 0


def report(directory: Path, name: str, status: str) -> int:
    """Prints the summary of a finished run, or why it diverged; returns the exit status."""
    if status == "done":
        print(summary_text(directory))
        return 0
    return report_divergence(directory, name)


def print_notices(runs: Sequence[Path], finished: Sequence[Path]) -> None:
    """Prints a line each for those that had `finished` before, and if sources have changed or a resume was unusual."""
    by_run = {run: rundir.read_meta(run) for run in runs}
    metas, earlier = [*by_run.values()], [by_run[run] for run in finished if run in by_run]
    lines = [provenance.finished_notice(earlier, len(runs)), provenance.sources_notice(metas)]
    for line in filter(None, [*lines, provenance.resumed_notice(metas), checkpoint.notice(metas)]):
        print(line)


def report_stop(runs: Sequence[Path], number: int) -> int:
    """Prints at which step runs were stopped and how to resume them; returns the exit status for the signal."""
    stopped = [run for run in runs if rundir.read_status(run) == "stopped"]
    steps = {max(checkpoint.steps(run), default=0) for run in stopped} or {0}  # 0 if none has begun
    where = ", ".join(map(str, sorted(steps)))
    print(f"stopped at step {where}; the same command without --overwrite resumes it: {resume_command()}")
    return 128 + number


def resume_command() -> str:
    """The command line of this process without --overwrite, quoted for a shell."""
    return printable(shlex.join(word for word in sys.orig_argv if word != "--overwrite"))


def report_divergence(run: Path, name: str) -> int:
    """Prints at which step a run diverged, its last losses and what usually helps; returns the exit status."""
    print(f"error: {divergence_text(run, name)}", file=sys.stderr)
    return 1


def divergence_text(run: Path, name: str) -> str:
    """At which step a run diverged, its last losses and what usually helps, in a sentence."""
    meta = rundir.read_meta(run)
    with expecting(run / layout.META, "a run's meta.json"):
        losses = ", ".join("not finite" if loss is None else f"{loss:.4g}" for loss in meta["last_losses"])
        diverged_at = int(meta["diverged_at"])
    steps = checkpoint.steps(run)
    kept = f"; the state after step {steps[-1]} is kept in {layout.checkpoint(run, steps[-1])}" if steps else ""
    remedies = ["a smaller --lr", "a smaller --config.grad_clip"]
    if "activation_clip" in leaves(fields_of(rundir.read_config(run))):
        remedies.append("--config.activation_clip=10")
    advice = f"{', '.join(remedies[:-1])} or {remedies[-1]} usually helps"
    return f"{name} diverged at step {diverged_at} after test losses {losses}; {advice}{kept}"
