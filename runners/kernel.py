"""Which kernel computes a training, chosen before its first step: the native one where it can, else XLA's programs.

A command chooses once, with `chosen`, before anything is written, and its workers get the choice. Runs that train
together settle it, with `settled`: a run that goes on keeps the kernel that it was begun with.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from icl_lab.lab import cli
from icl_lab.lab.configs.registry import family_of
from icl_lab.lab.configs.run import RunConfig
from icl_lab.lab.native.build import native_kernel, of_this_machine
from icl_lab.lab.native.kernel import ASKED, AUTO, NATIVE, XLA_NAME, Kernel
from icl_lab.runners.static_shape import Run
from icl_lab.src.checks import ConfigError
from icl_lab.src.native import support
from icl_lab.src.words import printable
from icl_lab.store import checkpoint, layout, provenance, rundir
from icl_lab.store.readers import StoreError, expecting

# of a layer's activations, of which benchmarks/performance.md has times: a batch of so many bytes is taken in blocks
# of at most so many, that have so many tasks
LARGE_BATCH, BLOCK_BYTES, LEAST_TASKS = 12 * 2**20, 3 * 2**20, 64
WHY = "kernel_why"  # in meta.json, beside `provenance.KERNEL`
IN_PROCESSES = "training in several processes uses XLA only"
BEGUN_WITH_XLA = "the run was begun with it"


def add_flag(built: cli.Parser) -> None:
    """Adds the flag of commands that train; it is not part of the config."""
    built.add_argument(
        "--kernel",
        choices=ASKED,
        default=AUTO,
        help="gradients by compiled C++ (native; several times faster) or by XLA; auto takes C++ where model and "
        "machine allow it, but a resumed run keeps the kernel it began with",
    )


def reason_of(config: RunConfig) -> str:
    """Why a config's trainings cannot have the native kernel; "" if they can."""
    if not family_of(config).stack:
        return f"{config.name} is not a stack of attention layers on pairs"
    stack: Any = config
    return support.impossible(stack.architecture, stack.training)


def slower_of(config: RunConfig) -> str:
    """Why `auto` leaves a config that can have the native kernel to XLA; "" where it does not."""
    stack: Any = config
    return support.slower(stack.architecture, stack.training)


def block_of(config: RunConfig) -> int:
    """How many tasks of a batch XLA takes at a time under `auto`; 0: all of them, which are faster or not measured."""
    each, tasks = config.layer_bytes(), config.training.batch_size // config.training.micro_batches
    if each == 0 or each * tasks < LARGE_BATCH or each * LEAST_TASKS > BLOCK_BYTES:
        return 0
    block = 2 ** math.floor(math.log2(BLOCK_BYTES / each))
    return 0 if tasks % block else block


def chosen(asked: str, runs: Iterable[tuple[Path, RunConfig]], overwrite: bool = False) -> Kernel:
    """What a command trains these runs with, if any is left to train; `ConfigError` where `native` cannot be.

    The object is built, if it is not there, only where a run may have it.
    """
    left = (Run(*run) for run in runs if overwrite or rundir.read_status(run[0]) not in rundir.FINISHED)
    if asked == NATIVE:
        refused = [*left]
        for run in refused:
            _refuse(reason_of(run.config), run.config)
        kernel = native_kernel() if refused else Kernel()
        _refuse(kernel.why)
        return kernel._replace(asked=asked)
    if asked == AUTO and any(_takes_native(run, overwrite) for run in left):
        return native_kernel()
    return Kernel(asked=asked)


def _takes_native(run: Run, overwrite: bool) -> bool:
    """Whether a run has the native kernel under `auto`, if this machine does."""
    if reason_of(run.config):
        return False
    try:
        begun = None if overwrite else begun_with(run)
    except StoreError:  # which is said when the run is locked
        begun = None
    return not slower_of(run.config) if begun is None else begun != XLA_NAME


def of_processes(asked: str) -> Kernel:
    """What a training in several processes has; `ConfigError` for the native kernel, whose calls are not divided."""
    if asked == NATIVE:
        _refuse(IN_PROCESSES)
    return Kernel(why=IN_PROCESSES * (asked == AUTO), asked=asked)


def settled(kernel: Kernel, runs: Sequence[Run]) -> Kernel:
    """The kernel of runs that train together, which this process has loaded; `ConfigError` where `native` cannot be.

    Under `auto` XLA takes a large batch of sequences in blocks. Must be called before anything of a run is written; JAX
    gets its devices.
    """
    if kernel.asked == XLA_NAME:
        return kernel
    if kernel.asked == AUTO and {begun_with(run) for run in runs} == {XLA_NAME}:
        return kernel.without(BEGUN_WITH_XLA)
    reason = reason_of(runs[0].config)
    if kernel.asked == AUTO and not reason and not any(map(begun_with, runs)):
        reason = slower_of(runs[0].config)
    if kernel.path is not None and not reason:
        kernel = of_this_machine(kernel)
        reason = _device_reason() or _loading_reason(kernel)
    if kernel.asked == NATIVE:
        _refuse(reason or kernel.why, runs[0].config)
    if kernel.path is not None and not reason:
        return kernel
    kernel, block = kernel.without(reason or kernel.why), block_of(runs[0].config)
    return kernel if block and _device_reason() else kernel.in_blocks(block)


def begun_with(run: Run) -> str | None:
    """The kernel that an unfinished run had at its last checkpoint, as meta.json describes it; None without one."""
    steps = checkpoint.steps(run.directory)
    return str(provenance.conditions_at(run.directory, steps[-1])[provenance.KERNEL]) if steps else None


def facts(kernel: Kernel) -> dict[str, str]:
    """What meta.json says of a run that begins."""
    return {provenance.KERNEL: kernel.described} | ({WHY: kernel.why} if kernel.why else {})


def of_run(run: Path) -> str:
    """The kernel of a run, by its meta.json, and those that it was resumed with; `StoreError` for other values."""
    meta = rundir.read_meta(run)
    with expecting(run / layout.META, "a run's meta.json"):
        others = [
            f"{change['is']} from step {change['step']}"
            for change in meta.get("resumed_elsewhere", [])
            if change["what"] == provenance.KERNEL
        ]
    return ", then ".join([str(meta.get(provenance.KERNEL, XLA_NAME)), *others])


def in_words(run: Path) -> str:
    """A line of a run's summary: which kernel, and why XLA; "" for runs of versions without a choice."""
    meta = rundir.read_meta(run)
    why = f" ({meta[WHY]})" if meta.get(WHY) else ""
    return printable(f"kernel: {of_run(run)}{why}") if provenance.KERNEL in meta else ""


def _refuse(reason: str, config: RunConfig | None = None) -> None:
    if reason:
        of = f" of {config.name}" if config is not None else ""
        raise ConfigError(f"--kernel native{of} is not possible: {reason}; --kernel auto falls back to XLA")


def _device_reason() -> str:
    import jax

    devices = jax.devices()
    if devices[0].platform != "cpu":
        return f"it is for CPUs, and this trains on {devices[0].device_kind}"
    return f"it is for one device, and there are {len(devices)}" if len(devices) > 1 else ""


def _loading_reason(kernel: Kernel) -> str:
    """Why this process cannot load an object; "" once it has."""
    if kernel.path is None:
        return kernel.why
    from icl_lab.src.native.library import open_library

    try:
        open_library(kernel.path, kernel.tag)
    except OSError as error:
        return f"it cannot be loaded: {error}"
    return ""
