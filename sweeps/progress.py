"""Shows the progress of a sweep: training steps of all packs, and how many packs have ended."""

from __future__ import annotations

from icl_lab.runners.progress import meter


class Progress:
    """A context manager that shows the progress on standard error, like that of a single run."""

    def __init__(self, steps: int, packs: int, quiet: bool = False):
        self.steps, self.packs = steps, packs
        self.made, self.done = 0, 0
        self.meter = meter(steps, quiet=quiet)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.meter.close()

    def report(self, steps: int) -> None:
        """Counts training steps, without those repeated after an error."""
        self._reach(min(self.made + steps, self.steps))

    def ended(self, least: int) -> None:
        """Counts an ended pack; `least` steps now count as made, even if packs ended early."""
        self.done += 1
        self._reach(max(self.made, least))

    def _reach(self, made: int) -> None:
        self.made = made
        self.meter.reach(made, f"{self.done} of {self.packs} packs")
