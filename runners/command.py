"""The command line of a runner: flags, a run directory, one run, its summary."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

import cli
from cli import printable
from configs.keys import leaves
from configs.run import fields_of
from runners import compile_cache, flags
from runners.holding import held
from runners.signals import RESUMES, hearing_signals
from runners.summary import summary_text
from src.checks import ConfigError
from store import checkpoint, conditions, layout, rundir, sources
from store.readers import StoreError, expecting


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
        from runners.progress import ConsoleLogger

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
    cures = ["a smaller --lr", "a smaller --config.grad_clip"]
    if "activation_clip" in leaves(fields_of(rundir.read_config(run))):
        cures.append("--config.activation_clip=10")
    helps = f"{', '.join(cures[:-1])} or {cures[-1]} usually helps"
    print(
        f"error: {name} diverged at step {diverged_at} after test losses {losses}; {helps}{kept}",
        file=sys.stderr,
    )
    return 1
