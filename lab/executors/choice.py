"""Which executor carries out the tasks of a command: the names that users type, and their flags."""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from icl_lab.lab import cli
from icl_lab.lab.environment import UnusableEnvironment, check_extra
from icl_lab.lab.executors.inline import in_this_process
from icl_lab.lab.executors.processes import in_processes
from icl_lab.lab.executors.remote import Resources
from icl_lab.lab.executors.signals import Signals
from icl_lab.lab.executors.slurm_settings import WHOLE, SlurmFlag
from icl_lab.lab.executors.task import Executor, Outcome, Report, Task
from icl_lab.lab.flag_types import Number, Whole

PACKED_WIDTH = 8  # trainings in a pack, where packs are worth while
TASK_COUNT = Whole(1, 1024, "no machine has more")
LEAST_MINUTES = 3  # of a SLURM job: submitit signals it a minute and a half before its time is over


def on_ray(tasks: Sequence[Task], report: Report, signals: Signals, resources: Resources) -> Iterator[Outcome]:
    """`lab.executors.ray_cluster.on_ray`, imported when it is used."""
    from icl_lab.lab.executors import ray_cluster

    return ray_cluster.on_ray(tasks, report, signals, resources)


def by_slurm(tasks: Sequence[Task], report: Report, signals: Signals, resources: Resources) -> Iterator[Outcome]:
    """`lab.executors.slurm.by_slurm`, imported when it is used."""
    from icl_lab.lab.executors import slurm

    return slurm.by_slurm(tasks, report, signals, resources)


class Kind(NamedTuple):
    """An executor, and the default number of trainings in a pack.

    needs: the package of a cluster's, which takes the resources of its tasks.
    """

    run: Callable[..., Iterator[Outcome]]
    width: int
    needs: str = ""


EXECUTORS: Mapping[str, Kind] = {
    "packed": Kind(in_this_process, PACKED_WIDTH),
    "serial": Kind(in_this_process, 1),
    "process": Kind(in_processes, 1),
    "ray": Kind(on_ray, 1, needs="ray"),
    "slurm": Kind(by_slurm, 1, needs="submitit"),
}
CLUSTERS = tuple(name for name, kind in EXECUTORS.items() if kind.needs)
# flag -> the executors that it has an effect on
TAKEN_BY = {
    **dict.fromkeys(("task_cpus", "task_gpus", "task_retries"), CLUSTERS),
    "ray_address": ("ray",),
    "slurm": ("slurm",),
}


def executor(name: str, resources: Resources) -> Executor:
    """The executor of a name."""
    kind = EXECUTORS[name]
    return partial(kind.run, resources=resources) if kind.needs else kind.run


def check(name: str, resources: Resources) -> None:
    """`UnusableEnvironment` if an executor cannot work here; to be called before anything is written.

    Its package is only looked for: Ray reads its environment when it is imported.
    """
    if EXECUTORS[name].needs:
        check_extra(EXECUTORS[name].needs)
    if name == "slurm" and resources.slurm_cluster and not shutil.which("sbatch"):
        raise UnusableEnvironment("sbatch is not found, so no SLURM cluster is here; choose another --executor")


def default_width(name: str, resources: Resources) -> int:
    """Trainings in a pack: packs fill a GPU, CPUs are better used by one training each."""
    kind = EXECUTORS[name]
    return PACKED_WIDTH if kind.needs and resources.gpus else kind.width


def default_executor() -> str:
    """One process per core; packs on a GPU, which they fill."""
    return "packed" if shutil.which("nvidia-smi") else "process"


OF_SWEEPS = (
    "process: one process per core (default without a GPU); packed: several trainings at once (default with a GPU); "
    "serial: one by one; ray: on a Ray cluster; slurm: as an array of SLURM jobs"
)


def add_flags(built: cli.Parser, text: str = OF_SWEEPS) -> None:
    """Adds the flags that choose the executor and say what a cluster gives to a task."""
    built.add_argument("--executor", choices=EXECUTORS, help=text)
    built.add_argument(
        "--ray_address", default="", help="address of a Ray cluster, auto or HOST:PORT; default: one on this machine"
    )
    of_tasks: dict[str, tuple[Callable[[str], Any], str]] = {
        "cpus": (TASK_COUNT, "CPUs, and threads, of a task"),
        "gpus": (_gpus, "GPUs of a task, as in 1 or 0.25"),
        "retries": (Whole(0, TASK_COUNT.most), "how often a task that has died is retried"),
    }
    for name, (kind, about) in of_tasks.items():
        default = Resources._field_defaults[name]
        built.add_argument(f"--task_{name}", type=kind, help=f"on a cluster: {about} (default: {default:g})")
    text = "settings of SLURM jobs: partition, account, qos, constraint, minutes, at_once or any other option of sbatch"
    text += ", as in partition=cpu,gpu,minutes=60 (docs/cluster.md lists those that are refused)"
    built.add_argument("--slurm", nargs="+", action=SlurmFlag, default=[], help=text)


def resources_of(flags: argparse.Namespace, folder: Path) -> Resources:
    """The resources that flags ask for; logs of SLURM jobs go below a folder.

    `UsageError` for flags without effect, and for a fraction of a GPU where jobs are SLURM's.
    """
    for flag, executors in TAKEN_BY.items():
        if getattr(flags, flag) not in (None, "", []) and flags.executor not in executors:
            raise cli.UsageError(f"argument --{flag}: only --executor {' or '.join(executors)} takes it")
    of_task = {name: getattr(flags, f"task_{name}") for name in ("cpus", "gpus", "retries")}
    given = {name: value for name, value in of_task.items() if value is not None}
    resources = Resources(**given, ray_address=flags.ray_address, slurm=tuple(flags.slurm), jobs=folder / ".jobs")
    unused = [name for name, _ in resources.slurm if name not in ("cluster", *WHOLE)]
    if unused and not resources.slurm_cluster:
        raise cli.UsageError(
            f"argument --slurm: cluster=local takes only minutes and at_once, and would ignore {unused[0]}"
        )
    minutes = dict(resources.slurm).get("minutes", LEAST_MINUTES)
    if resources.slurm_cluster and minutes < LEAST_MINUTES:
        raise cli.UsageError(
            f"argument --slurm: minutes is {minutes}; a job saves its state a minute and a half before its time is "
            f"over, so ask for {LEAST_MINUTES} or more"
        )
    if flags.executor == "slurm" and resources.slurm_cluster and 0 < resources.gpus < 1:
        raise cli.UsageError(
            f"argument --task_gpus: a SLURM job has whole GPUs, and {resources.gpus:g} is a fraction of one; "
            "ask for 1, or for fractions use --executor ray"
        )
    return resources


def _gpus(text: str) -> float:
    value = Number(0.0, 64.0)(text)
    if value > 1 and value != int(value):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of GPUs: a fraction from 0 to 1, or a whole number")
    return value
