"""SLURM's queue: which jobs wait in it, which have left it, and which are an earlier command's that was killed.

It calls squeue, which works on every cluster. sacct, which submitit calls, knows nothing where accounting is off, and
would be polled for up to ten minutes about a job that died.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from icl_lab.lab.executors.task import Task
from icl_lab.src.words import printable

POLL_SECONDS = 5.0  # between two polls of the queue; one call lists all jobs
# how long a job must be missing: a requeued job may be in no list, and over a network its result arrives late
GONE_SECONDS = 20.0
ANSWER_SECONDS = 60.0  # SLURM may be busy; a poll without an answer counts for nothing
AT_A_TIME = 1000  # ids in one command line
NOTES = "tasks.jsonl"  # in a command's folder; a line is [job's id, what it works on]


class Queue:
    """The jobs of this user as SLURM's queue lists them."""

    def __init__(self) -> None:
        self._listed: frozenset[str] = frozenset()
        self._asked = self._answered = float("-inf")
        self._missing_since: dict[str, float] = {}

    def left(self, ids: Iterable[str], at_once: bool = False) -> set[str]:
        """Which of these jobs have left the queue, for some time or, where nobody queues them again, at once."""
        if time.monotonic() - self._asked >= POLL_SECONDS:
            self._poll()
        if self._answered < 0:
            return set()
        since = {job: self._missing_since.get(job, self._answered) for job in ids if job not in self._listed}
        self._missing_since = since
        return {job for job, missed in since.items() if at_once or self._answered - missed >= GONE_SECONDS}

    def _poll(self) -> None:
        listed = _answer("squeue", "--noheader", "--array", f"--user={os.getuid()}", "--format=%i")
        self._asked = time.monotonic()
        if listed is not None:
            self._listed, self._answered = frozenset(listed.split()), self._asked

    def cancel_others(self, name: str, known: Collection[str]) -> None:
        """Cancels the jobs of a name that are none of the known ones."""
        listed = _answer("squeue", "--noheader", "--array", f"--user={os.getuid()}", f"--name={name}", "--format=%i")
        if others := sorted({*(listed or "").split()} - {*known}):
            self.cancel(others)

    def cancel(self, ids: Sequence[str], waiting: bool = False) -> None:
        """Cancels these jobs, or those that are still waiting; whoever has left the queue is passed over."""
        states = ["--state=PENDING"] if waiting else []
        for start in range(0, len(ids), AT_A_TIME):
            _answer("scancel", "--quiet", *states, *ids[start : start + AT_A_TIME])
        self._asked = self._answered = float("-inf")  # what is known is of before


def most_in_an_array() -> int:
    """How many jobs an array of this cluster may have."""
    for line in (_answer("scontrol", "show", "config") or "").splitlines():
        name, _, value = line.partition("=")
        if name.strip() == "MaxArraySize":
            return max(int(value), 1)
    return 1000  # SLURM's own default is one more


def _answer(*words: str) -> str | None:
    """What a command of SLURM's prints, or None where it does not answer."""
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=ANSWER_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


# --- jobs of an earlier command that was killed: they go on, in the queue or as processes of this machine ---
def note(folder: Path, jobs: Mapping[str, Task]) -> None:
    """Notes jobs that have been submitted, by their ids: a later command waits for them instead of doing the same."""
    with (folder / NOTES).open("a", encoding="utf-8") as file:
        file.writelines(f"{json.dumps([job, task.subjects])}\n" for job, task in jobs.items())


class EarlierJobs:
    """The jobs that other commands have noted in the folders beside this one, while they are queued or at work."""

    def __init__(self, folder: Path, queue: Queue | None):
        self.held: list[Task] = []
        self._queue, self._results, self._subjects = queue, dict[str, Path](), dict[str, list[str]]()
        for other in sorted(folder.parent.glob(f"*/{NOTES}")):
            for job, subjects in _noted(other) if other.parent != folder else ():
                self._subjects[job] = subjects
                self._results[job] = other.with_name(f"{job}_0_result.pkl")  # as submitit names it
        self._discard(at_once=True)  # what is in no list now left it long ago

    def hold(self, tasks: Sequence[Task]) -> list[Task]:
        """Keeps back the tasks that these jobs work on, in whose way they would be; returns the others."""
        busy = {subject: job for job, subjects in self._subjects.items() for subject in subjects}
        self.held = [task for task in tasks if not busy.keys().isdisjoint(task.subjects)]
        if self.held:
            jobs = sorted({busy[subject] for task in self.held for subject in task.subjects if subject in busy})
            sentence = f"{len(self.held)} of {len(tasks)} tasks wait for jobs of an earlier command: {', '.join(jobs)}"
            print(printable(sentence), file=sys.stderr, flush=True)
        return [task for task in tasks if busy.keys().isdisjoint(task.subjects)]

    def release(self, all_of_them: bool = False) -> list[Task]:
        """The tasks that nobody works on any more, or all: done again, they find what those jobs have done."""
        if not self.held:
            return []
        self._discard()
        busy = set() if all_of_them else {subject for subjects in self._subjects.values() for subject in subjects}
        free = [task for task in self.held if busy.isdisjoint(task.subjects)]
        self.held = [task for task in self.held if not busy.isdisjoint(task.subjects)]
        return free

    def _discard(self, at_once: bool = False) -> None:
        done = {job for job in self._subjects if self._results[job].exists()}
        left = {*self._subjects} - done
        done |= self._queue.left(left, at_once) if self._queue else {job for job in left if not self._runs(job)}
        self._subjects = {job: subjects for job, subjects in self._subjects.items() if job not in done}

    def _runs(self, job: str) -> bool:
        """Whether a process of this machine is the job, and not one that got its number later."""
        with suppress(OSError):
            return str(self._results[job].parent).encode() in Path(f"/proc/{job}/cmdline").read_bytes()
        return False


def _noted(path: Path) -> Iterator[tuple[str, list[str]]]:
    """The jobs of a file of notes; a line that a kill cut short is left out."""
    with suppress(OSError):
        for line in path.read_text(errors="replace").splitlines():
            with suppress(ValueError, TypeError):
                job, subjects = json.loads(line)
                if all(isinstance(text, str) for text in (job, *subjects)) and job.replace("_", "").isdecimal():
                    yield job, subjects
