"""SLURM's queue: which jobs wait in it, and which have left it.

It calls squeue, which works on every cluster. sacct, which submitit calls, knows nothing where accounting is off, and
would be polled for up to ten minutes about a job that died.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Collection, Iterable, Sequence

POLL_SECONDS = 5.0  # between two polls of the queue; one call lists all jobs
# how long a job must be missing: a requeued job may be in no list, and over a network its result arrives late
GONE_SECONDS = 20.0
ANSWER_SECONDS = 60.0  # SLURM may be busy; a poll without an answer counts for nothing
AT_A_TIME = 1000  # ids in one command line


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
