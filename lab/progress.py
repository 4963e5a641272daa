"""Loggers and progress displays. A training takes a logger; loops over checkpoints show a bar on a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from tqdm import tqdm

PATIENCE = 5.0  # seconds behind which a loop shows how far it is
T = TypeVar("T")


class Logger:
    """Receives a run's progress; this one ignores it."""

    def line(self, text: str) -> None:
        """Logs a line of text."""

    def start(self, step: int, num_steps: int) -> None:
        """Training starts at a step."""

    def progress(self, step: int, loss: float, note: str = "") -> None:
        """Training has reached a step; the note is what else is to be shown."""

    def stop(self) -> None:
        """Training has ended."""


class NullLogger(Logger):
    """Ignores everything."""


NULL_LOGGER = NullLogger()


class Meter:
    """A progress display; this one shows nothing."""

    def reach(self, step: int, note: str) -> None:
        """Shows that a step is reached, with a note."""

    def close(self) -> None:
        """Ends the display."""


class ConsoleLogger(Logger):
    """Prints lines to standard output and progress to standard error; if quiet, neither.

    As a context manager it closes the progress at its end, so that an error message starts on a new line.
    """

    def __init__(self, quiet: bool = False) -> None:
        self.quiet = quiet
        self.meter = Meter()

    def __enter__(self) -> ConsoleLogger:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def line(self, text: str) -> None:
        """Prints the line."""
        if not self.quiet:
            print(text, flush=True)

    def start(self, step: int, num_steps: int) -> None:
        """Opens the progress display at a step."""
        self.meter = meter(num_steps, step, self.quiet)

    def progress(self, step: int, loss: float, note: str = "") -> None:
        """Updates the display."""
        self.meter.reach(step, "  ".join(filter(None, (f"loss {loss:.4f}", note))))

    def stop(self) -> None:
        """Closes the display."""
        self.meter.close()
        self.meter = Meter()


def meter(total: int, start: int = 0, quiet: bool = False) -> Meter:
    """A bar on a terminal, lines in a file or pipe, nothing if quiet or if standard error is closed."""
    if quiet or sys.stderr is None:
        return Meter()
    return Bar(total, start) if sys.stderr.isatty() else Lines(total, start)


def along(items: Iterable[T], total: int, unit: str) -> Iterator[T]:
    """The items, one after another: on a terminal, from the sixth second on, with a bar and the time that is left.

    `40 % |#####    | 8/20 checkpoints  31 s left`; it goes when the loop ends.
    """
    shown = "{percentage:3.0f} % |{bar:24}| {n_fmt}/{total_fmt} " + unit + "  {remaining} left"
    terminal = sys.stderr is not None and sys.stderr.isatty()
    yield from tqdm(
        items, total=total, file=sys.stderr, bar_format=shown, delay=PATIENCE, leave=False, disable=not terminal
    )


def say(text: str) -> None:
    """Prints a line at once, above the bar of a loop that runs."""
    tqdm.write(text, file=sys.stdout)
    sys.stdout.flush()


class Lines(Meter):
    """A line on standard error per tenth: `30 %  1500/5000 steps  549.2 step/s  6 s left  loss 0.2104`."""

    def __init__(self, total: int, start: int):
        self.total, self.start = total, start
        self.tenth, self.began = 10 * start // total, time.monotonic()

    def reach(self, step: int, note: str) -> None:
        """Prints a line if another tenth is reached."""
        tenth = 10 * step // self.total
        if tenth <= self.tenth:
            return
        self.tenth = tenth
        rate = (step - self.start) / max(time.monotonic() - self.began, 1e-9)
        left = duration_text((self.total - step) / rate)
        words = [f"{100 * step // self.total} %", f"{step}/{self.total} steps", rate_text(rate), f"{left} left", note]
        print("  ".join(filter(None, words)), file=sys.stderr, flush=True)


class Bar(Meter):
    """A progress bar on standard error."""

    def __init__(self, total: int, start: int):
        shown = "{percentage:3.0f} % |{bar:24}| {n_fmt}/{total_fmt} steps  {speed}  {remaining} left{postfix}"
        self.bar = _Bar(total=total, initial=start, file=sys.stderr, bar_format=shown)

    def reach(self, step: int, note: str) -> None:
        """Moves the bar."""
        self.bar.set_postfix_str(note, refresh=False)
        self.bar.update(step - self.bar.n)

    def close(self) -> None:
        """Closes the bar and ends its line."""
        self.bar.close()


class _Bar(tqdm):  # type: ignore[misc]  # tqdm ships no types
    """tqdm with a `speed` field: its own rate has no space before the unit."""

    @property
    def format_dict(self) -> dict[str, Any]:
        """The fields of the bar's format."""
        fields = super().format_dict
        made = fields["n"] - fields["initial"]
        rate = fields["rate"] or (made / fields["elapsed"] if fields["elapsed"] else 0.0)
        return {**fields, "speed": rate_text(rate)}


def rate_text(rate: float) -> str:
    """Steps per second: `549.2 step/s`."""
    return f"{rate:.1f} step/s" if rate >= 1 else f"{rate:.2g} step/s"


def duration_text(seconds: float) -> str:
    """A time in a suitable unit: `12 s`, `35 min`, `3.5 h`."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
