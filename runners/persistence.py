"""How a run outlives its process: how often its state is saved, and whether it may go on under other conditions."""

from __future__ import annotations

import argparse
from typing import NamedTuple

import cli


class Persistence(NamedTuple):
    """checkpoint_seconds: of training between two saves of a run's state, 0 for a save after every chunk.

    strict_resume: whether a run is refused that would go on under other conditions than it had (`store.conditions`).
    """

    checkpoint_seconds: float = 20.0
    strict_resume: bool = False


DEFAULT_PERSISTENCE = Persistence()


def add_flags(built: cli.Parser) -> None:
    """The flags of whatever trains and resumes runs; they are no part of a run's config."""
    built.add_argument(
        "--checkpoint_seconds",
        type=_seconds,
        default=DEFAULT_PERSISTENCE.checkpoint_seconds,
        help="training between two saves of a run's state; a kill loses at most so much and a chunk",
    )
    built.add_argument(
        "--strict_resume",
        action="store_true",
        help="refuse to go on with a run under other versions, threads, pack width or device than it had",
    )


def from_flags(flags: argparse.Namespace) -> Persistence:
    """What these flags ask for."""
    return Persistence(**{name: getattr(flags, name) for name in Persistence._fields})


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not value >= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds from 0 on")
    return value
