"""Carries out tasks as an array of SLURM jobs, through submitit.

At pre-emption or the time limit SLURM signals a job, which saves its state and is queued again. At a signal to the
command the jobs in work stop at their next safe point and the others are cancelled.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from signal import SIGTERM
from typing import Any

from environment import extra
from executors.remote import Resources, Surroundings, carry_out_there, surroundings
from executors.signals import Signals
from executors.task import Context, Outcome, Report, Task

POLL_SECONDS = 0.5  # between two looks for outcomes, which are files


def by_slurm(tasks: Sequence[Task], report: Report, signals: Signals, resources: Resources) -> Iterator[Outcome]:
    """Carries out tasks as an array of jobs."""
    submitit, around = extra("submitit"), surroundings(resources)
    if not tasks:
        return
    folder = resources.jobs.resolve() / uuid.uuid4().hex[:8]
    stop = folder / "stop"
    executor = _executor(submitit, folder, resources)
    os.environ["PYTHONPATH"] = around.variables["PYTHONPATH"]  # jobs inherit the environment
    with executor.batch():
        jobs = [executor.submit(Resumable(task, around, stop)) for task in tasks]
    working, died = dict(zip(jobs, tasks, strict=True)), Counter[str]()
    try:
        while working:
            if signals.received and not stop.exists():
                stop.touch()
                for job in working:
                    if job.state in ("PENDING", "UNKNOWN"):
                        job.cancel()
            for job in [job for job in working if job.done()]:
                outcome = _outcome(submitit, job, working.pop(job), stop.exists())
                died[outcome.task.name] += bool(outcome.died)
                if outcome.died and died[outcome.task.name] <= resources.retries:
                    working[executor.submit(Resumable(outcome.task, around, stop))] = outcome.task
                    continue
                report(outcome.reported)
                yield outcome
            if working:
                time.sleep(POLL_SECONDS)
    finally:
        for job in working:  # whoever waits for the outcomes has given up
            job.cancel(check=False)
        if not died.total():  # else the logs say why
            shutil.rmtree(folder, ignore_errors=True)


class Resumable:
    """A task as submitit runs it. At pre-emption `checkpoint` is called by a signal's handler, in the main thread; so
    the task is done in another, which saves its state and ends.
    """

    def __init__(self, task: Task, around: Surroundings, stop: Path):
        self.task, self.around, self.stop = task._replace(alike=None), around, stop

    def __call__(self) -> Outcome:
        """Does the task, in a job."""
        self.signals, outcomes, reported = Signals(), list[Outcome](), [0]

        def report(amount: int) -> None:
            reported[0] += amount

        def work() -> None:
            outcomes.append(carry_out_there(self.task, self.around, Context(report, self.signals)))

        self.thread = threading.Thread(target=work)
        self.thread.start()
        while self.thread.is_alive():
            self.thread.join(POLL_SECONDS)
            if self.stop.exists() and not self.signals.received:
                self.signals.received.append(SIGTERM)
        return outcomes[0]._replace(reported=reported[0])

    def checkpoint(self) -> Any:
        """Saves the state, and gives submitit what to queue again."""
        self.signals.received.append(SIGTERM)
        self.thread.join()
        return extra("submitit").helpers.DelayedSubmission(Resumable(self.task, self.around, self.stop))


def _outcome(submitit: Any, job: Any, task: Task, stopped: bool) -> Outcome:
    """How a task's job ended."""
    try:
        outcome: Outcome = job.result()
    except submitit.core.utils.UncompletedJobError as error:
        if stopped:
            return Outcome(task, stopped=True)
        return Outcome(task, died=f"its job {job.job_id} ended without a result: {str(error).splitlines()[0]}")
    except submitit.core.utils.FailedJobError as error:
        return Outcome(task, died=f"its job {job.job_id} failed: {str(error).splitlines()[0]}")
    return outcome._replace(task=task)


def _executor(submitit: Any, folder: Path, resources: Resources) -> Any:
    """submitit's executor, with what a job asks for."""
    settings = dict(resources.slurm)
    cluster = settings.pop("cluster", "slurm")
    executor = submitit.AutoExecutor(folder=folder, cluster=cluster, slurm_max_num_timeout=resources.retries)
    known = {
        "name": "icl-lab",
        "cpus_per_task": resources.cpus,
        "gpus_per_node": int(-(-resources.gpus // 1)),
        "timeout_min": int(settings.pop("minutes", 60)),
    }
    if cluster == "slurm":
        known |= {"slurm_array_parallelism": int(settings.pop("at_once", 256))}
        named = {name: settings.pop(name) for name in ("partition", "account", "qos", "constraint") if name in settings}
        known |= {f"slurm_{name}": value for name, value in named.items()}
        known["slurm_additional_parameters"] = settings
    executor.update_parameters(**known)
    return executor
