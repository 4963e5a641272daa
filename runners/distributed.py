"""One training in several processes, on one host or on many: `jax.distributed` over the devices of all of them.

Every process runs the same command, and trains its part of each batch. The first owns the run directory. The others
follow: they work on temporary copies.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

from icl_lab.lab import cli
from icl_lab.lab.executors.signals import Signals
from icl_lab.lab.flag_types import Whole
from icl_lab.store import layout, rundir
from icl_lab.store.readers import StoreError

PROCESSES = Whole(1, 2**16, "more than there are on any cluster")
PATIENCE = 7 * 24 * 3600  # seconds that those who are through wait for the first process, which analyses the run


class Process(NamedTuple):
    """Which of the processes of a training this is; address: HOST:PORT of the first, where the others find it."""

    address: str
    processes: int
    id: int

    @property
    def follows(self) -> bool:
        """Whether the run directory is another's."""
        return self.id > 0


def add_flags(built: argparse.ArgumentParser) -> None:
    """Adds the flags, in a group of their own; they are not part of the config."""
    group = built.add_argument_group("one training in several processes (docs/cluster.md)")
    group.add_argument(
        "--coordinator_address", metavar="HOST:PORT", help="address at which the other processes find the first one"
    )
    group.add_argument("--num_processes", type=PROCESSES, metavar="N", help="number of processes")
    group.add_argument(
        "--process_id", type=Whole(0, PROCESSES.most), metavar="I", help="number of this process, from 0"
    )


def from_flags(flags: argparse.Namespace) -> Process | None:
    """What the flags say; None without. `UsageError` unless all three are given."""
    address, processes, process_id = flags.coordinator_address, flags.num_processes, flags.process_id
    if (address, processes, process_id) == (None, None, None):
        return None
    host, colon, port = (address or "").rpartition(":")
    if address is None or processes is None or process_id is None:
        raise cli.UsageError(
            "--coordinator_address, --num_processes and --process_id must be given together or not at all"
        )
    if not (host and colon and port.isdecimal() and 0 < int(port) < 2**16):
        raise cli.UsageError(f"--coordinator_address is {address!r}; it must be HOST:PORT")
    if not 0 <= process_id < processes:
        raise cli.UsageError(
            f"--process_id is {process_id}; with {processes} processes it must be from 0 to {processes - 1}"
        )
    return Process(address, processes, process_id)


def start(process: Process) -> None:
    """Joins the other processes, and waits for them; must be called before JAX has its devices."""
    import jax

    jax.distributed.initialize(*process, shutdown_timeout_seconds=PATIENCE)


@contextmanager
def copied(run: Path) -> Iterator[Path]:
    """A follower's copy of a run directory as it is while the first process waits; removed in the end."""
    with TemporaryDirectory(prefix="icl-lab-") as folder:
        private = Path(folder) / run.name
        meet("before copying")
        if rundir.has_begun(run):
            shutil.copytree(run, private, ignore=layout.not_copied)
        meet("after copying")
        yield private


def wait_for_copies() -> None:
    """Lets the first process, which has locked the run directory, wait while the others copy it."""
    meet("before copying")
    meet("after copying")


def meet(place: str) -> None:
    """Waits until all processes have come to this place."""
    from jax.experimental import multihost_utils

    multihost_utils.sync_global_devices(place)


def values_of_all(value: int) -> list[int]:
    """Gathers one value from each process, in process order."""
    import jax

    if jax.process_count() == 1:
        return [value]
    from jax.experimental import multihost_utils

    return [int(each) for each in np.ravel(multihost_utils.process_allgather(np.int32(value)))]


def agree_on(signals: Signals) -> None:
    """Passes a signal that one process has received on to all; each must call this at the same place."""
    received = values_of_all(signals.received[0] if signals.received else 0)
    if not signals.received:
        signals.received += [number for number in received if number][:1]


def check_same_step(step: int, runs: Sequence[Path]) -> None:
    """`StoreError` unless all processes begin at the same step."""
    if len(set(steps := values_of_all(step))) > 1:
        text = ", ".join(map(str, steps))
        raise StoreError(f"the processes begin {runs[0].name} at steps {text}: they do not see the same run directory")
