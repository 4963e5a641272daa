"""The command line of a runner: flags, a run directory, one run, its summary."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import cli
from runners import compile_cache, flags
from runners.summary import summary_text
from src.config import ConfigError
from store import rundir
from store.lock import locked
from store.provenance import num_threads, versions
from store.readers import StoreError


def run(model: str, prog: str, description: str) -> NoReturn:
    """Runs a runner on this process's arguments and exits."""
    cli.launch(lambda argv: main(model, prog, description, argv), StoreError, ConfigError)


def main(model: str, prog: str, description: str, argv: Sequence[str]) -> int:
    """Parses, chooses the run directory, trains what is left to train, and prints the summary."""
    request = flags.read(model, prog, description, argv)
    programs = compile_cache.default_folder() if request.compile_cache else None
    directory = rundir.choose(request.config, request.out, request.overwrite)
    with locked(directory):
        if request.overwrite:
            rundir.clear(directory)
        restore_conditions(directory)
        from runners.common import Job, run_pack  # imports JAX, which reads the number of threads once
        from utils_log import ConsoleLogger

        if programs:
            compile_cache.enable(programs)
        status = run_pack([Job(directory, request.config)], ConsoleLogger(), request.attention_batch)
    return report(directory, request.config.name, status)


def report(directory: Path, name: str, status: str) -> int:
    """Says how the run ended; the exit status."""
    if status == "done":
        print(summary_text(directory))
        return 0
    meta = rundir.read_meta(directory)
    if status == "stopped":
        again = f"{Path(sys.executable).name} {' '.join(sys.orig_argv[1:])}".replace(" --overwrite", "")
        print(f"stopped at step {meta['stopped_at']}; the same command without --overwrite resumes it: {again}")
        return 128 + int(meta["signal"])
    losses = ", ".join(f"{loss:.4g}" for loss in meta["last_losses"])
    print(
        f"error: {name} diverged at step {meta['diverged_at']} after test losses {losses}; a smaller --lr, a smaller "
        "--config.grad_clip or --config.activation_clip=10 usually helps",
        file=sys.stderr,
    )
    return 1


def restore_conditions(directory: Path, width: int = 1) -> None:
    """Gives an unfinished run the thread count it began with; `StoreError` if that, a version or the width differs.

    The same bits come only from the same versions, threads and width of the pack. To be called before JAX is imported.
    """
    meta = rundir.read_meta(directory)
    if meta.get("status") in ("done", "diverged") or "versions" not in meta:
        return
    now_in_force = {**versions(), "pack_width": width}
    for name, was in {**meta["versions"], "pack_width": meta["pack_width"]}.items():
        if was != now_in_force.get(name):
            found = now_in_force.get(name)
            raise StoreError(f"{directory} was begun with {name} {was}, not {found}; --overwrite trains it anew")
    if meta["threads"] != num_threads():
        if "NPROC" in os.environ or "jax" in sys.modules:
            raise StoreError(
                f"{directory} was begun with {meta['threads']} threads; set NPROC={meta['threads']} to resume"
            )
        os.environ["NPROC"] = str(meta["threads"])
