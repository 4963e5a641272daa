"""SIGINT and SIGTERM: noted when they come, acted upon between two parts of the work; a second one ends the process."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator

HANDLED = (signal.SIGINT, signal.SIGTERM)
NOTICE_AFTER = 2.0  # seconds from a signal that nothing follows to the word on what it waits for
# seconds in which a signal is the one before again: `timeout` sends it to the process and then to its group, SIGTERM if
# not told otherwise. Nobody presses Ctrl-C twice in a twentieth of a second
ECHO = {signal.SIGTERM: 0.3, signal.SIGINT: 0.05}
WAITING = "stopping at the end of what is being computed; Ctrl-C once more stops at once and loses nothing on disk"
RESUME_HINT = "the same command without --overwrite resumes it"


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
def catch_signals(afterwards: str | None = None) -> Iterator[Signals]:
    """Handles SIGINT and SIGTERM instead of dying of them, in the main thread, which alone can.

    A command says what can be done `afterwards`: there a second signal ends the process at once, wherever it is. From
    Python, where there may be more to lose than what is not on disk yet, signals are noted and no more.
    """
    signals = Signals()
    if threading.current_thread() is not threading.main_thread():
        yield signals
        return
    with _second_one_ends(afterwards) if afterwards else contextlib.nullcontext():  # first: what is noted is counted
        handlers = {number: signal.signal(number, signals.hear) for number in HANDLED}
        try:
            yield signals
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)


@contextlib.contextmanager
def _second_one_ends(afterwards: str) -> Iterator[None]:
    """Watches signals from another thread: while XLA compiles, the main one does not come to its handlers."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    watch = threading.Thread(target=_watch, args=(reader, afterwards), daemon=True)
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    watch.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        os.close(writer)  # the end of what is read
        watch.join()
        os.close(reader)


def _watch(reader: int, afterwards: str) -> None:
    """Ends the process at a second signal; says after a while what the first one waits for."""
    first, start = _next(reader), time.monotonic()
    if first is None:
        return
    word = threading.Timer(NOTICE_AFTER, _say, [WAITING])
    word.start()
    while (number := _next(reader)) is not None:
        if number != first or time.monotonic() - start > ECHO[signal.Signals(number)]:
            _say(f"stopped at once; what is on disk is kept, and {afterwards}")
            os._exit(128 + number)
    word.cancel()


def _next(reader: int) -> int | None:
    """The next of the signals that are heard; None when no more will come."""
    while number := os.read(reader, 1):
        if number[0] in HANDLED:
            return number[0]
    return None


def _say(sentence: str) -> None:
    """Says it on standard error past Python's buffer, whose lock the main thread may hold."""
    if sys.stderr is not None:
        with contextlib.suppress(OSError, ValueError):
            line = "\n" * sys.stderr.isatty() + sentence + "\n"  # a progress bar may stand where it begins
            os.write(sys.stderr.fileno(), line.encode())
