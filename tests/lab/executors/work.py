"""Tasks that executors are tested with."""

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from icl_lab.lab.executors.task import Context, Task
from tests.lab.executors.waiting import until


def square(context: Context, number: int) -> int:
    context.report(1)
    return number * number


def fail(context: Context, word: str) -> None:
    raise KeyError(word)


def say(context: Context, lines: int) -> None:
    """Says what a takeover says, on standard error."""
    for number in range(lines):
        print(f"notice {number}", file=sys.stderr)


class Odd(Exception):
    """An exception that cannot be sent to another process."""

    def __init__(self, one: int, other: int):
        super().__init__(f"{one} and {other}")


def fail_oddly(context: Context) -> None:
    raise Odd(1, 2)


def die(context: Context, once: Path) -> str:
    """Ends its process the first time that it is done."""
    if not once.exists():
        once.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return "retried"


def count(context: Context, file: Path, up_to: int) -> int:
    """Counts in a file, and goes on from what is there; stops at a signal."""
    number = int(file.read_text()) if file.exists() else 0
    while number < up_to and not context.signals.received:
        number += 1
        draft = file.with_suffix(".draft")
        draft.write_text(str(number))
        draft.replace(file)
        context.report(1)
        time.sleep(0.01)
    return number


def count_saving_at_signals(context: Context, file: Path, up_to: int) -> int:
    """Counts, and writes how far it has come at a signal alone, from where it goes on."""
    number = int(file.read_text()) if file.exists() else 0
    while number < up_to and not context.signals.received:
        number += 1
        context.report(1)
        time.sleep(0.01)
        file.with_suffix(".begun").touch()
    if number < up_to:
        file.write_text(str(number))
    return number


def work_alone(context: Context, folder: Path) -> str:
    """Fails if another process works there; ends when it is told to. Done again, it finds that it is done."""
    if not (folder / "done").exists():
        (folder / "in_work").mkdir(parents=True)
        until("the word to go on", (folder / "go_on").exists)
        (folder / "done").touch()
        (folder / "in_work").rmdir()
        return "worked"
    return "found done"


def stop_alone(context: Context, times: Path, up_to: int) -> int:
    """Its process receives SIGTERM, as many times as it is done; what it has counted is on disk."""
    number = int(times.read_text()) + 1 if times.exists() else 1
    times.write_text(str(number))
    if number <= up_to:
        os.kill(os.getpid(), signal.SIGTERM)
        while not context.signals.received:
            time.sleep(0.01)
    return number


def refuse(word: str) -> None:
    raise ValueError(word)


class Unreadable:
    """What the process that it is sent to cannot read."""

    def __reduce__(self) -> tuple[Any, ...]:
        return refuse, ("it cannot be read",)


def process(context: Context) -> tuple[int, str | None]:
    """The process that does it, and how many threads JAX will have there."""
    return os.getpid(), os.environ.get("NPROC")


def meet(context: Context, file: Path, number: int) -> tuple[str | None, ...]:
    """Ends when so many tasks are in work at once; gives its fraction of a GPU's memory, and which GPUs it sees."""
    file.touch()
    until("a meeting", lambda: len([*file.parent.iterdir()]) >= number)
    return tuple(os.environ.get(name) for name in ("XLA_PYTHON_CLIENT_MEM_FRACTION", "CUDA_VISIBLE_DEVICES"))


def task(name: str, does: str, **arguments: object) -> Task:
    return Task(name, f"tests.lab.executors.work:{does}", arguments)
