"""SIGINT and SIGTERM: noted when they come, acted upon between two parts of the work."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator


class Stopped(Exception):
    """SIGINT or SIGTERM has ended a run."""

    def __init__(self, number: int):
        super().__init__(number)
        self.signal = number


class Signals:
    """Notes signals; between two parts of its work a run asks whether there was one."""

    def __init__(self) -> None:
        self.heard: list[int] = []

    def hear(self, number: int, frame: object) -> None:
        """The handler. It only notes: JAX may be anywhere."""
        self.heard.append(number)

    def check(self) -> None:
        """Raises `Stopped` if a signal has come."""
        if self.heard:
            raise Stopped(self.heard[0])


@contextlib.contextmanager
def hearing_signals() -> Iterator[Signals]:
    """Handles SIGINT and SIGTERM instead of dying of them, in the main thread, which alone can."""
    signals = Signals()
    heard = (signal.SIGINT, signal.SIGTERM) if threading.current_thread() is threading.main_thread() else ()
    handlers = {number: signal.signal(number, signals.hear) for number in heard}
    try:
        yield signals
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
