"""The progress of a sweep: training steps of all its packs, and how many packs have ended."""

from __future__ import annotations

from runners.progress import meter


class Progress:
    """Shows it on standard error, as a context; a bar or lines, as of one run."""

    def __init__(self, steps: int, packs: int, quiet: bool = False):
        self.steps, self.packs = steps, packs
        self.made, self.done = 0, 0
        self.meter = meter(steps, quiet=quiet)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.meter.close()

    def report(self, steps: int) -> None:
        """So many training steps were made; those made a second time after an error do not count."""
        self._reach(min(self.made + steps, self.steps))

    def ended(self, least: int) -> None:
        """Another pack has ended; the steps of those that ended early count as made."""
        self.done += 1
        self._reach(max(self.made, least))

    def _reach(self, made: int) -> None:
        self.made = made
        self.meter.reach(made, f"{self.done} of {self.packs} packs")
