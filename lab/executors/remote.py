"""The environment of tasks in processes that a cluster starts: folder, plugins, threads and devices."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from icl_lab.lab import cli
from icl_lab.lab.executors.task import Context, Outcome, Report, Task, carry_out
from icl_lab.lab.loaded_plugins import LOADED
from icl_lab.src.namespace import FOLDER
from icl_lab.src.words import printable

MOST_LINES = 20  # of a task on standard error that the command shows: its last ones
GPU_MEMORY = 0.9  # of a GPU's memory is divided among the tasks on it; the rest is for the programs themselves


class Resources(NamedTuple):
    """What a cluster gives to a task, and where it is.

    cpus: also the number of threads. gpus: may be a fraction, for several tasks on one GPU. retries: how often a task
    is retried whose process has died. jobs: folder of the logs and results of SLURM jobs.
    """

    cpus: int = 1
    gpus: float = 0.0
    retries: int = 3
    ray_address: str = ""
    slurm: Sequence[tuple[str, Any]] = ()
    jobs: Path = Path(".jobs")

    @property
    def slurm_cluster(self) -> bool:
        """Whether SLURM jobs go to a cluster; cluster=local makes them processes of this machine."""
        return bool(dict(self.slurm).get("cluster", "slurm") == "slurm")


class TaskEnvironment(NamedTuple):
    """The command's working folder and plugins, and the environment variables of its tasks."""

    folder: str
    plugins: tuple[str, ...]
    variables: dict[str, str]


def task_environment(resources: Resources) -> TaskEnvironment:
    """That of this process. Variables have to be set before JAX is imported, which reads them once."""
    inherited = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    variables = {"NPROC": str(resources.cpus), "PYTHONPATH": os.pathsep.join(filter(None, [FOLDER, *inherited]))}
    if not resources.gpus:
        variables["JAX_PLATFORMS"] = "cpu"
    elif resources.gpus < 1:
        variables["XLA_PYTHON_CLIENT_MEM_FRACTION"] = f"{GPU_MEMORY * resources.gpus:.3f}"
    plugins = tuple(str(plugin.path.resolve()) for plugin in LOADED.values())
    return TaskEnvironment(os.getcwd(), plugins, variables)


def run_remote(task: Task, environment: TaskEnvironment, context: Context) -> Outcome:
    """Does a task in this process, which a cluster has started."""
    os.environ.update(environment.variables)
    with redirect_stderr(Copied(sys.stderr)) as copy:
        try:
            os.chdir(environment.folder)
            cli.load_plugins(environment.plugins)
        except Exception as error:
            outcome = Outcome(task, error=error)
        else:
            outcome = carry_out(task, context)
    return outcome._replace(said=copy.last_lines())


def pass_on(outcome: Outcome, report: Report) -> None:
    """Passes on what a task on a cluster has reported, and its lines on standard error, as those of tasks here are."""
    report(outcome.reported)
    for line in outcome.said:
        print(printable(line), file=sys.stderr, flush=True)


class Copied(io.StringIO):
    """A stream that keeps what is written to another: a notice, a warning."""

    def __init__(self, other: TextIO | None):
        super().__init__()
        self.other = other

    def write(self, text: str, /) -> int:
        """Writes to both."""
        if self.other is not None:
            self.other.write(text)
        return super().write(text)

    def flush(self) -> None:
        """Flushes the other."""
        if self.other is not None:
            self.other.flush()

    def last_lines(self) -> tuple[str, ...]:
        """At most `MOST_LINES`."""
        return tuple(self.getvalue().splitlines()[-MOST_LINES:])
