"""What `--slurm` takes: settings of the executor, and the options of sbatch that it does not need for itself."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from icl_lab.lab import cli
from icl_lab.lab.flag_types import Whole
from icl_lab.src.words import words_of

# the executor's own whole numbers: up to a year in minutes, and to more jobs than any queue holds
WHOLE = {"minutes": Whole(1, 366 * 24 * 60), "at_once": Whole(1, 10**6)}
CLUSTERS = ("slurm", "local")
# option of sbatch that would undo what the executor relies on -> what to do instead
REFUSED = {
    "array": "the command sets one element for each task; at_once limits the queue",
    "chdir": "tasks work in the folder of the command",
    "clusters": "the command watches only the current cluster",
    "cpus-per-task": "use --task_cpus",
    "error": "logs go to .jobs beside the runs",
    "export": "tasks need the command's environment",
    "export-file": "tasks need the command's environment",
    "gpus": "use --task_gpus",
    "gpus-per-node": "use --task_gpus",
    "gpus-per-task": "use --task_gpus",
    "job-name": "the command identifies its jobs by their names",
    "no-requeue": "a stopped job is queued again to continue its task",
    "nodes": "a task is one process on one machine",
    "ntasks": "a task is one process on one machine",
    "ntasks-per-node": "a task is one process on one machine",
    "open-mode": "logs go to .jobs beside the runs",
    "output": "logs go to .jobs beside the runs",
    "parsable": "the command reads what sbatch prints",
    "quiet": "the command reads what sbatch prints",
    "requeue": "a stopped job is queued again to continue its task",
    "signal": "a signal tells a job to save its state before its time limit",
    "test-only": "it submits nothing",
    "time": "use minutes",
    "wait": "the command itself waits for its jobs",
    "wrap": "the command supplies the job script",
}


class SlurmFlag(argparse.Action):
    """Reads NAME=VALUE,NAME=VALUE. A comma in brackets, or before a word without =, is part of a value."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        """Called by argparse for the flag."""
        setattr(namespace, self.dest, settings(values))


def settings(arguments: Sequence[str]) -> list[tuple[str, Any]]:
    """The settings in these arguments, as in partition=cpu,gpu exclude=node[01-03,07]; `UsageError` for wrong ones."""
    texts: list[str] = []
    for word in words_of(",".join(",".join(arguments).split())):
        if "=" in word or not texts:
            texts.append(word)
        else:
            texts[-1] += f",{word}"
    found = [_setting(text) for text in texts]
    names = [name.replace("_", "-") for name, _ in found]
    for name in names:
        _require(names.count(name) == 1, f"{name} is given twice")
    _require(bool(found), "it needs at least one NAME=VALUE")
    return found


def _setting(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    _require(bool(name and equals and value), f"{text!r} is not NAME=VALUE")
    if name in WHOLE:
        try:
            return name, WHOLE[name](value)
        except argparse.ArgumentTypeError:
            raise cli.UsageError(f"argument --slurm: {name} is {value!r}; it must be {WHOLE[name]}") from None
    if name == "cluster":
        _require(value in CLUSTERS, f"cluster is {value!r}; choose {' or '.join(CLUSTERS)}")
        return name, value
    # sbatch takes any beginning of an option's name for the option
    options = [option for option in REFUSED if option.startswith(name.replace("_", "-"))]
    _require(not options, f"{name} cannot be given: {REFUSED[options[0]] if options else ''}")
    return name, True if value == "true" else value  # an option without a value, as in exclusive=true


def _require(condition: bool, problem: str) -> None:
    if not condition:
        raise cli.UsageError(f"argument --slurm: {problem}")
