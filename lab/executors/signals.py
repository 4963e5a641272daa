"""Handles SIGINT and SIGTERM: the first stops the work at its next safe point, a second ends the process."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator

HANDLED = (signal.SIGINT, signal.SIGTERM)
NOTICE_AFTER = 2.0  # seconds after a signal until a message says what it waits for
# seconds in which a repeated signal counts as the same one: `timeout` sends its signal (by default SIGTERM) to the
# process and then to its group; nobody presses Ctrl-C twice in a twentieth of a second
ECHO = {signal.SIGTERM: 0.3, signal.SIGINT: 0.05}
WAITING = "stopping after the current computation; a second Ctrl-C stops at once and loses nothing on disk"
RESUME_HINT = "the same command without --overwrite resumes it"


class Stopped(Exception):
    """A run was stopped by SIGINT or SIGTERM."""

    def __init__(self, number: int):
        super().__init__(number)
        self.signal = number


class Signals:
    """Notes signals, which a run checks at safe points."""

    def __init__(self) -> None:
        self.received: list[int] = []

    def receive(self, number: int, frame: object) -> None:
        """The handler. It only notes the signal, since JAX may be in any state."""
        self.received.append(number)

    def check(self) -> None:
        """Raises `Stopped` if a signal was received."""
        if self.received:
            raise Stopped(self.received[0])


@contextlib.contextmanager
def catch_signals(afterwards: str | None = None) -> Iterator[Signals]:
    """Notes SIGINT and SIGTERM instead of ending the process; only the main thread can.

    A command gives a hint on what to do `afterwards`; then a second signal ends the process at once. Used from Python,
    where the process may hold other work, signals are only noted.
    """
    signals = Signals()
    if threading.current_thread() is not threading.main_thread():
        yield signals
        return
    with (
        _exit_on_second(afterwards) if afterwards else contextlib.nullcontext()
    ):  # first, so that it counts all signals
        handlers = {number: signal.signal(number, signals.receive) for number in HANDLED}
        try:
            yield signals
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)


@contextlib.contextmanager
def exit_when_stopped(afterwards: str) -> Iterator[Signals]:
    """`catch_signals` of a command: once what was in work has stopped it ends the process, with 128 + the signal."""
    with catch_signals(afterwards) as signals:
        yield signals
    if signals.received:
        _write_error(f"stopped; {afterwards}")
        sys.exit(128 + signals.received[0])


@contextlib.contextmanager
def _exit_on_second(afterwards: str) -> Iterator[None]:
    """Watches for signals in another thread, since the main thread runs no handlers while XLA compiles."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    watch = threading.Thread(target=_watch, args=(reader, afterwards), daemon=True)
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    watch.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        os.close(writer)  # ends the watch
        watch.join()
        os.close(reader)


def _watch(reader: int, afterwards: str) -> None:
    """Ends the process at a second signal; after a while, prints what the first one waits for."""
    first, start = _next(reader), time.monotonic()
    if first is None:
        return
    notice = threading.Timer(NOTICE_AFTER, _write_error, [WAITING])
    notice.start()
    while (number := _next(reader)) is not None:
        if number != first or time.monotonic() - start > ECHO[signal.Signals(number)]:
            _write_error(f"stopped at once; what is on disk is kept, and {afterwards}")
            os._exit(128 + number)
    notice.cancel()


def _next(reader: int) -> int | None:
    """The next handled signal; None at the end of the watch."""
    while number := os.read(reader, 1):
        if number[0] in HANDLED:
            return number[0]
    return None


def _write_error(sentence: str) -> None:
    """Writes to standard error, bypassing Python's buffer, whose lock the main thread may hold."""
    if sys.stderr is not None:
        with contextlib.suppress(OSError, ValueError):
            line = "\n" * sys.stderr.isatty() + sentence + "\n"  # ends the line of a progress bar
            os.write(sys.stderr.fileno(), line.encode())
