"""Loggers: what a run tells a person while it runs. Library code takes one and never prints."""

from __future__ import annotations

import sys
from typing import Protocol

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
    """Lines on standard output; a progress bar with loss, steps a second and time left on standard error.

    As a context it closes the bar at its end, so what is said of an error begins on a line of its own.
    """

    def __init__(self) -> None:
        self.bar: tqdm | None = None

    def __enter__(self) -> ConsoleLogger:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def line(self, text: str) -> None:
        """Prints the line."""
        print(text, flush=True)

    def start(self, step: int, num_steps: int) -> None:
        """Opens the bar; there is none where standard error was closed before the start."""
        if sys.stderr is None:
            return
        self.bar = tqdm(
            total=num_steps,
            initial=step,
            unit="step",
            file=sys.stderr,
            bar_format="{percentage:3.0f}% |{bar:24}| {n_fmt}/{total_fmt}  {rate_fmt}  {remaining} left{postfix}",
        )

    def progress(self, step: int, loss: float) -> None:
        """Moves the bar."""
        if self.bar is not None:
            self.bar.set_postfix_str(f"loss {loss:.4f}", refresh=False)
            self.bar.update(step - self.bar.n)

    def stop(self) -> None:
        """Closes the bar."""
        if self.bar is not None:
            self.bar.close()
            self.bar = None
