"""A worker process that carries out tasks on one core, `python -m lab.executors.worker CORE`, and the handle to it.

It reads pickled tasks from standard input and writes reports and outcomes to standard output. It ends when its input
ends, so killing the command that started it ends it too.
"""

from __future__ import annotations

import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from typing import IO, Any

from icl_lab.lab import cli
from icl_lab.lab.environment import cores, processors
from icl_lab.lab.executors.signals import catch_signals
from icl_lab.lab.executors.task import Context, Outcome, Report, Task, carry_out
from icl_lab.lab.loaded_plugins import LOADED
from icl_lab.src.namespace import FOLDER


def available_cores() -> list[int]:
    """The cores this process may run on, as many as it has processors' time for."""
    return cores()[: processors()]


class WorkerDied(Exception):
    """A worker process has ended unexpectedly; the message says how."""


class Worker:
    """The handle to a worker process, which does one task at a time."""

    def __init__(self, core: int):
        inherited = os.environ.get("PYTHONPATH", "").split(os.pathsep)
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "icl_lab.lab.executors.worker",
                str(core),
                *cli.plugin_flags(p.path for p in LOADED.values()),
            ],
            env=os.environ | {"NPROC": "1", "PYTHONPATH": os.pathsep.join(filter(None, [FOLDER, *inherited]))},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C reaches only the command, which passes it on
        )

    def carry_out(self, task: Task, report: Report) -> Outcome:
        """Does a task; `WorkerDied` if the process ends."""
        stdin, stdout = _pipes(self._process)
        with suppress(BrokenPipeError):  # reading its output will end too
            pickle.dump(task._replace(alike=None), stdin)  # which may be of a class that the process does not know yet
            stdin.flush()
        with suppress(EOFError, pickle.UnpicklingError):  # it ended, perhaps in the middle of an answer
            while True:
                answer = pickle.load(stdout)
                if isinstance(answer, Outcome):
                    return answer._replace(task=task)
                report(answer)
        reason = f"its process ended with exit status {self._process.wait()}"
        stdout.close()
        with suppress(BrokenPipeError):
            stdin.close()
        raise WorkerDied(reason)

    def stop(self) -> None:
        """Asks the process to stop at its next safe point."""
        self._process.send_signal(signal.SIGTERM)

    def close(self) -> None:
        """Ends an idle worker process."""
        stdin, stdout = _pipes(self._process)
        stdin.close()
        self._process.wait()
        stdout.close()

    def kill(self) -> None:
        """Ends the process at once; what its task has done lies on disk."""
        self._process.kill()


def _pipes(process: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes]]:
    assert process.stdin is not None
    assert process.stdout is not None
    return process.stdin, process.stdout


def _tasks(requests: IO[bytes]) -> queue.SimpleQueue[Task]:
    """Reads tasks in a background thread, which ends this process at the end of its input."""
    tasks: queue.SimpleQueue[Task] = queue.SimpleQueue()

    def read() -> None:
        with suppress(EOFError, pickle.UnpicklingError):  # the command that asked was killed
            while True:
                tasks.put(pickle.load(requests))
        os._exit(0)

    threading.Thread(target=read, daemon=True).start()
    return tasks


def main(core: int) -> None:
    """The worker process. Must run before JAX has its devices: JAX reads the available cores only once."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # output of libraries is not an answer

    def send(answer: Any) -> None:
        pickle.dump(answer, answers)
        answers.flush()

    tasks = _tasks(sys.stdin.buffer)
    with catch_signals() as signals:
        while True:
            send(carry_out(tasks.get(), Context(send, signals)))


def parser() -> cli.Parser:
    """The arguments."""
    built = cli.Parser("lab.executors.worker", "Carries out tasks read from standard input; commands start it.")
    built.add_argument("core", type=int, help="the core to run on")
    return built


if __name__ == "__main__":
    cli.launch(lambda argv: main(parser().parse(argv).core))
