"""Carries out tasks as arrays of SLURM jobs, through submitit.

At pre-emption or the time limit SLURM signals a job, which saves its state and is queued again. At a signal to the
command the jobs in work stop at their next safe point and the others are cancelled.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import threading
import time
import uuid
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from icl_lab.lab.environment import UnusableEnvironment, extra
from icl_lab.lab.executors.remote import Resources, TaskEnvironment, pass_on, run_remote, task_environment
from icl_lab.lab.executors.signals import Signals
from icl_lab.lab.executors.slurm_queue import EarlierJobs, Queue, most_in_an_array, note
from icl_lab.lab.executors.task import Context, Outcome, Report, Task
from icl_lab.lab.executors.throttle import Throttle
from icl_lab.lab.executors.worker import available_cores
from icl_lab.src.words import printable

POLL_SECONDS = 0.5  # at least, between two looks for outcomes, which are files
AT_ONCE = 256  # jobs in the queue
PARTS = 8  # jobs are submitted whenever one in so many has ended: arrays stay large, and most of the queue is filled
RESUBMIT_SECONDS = 60.0
PATIENCE_SECONDS = 30.0  # with a process of this machine that is to stop: as long as SLURM gives its jobs
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
            time.sleep(POLL_SECONDS)
            if signals.received:
                yield from jobs.stop()
            for outcome in jobs.ended():
                died[outcome.task.name] += bool(outcome.died)
                if outcome.died and not signals.received and died[outcome.task.name] <= resources.retries:
                    jobs.waiting.append(outcome.task)
                    continue
                pass_on(outcome, report)
                yield outcome
    finally:
        jobs.cancel()  # if the caller stopped iterating
        if not died.total() and not jobs.working:  # else logs say why, or jobs look for the stop file
            shutil.rmtree(folder, ignore_errors=True)


class Jobs:
    """Jobs in SLURM's queue, or processes of this machine, by submitit; a folder has their logs and results.

    At most `at_once` jobs are in the queue, waiting or running, so that large plans do not load the cluster. Processes
    are submitted one by one, and as many run at once as the machine has cores and GPUs for.
    """

    def __init__(self, tasks: Sequence[Task], folder: Path, resources: Resources):
        self.folder, self.working = folder, dict[Any, Task]()
        self._submitit, self._environment, self._stop = extra("submitit"), task_environment(resources), folder / "stop"
        self._queue, self._throttle = Queue() if resources.slurm_cluster else None, Throttle(POLL_SECONDS)
        self._at_once = _at_once(resources)
        self._least, self._most = (max(self._at_once // PARTS, 1), most_in_an_array()) if self._queue else (1, 1)
        self._executor = _executor(self._submitit, folder, resources)
        self._accepted, self._refusal, self._again = False, "", float("-inf")
        self._earlier = EarlierJobs(folder, Queue() if self._queue else None)
        self.waiting = deque(self._earlier.hold(tasks))
        os.environ["PYTHONPATH"] = self._environment.variables["PYTHONPATH"]  # jobs inherit the environment

    def fill(self) -> bool:
        """Submits tasks while there is room for an array of them; whether any task waits or is in work."""
        self.waiting.extend(self._earlier.release())
        while self.waiting and time.monotonic() >= self._again:
            room = self._at_once - len(self.working)
            if room < min(self._least, len(self.waiting)):
                break
            self._submit([self.waiting.popleft() for _ in range(min(room, self._most, len(self.waiting)))])
        return bool(self.waiting or self.working or self._earlier.held)

    def _submit(self, tasks: Sequence[Task]) -> None:
        """Submits tasks as one array. If SLURM has taken jobs before, tasks that it refuses wait for the next try.

        What answers too late may have been taken: jobs that this command does not know are cancelled before that try.
        """
        if self._refusal:
            self._cancel_others()
        try:
            with deaf_to_interrupts(), self._executor.batch():
                jobs = [self._executor.submit(Resumable(task, self._environment, self._stop)) for task in tasks]
        except self._submitit.core.utils.FailedJobError as error:
            reason = str(error).strip().splitlines()[-1].removeprefix("sbatch: error: ")
            if not self._accepted:
                self._cancel_others()
                raise UnusableEnvironment(f"SLURM does not take the jobs: {reason}") from None
            if reason != self._refusal:
                sentence = f"SLURM does not take more jobs now: {reason}; the command tries again every minute"
                print(printable(sentence), file=sys.stderr, flush=True)
            self._refusal, self._again = reason, time.monotonic() + RESUBMIT_SECONDS
            self.waiting.extendleft(reversed(tasks))
        else:
            self._accepted, self._refusal = True, ""
            self.working |= dict(zip(jobs, tasks, strict=True))
            note(self.folder, {job.job_id: task for job, task in zip(jobs, tasks, strict=True)})

    def _cancel_others(self) -> None:
        if self._queue:
            self._queue.cancel_others(_job_name(self.folder), {job.job_id for job in self.working})

    def stop(self) -> Iterator[Outcome]:
        """Stops the running jobs at their next safe point, and cancels those that wait in the queue.

        The outcomes are those of tasks that have not been submitted.
        """
        if not self._stop.exists():
            self._stop.touch()
            if self._queue:
                self._queue.cancel([job.job_id for job in self.working], waiting=True)
        self.waiting.extend(self._earlier.release(all_of_them=True))
        while self.waiting:
            yield Outcome(self.waiting.popleft(), stopped=True)

    def cancel(self) -> None:
        """Ends all jobs. Processes of this machine stop at their next safe point, which is waited for."""
        if self._queue:
            self._queue.cancel([job.job_id for job in self.working])
            return
        for job in self.working:
            if not job.done():
                self._stop.touch()  # a stopped process, and not one to be queued again
                os.kill(int(job.job_id), signal.SIGTERM)  # which submitit passes on; it sends SIGINT itself
        last = time.monotonic() + PATIENCE_SECONDS
        while self.working and time.monotonic() < last:
            self.working = {job: task for job, task in self.working.items() if not job.done()}
            time.sleep(POLL_SECONDS * bool(self.working))

    def ended(self) -> list[Outcome]:
        """The outcomes of the jobs that have ended since the last check; checks are rarer in a large folder."""
        if not self._throttle.due():
            return []
        with self._throttle.timed():
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


@contextlib.contextmanager
def deaf_to_interrupts() -> Iterator[None]:
    """Processes begun in this block never get SIGINT; one that this process gets meanwhile arrives after the block.

    A terminal sends Ctrl-C to all its processes. submitit's local ones would print a traceback each, and the command
    that began them stops them.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Resumable:
    """A task as submitit runs it, in a thread, since its job's signals are handled in the main one.

    Before the time limit the job gets SIGUSR2, at which submitit calls `checkpoint` and requeues the job. A
    pre-empted or cancelled job gets SIGTERM, and is killed half a minute later: the task saves its state, and the
    process ends without a result, so that a requeued job is not taken for one that has ended.
    """

    def __init__(self, task: Task, environment: TaskEnvironment, stop: Path):
        self.task, self.environment, self.stop = task._replace(alike=None), environment, stop

    def __call__(self) -> Outcome:
        """Does the task, in a job."""
        self.signals, outcomes, reported = Signals(), list[Outcome](), [0]
        signal.signal(signal.SIGTERM, self.signals.receive)

        def report(amount: int) -> None:
            reported[0] += amount

        def work() -> None:
            outcomes.append(run_remote(self.task, self.environment, Context(report, self.signals)))

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
        return extra("submitit").helpers.DelayedSubmission(Resumable(self.task, self.environment, self.stop))


