"""Jobs of an earlier command that was killed: they go on, in SLURM's queue or as processes of this machine.

Each command notes in its folder which job works on what, so that a later one waits for them instead of doing the same
at the same time.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from icl_lab.lab.executors.slurm_queue import Queue
from icl_lab.lab.executors.task import Task
from icl_lab.src.words import printable

NOTES = "tasks.jsonl"  # in a command's folder; a line is [job's id, what it works on]


def note(folder: Path, jobs: Mapping[str, Task]) -> None:
    """Notes jobs that have been submitted, by their ids."""
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
