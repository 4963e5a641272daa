"""Carries out tasks as arrays of SLURM jobs, through submitit.

At pre-emption or the time limit SLURM signals a job, which saves its state and is queued again. At a signal to the
command the jobs in work stop at their next safe point and the others are cancelled.
"""

from __future__ import annotations

import os
import shutil
import signal
import threading
import time
import uuid
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from environment import UnusableEnvironment, extra
from executors.pace import Pace
from executors.remote import Resources, Surroundings, carry_out_there, surroundings
from executors.signals import Signals
from executors.slurm_queue import Queue, most_in_an_array
from executors.task import Context, Outcome, Report, Task
from executors.worker import available_cores

POLL_SECONDS = 0.5  # at least, between two looks for outcomes, which are files
MOST_ARRAYS = 2  # in the queue
# how often a job may reach its time limit: it progresses each time, so this only stops one that never ends
MOST_LIMITS = 1000
LIMIT = {"slurm": 60, "local": 10**5}  # minutes; a process of this machine needs no limit
ENDED_BY_SIGNAL = 128 + signal.SIGTERM
RULE = "-" * 22  # around the trace in submitit's words


def by_slurm(tasks: Sequence[Task], report: Report, signals: Signals, resources: Resources) -> Iterator[Outcome]:
    """Carries out tasks as arrays of jobs; `UnusableEnvironment` if SLURM does not take them."""
    if not tasks:
        return
    folder = resources.jobs.resolve() / uuid.uuid4().hex[:8]
    jobs, died = Jobs(tasks, folder, resources), Counter[str]()
    try:
        while jobs.fill():
            if signals.received:
                yield from jobs.stop()
            for outcome in jobs.ended():
                died[outcome.task.name] += bool(outcome.died)
                if outcome.died and died[outcome.task.name] <= resources.retries:
                    jobs.submit([outcome.task])
                    continue
                report(outcome.reported)
                yield outcome
            if jobs.working:
                time.sleep(POLL_SECONDS)
    finally:
        jobs.cancel()  # if the caller stopped iterating
        if not died.total():  # else the logs say why
            shutil.rmtree(folder, ignore_errors=True)


class Jobs:
    """Jobs in SLURM's queue, or processes of this machine, by submitit; a folder has their logs and results.

    At most two arrays are in the queue, so that large plans do not load the cluster. A process is an array of its
    own, and as many run at once as the machine has cores and GPUs for.
    """

    def __init__(self, tasks: Sequence[Task], folder: Path, resources: Resources):
        self.folder, self.working = folder, dict[Any, Task]()
        self._submitit, self._around, self._stop = extra("submitit"), surroundings(resources), folder / "stop"
        self._queue, self._pace = Queue() if resources.slurm_cluster else None, Pace(POLL_SECONDS)
        size, self._most = (most_in_an_array(), MOST_ARRAYS) if self._queue else (1, _at_once_here(resources))
        self._arrays = deque(tasks[start : start + size] for start in range(0, len(tasks), size))
        self._executor = _executor(self._submitit, folder, resources, min(len(self._arrays), MOST_ARRAYS))
        os.environ["PYTHONPATH"] = self._around.variables["PYTHONPATH"]  # jobs inherit the environment

    def fill(self) -> bool:
        """Submits further arrays, up to as many as may stand in the queue; whether any job is working."""
        while self._arrays and len({job.job_id.partition("_")[0] for job in self.working}) < self._most:
            self.submit(self._arrays.popleft())
        return bool(self.working)

    def submit(self, tasks: Sequence[Task]) -> None:
        """Submits tasks as one array."""
        try:
            with self._executor.batch():
                jobs = [self._executor.submit(Resumable(task, self._around, self._stop)) for task in tasks]
        except self._submitit.core.utils.FailedJobError as error:
            reason = str(error).strip().splitlines()[-1].removeprefix("sbatch: error: ")
            raise UnusableEnvironment(f"SLURM does not take the jobs: {reason}") from None
        self.working |= dict(zip(jobs, tasks, strict=True))

    def stop(self) -> Iterator[Outcome]:
        """Stops the running jobs at their next safe point, and cancels those that wait; a second call does nothing.

        The outcomes are those of tasks that have not been submitted.
        """
        if self._stop.exists():
            return
        self._stop.touch()
        if self._queue:
            self._queue.cancel([job.job_id for job in self.working], waiting=True)
        yield from (Outcome(task, stopped=True) for array in self._arrays for task in array)
        self._arrays.clear()

    def cancel(self) -> None:
        """Ends all jobs."""
        if self._queue:
            self._queue.cancel([job.job_id for job in self.working])
            return
        for job in self.working:
            job.cancel(check=False)

    def ended(self) -> list[Outcome]:
        """The outcomes of the jobs that have ended since the last check; checks are rarer in a large folder."""
        if not self._pace.due():
            return []
        with self._pace.timed():
            results = {path.name for path in self.folder.iterdir()}  # one list, which a shared folder brings up to date
        done = [job for job in self.working if job.paths.result_pickle.name in results]
        without = self._without_result([job for job in self.working if job.paths.result_pickle.name not in results])
        return [self._outcome(job, self.working.pop(job)) for job in (*done, *without)]

    def _without_result(self, jobs: Sequence[Any]) -> list[Any]:
        """Which of these jobs, that have no result yet, will have none."""
        if self._queue is None:
            return [job for job in jobs if job.done()]
        left = self._queue.left([job.job_id for job in jobs], at_once=self._stop.exists())
        return [job for job in jobs if job.job_id in left]

    def _outcome(self, job: Any, task: Task) -> Outcome:
        """How a task's job ended. A result may have come since it was looked for."""
        if job.paths.result_pickle.exists():
            try:
                outcome: Outcome = job.result()
            except self._submitit.core.utils.FailedJobError as error:
                return Outcome(task, died=f"its job {job.job_id} failed: {_reason(str(error))}")
            return outcome._replace(task=task)
        if self._stop.exists():
            return Outcome(task, stopped=True)
        return Outcome(task, died=f"its job {job.job_id} ended without a result; its log is {job.paths.stderr}")


