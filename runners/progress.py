"""Loggers: what a run tells a person while it runs. Library code takes one and never prints."""

from __future__ import annotations

import sys
import time
from typing import Any, Protocol

from tqdm import tqdm


class Logger(Protocol):
    """Hears of a run's progress."""

    def line(self, text: str) -> None:
        """A line of text."""

    def start(self, step: int, num_steps: int) -> None:
        """Training starts at a step."""

    def progress(self, step: int, loss: float) -> None:
        """Training has reached a step."""

    def stop(self) -> None:
        """Training has ended."""


class NullLogger:
    """Hears everything and says nothing."""

    def line(self, text: str) -> None:
        """Ignored."""

    def start(self, step: int, num_steps: int) -> None:
        """Ignored."""

    def progress(self, step: int, loss: float) -> None:
        """Ignored."""

    def stop(self) -> None:
        """Ignored."""


NULL_LOGGER = NullLogger()


class ConsoleLogger:
    """Lines on standard output; progress with loss, steps a second and time left on standard error; if quiet, neither.

    As a context it ends the progress at its end, so what is said of an error begins on a line of its own.
    """

    def __init__(self, quiet: bool = False) -> None:
        self.quiet = quiet
        self.meter: Meter = Silence()

    def __enter__(self) -> ConsoleLogger:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def line(self, text: str) -> None:
        """Prints the line."""
        if not self.quiet:
            print(text, flush=True)

    def start(self, step: int, num_steps: int) -> None:
        """Opens the progress at a step."""
        self.meter = meter(num_steps, step, self.quiet)

    def progress(self, step: int, loss: float) -> None:
        """Moves it."""
        self.meter.reach(step, f"loss {loss:.4f}")

    def stop(self) -> None:
        """Closes it."""
        self.meter.close()
        self.meter = Silence()


class Meter(Protocol):
    """Shows how many of a number of steps are made."""

    def reach(self, step: int, note: str) -> None:
        """So many are, of which there is this to note."""

    def close(self) -> None:
        """No more will be."""


def meter(total: int, start: int = 0, quiet: bool = False) -> Meter:
    """A bar on a terminal, lines in a file or a pipe, nothing if quiet or where standard error is closed."""
    if quiet or sys.stderr is None:
        return Silence()
    return Bar(total, start) if sys.stderr.isatty() else Lines(total, start)


class Silence:
    """Shows nothing."""

    def reach(self, step: int, note: str) -> None:
        """Ignored."""

    def close(self) -> None:
        """Ignored."""


class Lines:
    """A line on standard error for each tenth: `30 %  1500/5000 steps  549.2 step/s  6 s left  loss 0.2104`."""

    def __init__(self, total: int, start: int):
        self.total, self.start = total, start
        self.tenth, self.began = 10 * start // total, time.monotonic()

    def reach(self, step: int, note: str) -> None:
        """A line, if another tenth of the steps is made."""
        tenth = 10 * step // self.total
        if tenth <= self.tenth:
            return
        self.tenth = tenth
        rate = (step - self.start) / max(time.monotonic() - self.began, 1e-9)
        left = in_words((self.total - step) / rate)
        words = [f"{100 * step // self.total} %", f"{step}/{self.total} steps", speed(rate), f"{left} left", note]
        print("  ".join(filter(None, words)), file=sys.stderr, flush=True)

    def close(self) -> None:
        """Nothing is open."""


class Bar:
    """A progress bar on standard error."""

    def __init__(self, total: int, start: int):
        shown = "{percentage:3.0f} % |{bar:24}| {n_fmt}/{total_fmt} steps  {speed}  {remaining} left{postfix}"
        self.bar = _Bar(total=total, initial=start, file=sys.stderr, bar_format=shown)

    def reach(self, step: int, note: str) -> None:
        """Moves the bar."""
        self.bar.set_postfix_str(note, refresh=False)
        self.bar.update(step - self.bar.n)

    def close(self) -> None:
        """Leaves it on a line of its own."""
        self.bar.close()


class _Bar(tqdm):  # type: ignore[misc]  # tqdm ships no types
    """tqdm's, with a `speed` for its format: its own rate has no space before the unit."""

    @property
    def format_dict(self) -> dict[str, Any]:
        """What the bar's format may name."""
        found = super().format_dict
        made = found["n"] - found["initial"]
        rate = found["rate"] or (made / found["elapsed"] if found["elapsed"] else 0.0)
        return {**found, "speed": speed(rate)}


def speed(rate: float) -> str:
    """Steps a second: `549.2 step/s`."""
    return f"{rate:.1f} step/s" if rate >= 1 else f"{rate:.2g} step/s"


def in_words(seconds: float) -> str:
    """A time in the unit that suits it: `12 s`, `35 min`, `3.5 h`."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
