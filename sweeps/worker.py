"""A process on a core of its own that trains packs, `python -m sweeps.worker CORE`, and a sweep's handle of it.

Packs come on its standard input and reports leave on its standard output, a JSON object a line. It ends with its input:
when the sweep is killed, its workers go too.
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
    """The cores this process may run on; numbers in a row where the system does not say."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


class WorkerDied(Exception):
    """A worker process has ended by itself; the message says how."""


class Worker:
    """The sweep's side: a worker process, one pack at a time."""

    def __init__(self, core: int):
        inherited = os.environ.get("PYTHONPATH", "").split(os.pathsep)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "sweeps.worker", str(core), *cli.plugin_flags(p.path for p in LOADED.values())],
            env=os.environ | {"NPROC": "1", "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), *inherited]))},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C is the sweep's, which passes it on
        )

    def train(self, folder: Path, pack: Pack, width: int, report: Report, persistence: Persistence) -> PackResult:
        """Trains a pack and gives its outcome; `WorkerDied` if the process does."""
        configs = [to_dict(cell.config) for cell in pack.cells]
        order = {"folder": str(folder), "width": width, "persistence": persistence._asdict(), "configs": configs}
        stdin, stdout = _pipes(self._process)
        with suppress(BrokenPipeError):  # the end of its output says the same
            stdin.write(json.dumps(order) + "\n")
            stdin.flush()
        for line in stdout:
            said = json.loads(line)
            if "steps" not in said:
                return PackResult(pack, said["reasons"], said["stopped"])
            report(said["steps"])
        reason = f"its process ended with exit status {self._process.wait()}"
        stdout.close()
        with suppress(BrokenPipeError):
            stdin.close()
        raise WorkerDied(reason)

    def stop(self) -> None:
        """Asks for an end at the next chunk."""
        self._process.send_signal(signal.SIGTERM)

    def dismiss(self) -> None:
        """Ends an idle worker."""
        stdin, stdout = _pipes(self._process)
        stdin.close()
        self._process.wait()
        stdout.close()


def _pipes(process: subprocess.Popen[str]) -> tuple[IO[str], IO[str]]:
    assert process.stdin is not None
    assert process.stdout is not None
    return process.stdin, process.stdout


def _orders(lines: IO[str]) -> queue.SimpleQueue[dict[str, Any]]:
    """What comes in, in the background. The end of it is the end of this process, whatever it is at."""
    orders: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()

    def listen() -> None:
        for line in lines:
            orders.put(json.loads(line))
        os._exit(0)

    threading.Thread(target=listen, daemon=True).start()
    return orders


def main(core: int) -> None:
    """The worker's side. To be called before JAX has devices: it reads the cores it has once."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a library prints is no report

    def say(**said: Any) -> None:
        answers.write(json.dumps(said) + "\n")
        answers.flush()

    orders = _orders(sys.stdin)
    with catch_signals() as signals:
        while True:
            order = orders.get()
            pack = Pack(tuple(cell_of(from_dict(config)) for config in order["configs"]))
            folder, width, kept = Path(order["folder"]), order["width"], Persistence(**order["persistence"])
            outcome = train(folder, pack, width, lambda steps: say(steps=steps), signals, kept)
            say(reasons=outcome.reasons, stopped=outcome.stopped)


def parser() -> cli.Parser:
    """The arguments."""
    built = cli.Parser("sweeps.worker", "Trains packs of a sweep, which come on standard input, a JSON object a line.")
    built.add_argument("core", type=int, help="the core to run on")
    return built


if __name__ == "__main__":
    cli.launch(lambda argv: main(parser().parse(argv).core), ConfigError)
