"""Rate limiting of repeated work whose cost grows: it takes at most a tenth of the time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

TIMES = 10  # the longest pause, in units of what the last time took


class Throttle:
    """Says when something is due again: after `least` seconds, or ten times what it took last if that is longer."""

    def __init__(self, least: float, clock: Callable[[], float] = time.monotonic):
        self._least, self._clock = least, clock
        self._due = clock() + least

    def due(self) -> bool:
        """Whether it is time to do it again."""
        return self._clock() >= self._due

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Times what is done inside, whether or not it fails."""
        began = self._clock()
        try:
            yield
        finally:
            ended = self._clock()
            self._due = ended + max(self._least, TIMES * (ended - began))
