"""The progress bar of a sweep: training steps of all its packs, and how many packs have ended."""

from __future__ import annotations

import sys
from types import TracebackType

from tqdm import tqdm


class Bar:
    """A bar on standard error, as a context; none where that was closed before the start."""

    def __init__(self, steps: int):
        self.steps = steps
        self.bar = sys.stderr and tqdm(
            total=steps,
            unit="step",
            file=sys.stderr,
            bar_format="{percentage:3.0f}% |{bar:24}| {n_fmt}/{total_fmt}  {rate_fmt}  {remaining} left{postfix}",
        )

    def __enter__(self) -> Bar:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.bar is not None:
            self.bar.close()

    def report(self, steps: int) -> None:
        """So many training steps were made; those made a second time after an error do not count."""
        if self.bar is not None:
            self.bar.update(min(steps, self.steps - self.bar.n))

    def ended(self, least: int, packs: int, of: int) -> None:
        """So many packs have ended; the steps of those that ended early count as made."""
        if self.bar is not None:
            self.bar.set_postfix_str(f"{packs} of {of} packs", refresh=False)
            self.bar.update(max(0, least - self.bar.n))
