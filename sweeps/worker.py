"""A worker process that trains packs on one core, `python -m sweeps.worker CORE`, and the sweep's handle to it.

It reads packs from standard input and writes reports to standard output, one JSON object per line. It ends when its
input ends, so killing the sweep ends its workers.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import cli
from configs.registry import from_dict
from configs.run import to_dict
from runners.persistence import Persistence
from runners.signals import catch_signals
from src.checks import ConfigError
from src.registry import LOADED
from sweeps.plan import Pack, cell_of
from sweeps.training import PackResult, Report, train

ROOT = Path(__file__).resolve().parent.parent


def available_cores() -> list[int]:
    """The cores this process may run on; all cores if the system does not say."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


class WorkerDied(Exception):
    """A worker process has ended unexpectedly; the message says how."""


class Worker:
    """The sweep's handle to a worker process, which trains one pack at a time."""

    def __init__(self, core: int):
        inherited = os.environ.get("PYTHONPATH", "").split(os.pathsep)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "sweeps.worker", str(core), *cli.plugin_flags(p.path for p in LOADED.values())],
            env=os.environ | {"NPROC": "1", "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), *inherited]))},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C reaches only the sweep, which passes it on
        )

    def train(self, folder: Path, pack: Pack, width: int, report: Report, persistence: Persistence) -> PackResult:
        """Trains a pack; `WorkerDied` if the process ends."""
        configs = [to_dict(cell.config) for cell in pack.cells]
        request = {"folder": str(folder), "width": width, "persistence": persistence._asdict(), "configs": configs}
        stdin, stdout = _pipes(self._process)
        with suppress(BrokenPipeError):  # reading its output will end too
            stdin.write(json.dumps(request) + "\n")
            stdin.flush()
        for line in stdout:
            message = json.loads(line)
            if "steps" not in message:
                return PackResult(pack, message["errors"], message["stopped"])
            report(message["steps"])
        reason = f"its process ended with exit status {self._process.wait()}"
        stdout.close()
        with suppress(BrokenPipeError):
            stdin.close()
        raise WorkerDied(reason)

    def stop(self) -> None:
        """Asks the process to stop at the next chunk."""
        self._process.send_signal(signal.SIGTERM)

    def close(self) -> None:
        """Ends an idle worker process."""
        stdin, stdout = _pipes(self._process)
        stdin.close()
        self._process.wait()
        stdout.close()


def _pipes(process: subprocess.Popen[str]) -> tuple[IO[str], IO[str]]:
    assert process.stdin is not None
    assert process.stdout is not None
    return process.stdin, process.stdout


def _requests(lines: IO[str]) -> queue.SimpleQueue[dict[str, Any]]:
    """Reads requests in a background thread, which ends this process at the end of its input."""
    requests: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()

    def read() -> None:
        for line in lines:
            requests.put(json.loads(line))
        os._exit(0)

    threading.Thread(target=read, daemon=True).start()
    return requests


def main(core: int) -> None:
    """The worker process. Must run before JAX has its devices: JAX reads the available cores only once."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # output of libraries is not a report

    def send(**message: Any) -> None:
        answers.write(json.dumps(message) + "\n")
        answers.flush()

    requests = _requests(sys.stdin)
    with catch_signals() as signals:
        while True:
            request = requests.get()
            pack = Pack(tuple(cell_of(from_dict(config)) for config in request["configs"]))
            folder, width, persistence = (
                Path(request["folder"]),
                request["width"],
                Persistence(**request["persistence"]),
            )
            result = train(folder, pack, width, lambda steps: send(steps=steps), signals, persistence)
            send(errors=result.errors, stopped=result.stopped)


def parser() -> cli.Parser:
    """The arguments."""
    built = cli.Parser("sweeps.worker", "Trains packs of a sweep, read from standard input, one JSON object per line.")
    built.add_argument("core", type=int, help="the core to run on")
    return built


if __name__ == "__main__":
    cli.launch(lambda argv: main(parser().parse(argv).core), ConfigError)
