"""The flags on saving and resuming: how often the state is saved, and whether other conditions are accepted."""

from __future__ import annotations

import argparse
import math
from typing import NamedTuple

from icl_lab.lab import cli
from icl_lab.lab.flag_types import INFINITY, Either, Number

SAVE_SHARE = 0.02  # of training time, at most, that saving a large state takes


class Persistence(NamedTuple):
    """checkpoint_seconds: seconds of training between saves of the state; 0 saves after every chunk.

    strict_resume: whether to refuse to resume a run under other conditions (`store.provenance`).
    """

    checkpoint_seconds: float = 20.0
    strict_resume: bool = False

    def pause(self, save_seconds: float) -> float:
        """Seconds of training after a save that took so long: more than asked if saves were over 2 % of them."""
        return max(self.checkpoint_seconds, save_seconds / SAVE_SHARE) if self.checkpoint_seconds else 0.0


DEFAULT_PERSISTENCE = Persistence()


def add_flags(built: cli.Parser) -> None:
    """Adds the flags of commands that train and resume runs; they are not part of the config."""
    built.add_argument(
        "--checkpoint_seconds",
        type=Either(INFINITY, math.inf, Number(0.0, 1e9, why="30 years")),
        default=DEFAULT_PERSISTENCE.checkpoint_seconds,
        help="seconds of training between saves of the state, more where a save takes over 2 %% of them; a kill loses "
        "at most this and one chunk",
    )
    built.add_argument(
        "--strict_resume",
        action="store_true",
        help="refuse to resume a run if versions, threads, pack width or device have changed",
    )


def from_flags(flags: argparse.Namespace) -> Persistence:
    """The values of these flags."""
    return Persistence(**{name: getattr(flags, name) for name in Persistence._fields})