class Resumable:
    """A task as submitit runs it, in a thread, since its job's signals are handled in the main one.

    Before the time limit the job gets SIGUSR2, at which submitit calls `checkpoint` and requeues the job. A
    pre-empted or cancelled job gets SIGTERM, and is killed half a minute later: the task saves its state, and the
    process ends without a result, so that a requeued job is not taken for one that has ended.
    """

    def __init__(self, task: Task, around: Surroundings, stop: Path):
        self.task, self.around, self.stop = task._replace(alike=None), around, stop

    def __call__(self) -> Outcome:
        """Does the task, in a job."""
        self.signals, outcomes, reported = Signals(), list[Outcome](), [0]
        signal.signal(signal.SIGTERM, self.signals.receive)

        def report(amount: int) -> None:
            reported[0] += amount

        def work() -> None:
            outcomes.append(carry_out_there(self.task, self.around, Context(report, self.signals)))

        self.thread = threading.Thread(target=work)
        self.thread.start()
        while self.thread.is_alive():
            self.thread.join(POLL_SECONDS)
            if self.stop.exists() and not self.signals.received:
                self.signals.received.append(signal.SIGTERM)
        if outcomes[0].stopped and not self.stop.exists():
            os._exit(ENDED_BY_SIGNAL)
        return outcomes[0]._replace(reported=reported[0])

    def checkpoint(self) -> Any:
        """Saves the state, and gives submitit what to queue again."""
        self.signals.received.append(signal.SIGTERM)
        self.thread.join()
        return extra("submitit").helpers.DelayedSubmission(Resumable(self.task, self.around, self.stop))


def _reason(said: str) -> str:
    """The exception in submitit's message on a failed job: the last line of a traceback between two rules."""
    trace = said.split(f"\n{RULE}\n")[1:2] or [said]
    return trace[0].strip().splitlines()[-1]


def _at_once_here(resources: Resources) -> int:
    """How many processes of this machine work at a time; submitit gives all of them the same GPUs."""
    most = int(dict(resources.slurm).get("at_once", 0)) or max(len(available_cores()) // resources.cpus, 1)
    return min(most, max(int(1 / resources.gpus), 1)) if resources.gpus else most


def _executor(submitit: Any, folder: Path, resources: Resources, arrays: int) -> Any:
    """submitit's executor, with what a job asks for; `at_once` is divided among the arrays."""
    settings = dict(resources.slurm)
    cluster = settings.pop("cluster", "slurm")
    limits = {f"{name}_max_num_timeout": MOST_LIMITS for name in LIMIT}
    executor = submitit.AutoExecutor(folder=folder, cluster=cluster, **limits)
    known: dict[str, Any] = {
        "name": "icl-lab",
        "cpus_per_task": resources.cpus,
        "gpus_per_node": int(-(-resources.gpus // 1)),
        "timeout_min": int(settings.pop("minutes", LIMIT.get(cluster, LIMIT["slurm"]))),
    }
    if cluster == "slurm":
        known |= {"slurm_array_parallelism": max(int(settings.pop("at_once", 256)) // arrays, 1)}
        named = {name: settings.pop(name) for name in ("partition", "account", "qos", "constraint") if name in settings}
        known |= {f"slurm_{name}": value for name, value in named.items()}
        known["slurm_additional_parameters"] = settings
    executor.update_parameters(**known)
    return executor
