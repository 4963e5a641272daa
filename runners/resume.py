"""How runs go on: the flags that say when their state is saved, and what their files say as they begin or go on."""

from __future__ import annotations

import argparse
import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from icl_lab.lab import cli
from icl_lab.lab.configs.run import RunConfig
from icl_lab.lab.flag_types import INFINITY, Either, Number
from icl_lab.runners.static_shape import Run
from icl_lab.store import checkpoint, rundir
from icl_lab.store.metrics import truncate_metrics
from icl_lab.store.provenance import changed_files, provenance_of
from icl_lab.store.rundir import now
from icl_lab.store.weights import Weights, write_given

SAVE_FRACTION = 0.02  # of training time, at most, that saving a large state takes


# --- flags ---


class Persistence(NamedTuple):
    """checkpoint_seconds: seconds of training between saves of the state; 0 saves after every chunk.

    strict_resume: whether to refuse to resume a run under other conditions (`store.provenance`).
    """

    checkpoint_seconds: float = 20.0
    strict_resume: bool = False

    def pause(self, save_seconds: float) -> float:
        """Seconds of training after a save that took so long: more than asked if saves were over 2 % of them."""
        return max(self.checkpoint_seconds, save_seconds / SAVE_FRACTION) if self.checkpoint_seconds else 0.0


DEFAULT_PERSISTENCE = Persistence()


def add_flags(built: cli.Parser) -> None:
    """Adds the flags of commands that train and resume runs; they are not part of the config."""
    built.add_argument(
        "--checkpoint_seconds",
        type=Either(INFINITY, math.inf, Number(0.0, 1e9, why="30 years")),
        default=DEFAULT_PERSISTENCE.checkpoint_seconds,
        help="seconds of training between saves of its state, longer if saving would take over 2 %% of the time; a "
        "killed run loses at most this much training plus one chunk of steps (about a second)",
    )
    built.add_argument(
        "--strict_resume",
        action="store_true",
        help="refuse to resume a run if versions, threads, pack width, device or kernel have changed",
    )


def from_flags(flags: argparse.Namespace) -> Persistence:
    """The values of these flags."""
    return Persistence(**{name: getattr(flags, name) for name in Persistence._fields})


# --- the files of runs that begin or go on ---


def by_checkpoint(runs: Sequence[Run]) -> list[list[Run]]:
    """Groups of runs that can resume together from a common checkpoint; 0 stands for runs that have not begun."""
    groups: list[tuple[set[int], list[Run]]] = []
    for run in runs:
        steps = set(checkpoint.steps(run.directory)) or {0}
        for common, together in groups:
            if common & steps:
                common &= steps
                together.append(run)
                break
        else:
            groups.append((steps, [run]))
    return [together for _, together in groups]


class Start(NamedTuple):
    """Where runs that have not begun start from; by default from their initialisation.

    extend: from the state of a shorter run of the same training, if there is one beside them. weights: from those of
    these parameters that their configs name.
    """

    extend: bool = False
    weights: tuple[Weights, ...] = ()

    def weights_of(self, config: RunConfig) -> Weights | None:
        """The parameters that a run starts from; None if they are not given."""
        return next((each for each in self.weights if each.source == config.init_from), None)


AT_STEP_0 = Start()


def begin(run: Run, width: int, device: str, facts: Mapping[str, Any], start: Start = AT_STEP_0) -> bool:
    """Starts a run in its directory, with further facts in meta.json, or resumes it; returns whether it is new."""
    directory, config = run
    if new := not checkpoint.steps(directory):
        rundir.clear(directory)
        rundir.begin(directory, config)
        known = {**provenance_of(config, device), **facts}
        if (weights := start.weights_of(config)) is not None:
            write_given(directory, weights)
            known |= {"init_from": {"source": config.init_from, **weights.origin}}
        rundir.update_meta(directory, **known, pack_width=width, start=now(), run_seconds=0.0)
    elif names := changed_files(rundir.read_meta(directory)):
        rundir.update_meta(directory, sources_changed=names)
    rundir.mark_running(directory)
    return new


def cut_files(directory: Path, step: int, record_steps: Sequence[int]) -> None:
    """Removes checkpoints, then records, after a step; `StoreError` if one up to it is missing."""
    checkpoint.remove_after(directory, step)
    truncate_metrics(directory, step, list(record_steps[: bisect_right(record_steps, step)]) if step > 0 else [])