def _reason(text: str) -> str:
    """The exception in submitit's message on a failed job: the last line of a traceback between two rules."""
    trace = text.split(f"\n{RULE}\n")[1:2] or [text]
    return trace[0].strip().splitlines()[-1]


def _at_once(resources: Resources) -> int:
    """How many jobs are in the queue, or processes of this machine at work; submitit gives these all the same GPUs."""
    asked = int(dict(resources.slurm).get("at_once", 0))
    if resources.slurm_cluster:
        return asked or AT_ONCE
    most = asked or max(len(available_cores()) // resources.cpus, 1)
    return min(most, max(int(1 / resources.gpus), 1)) if resources.gpus else most


def _job_name(folder: Path) -> str:
    """The name of a command's jobs in the queue, which no other command's have."""
    return f"icl-lab-{folder.name}"


def _executor(submitit: Any, folder: Path, resources: Resources) -> Any:
    """submitit's executor, with what a job asks for."""
    settings = dict(resources.slurm)
    cluster = settings.pop("cluster", "slurm")
    limits = {f"{name}_max_num_timeout": MOST_LIMITS for name in LIMIT}
    executor = submitit.AutoExecutor(folder=folder, cluster=cluster, **limits)
    known: dict[str, Any] = {
        "name": _job_name(folder),
        "cpus_per_task": resources.cpus,
        "gpus_per_node": int(-(-resources.gpus // 1)),
        "timeout_min": int(settings.pop("minutes", LIMIT.get(cluster, LIMIT["slurm"]))),
    }
    if cluster == "slurm":
        known["slurm_array_parallelism"] = int(settings.pop("at_once", AT_ONCE))
        named = {name: settings.pop(name) for name in ("partition", "account", "qos", "constraint") if name in settings}
        known |= {f"slurm_{name}": value for name, value in named.items()}
        known["slurm_additional_parameters"] = settings | {"requeue": True}  # where the cluster's default is not to
    executor.update_parameters(**known)
    return executor
