"""Which code computes the gradients of a training: XLA's programs, or the native kernel's compiled object."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

AUTO, NATIVE, XLA_NAME = "auto", "native", "xla"
ASKED = (AUTO, NATIVE, XLA_NAME)  # values of --kernel


class Kernel(NamedTuple):
    """A choice made before a training's first step.

    path: the object, None for XLA. tag: a hash of its source, compiler, processor, for the names of its functions.
    described: as in meta.json, a condition of bitwise identity. why: why it is XLA, where the user did not say so.
    asked: what the user said, of `ASKED`. block: tasks that XLA takes at a time; 0: a whole batch.
    """

    path: Path | None = None
    tag: str = ""
    described: str = XLA_NAME
    why: str = ""
    asked: str = AUTO
    block: int = 0

    def without(self, why: str) -> Kernel:
        """XLA in its place, for a reason."""
        return Kernel(why=why, asked=self.asked)

    def in_blocks(self, tasks: int) -> Kernel:
        """XLA that takes so many tasks at a time; 0: all of them."""
        return self._replace(block=tasks, described=f"{XLA_NAME}, {tasks} tasks at a time") if tasks else self

    def line(self) -> str:
        """`kernel: xla (why)`."""
        return f"kernel: {self.described}" + (f" ({self.why})" if self.why else "")


XLA = Kernel(asked=XLA_NAME)
