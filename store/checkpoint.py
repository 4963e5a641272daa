"""Saves and restores the training state of a run.

The last two checkpoints are kept. The runs of a pack save one after another, so after a kill the last step that all of
them have may be the last but one of some. And if the last file is damaged, the run resumes from the one before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from store import layout, manifest
from store.atomic import write_safetensors
from store.readers import StoreError, read_safetensors

KEPT = 2
REMOVED_WHEN_DONE = {layout.CHECKPOINT_GLOB, layout.GROWING_SNAPSHOTS, layout.SNAPSHOTS_INDEX}


def save(run: Path, step: int, arrays: Mapping[str, np.ndarray], metadata: Mapping[str, Any]) -> None:
    """Saves a state, then deletes all checkpoints but the last two."""
    write_safetensors(layout.checkpoint(run, step), arrays, metadata)
    for old in steps(run)[:-KEPT]:
        layout.checkpoint(run, old).unlink(missing_ok=True)


def steps(run: Path) -> list[int]:
    """The steps with a checkpoint, ascending."""
    names = [f"{layout.CHECKPOINTS}/{path.name}" for path in (run / layout.CHECKPOINTS).glob("step_*.safetensors")]
    return sorted(int(match[1]) for name in names if (match := layout.CHECKPOINT_NAME.fullmatch(name)))


def common_steps(runs: Sequence[Path]) -> list[int]:
    """The steps at which every run has a checkpoint, ascending."""
    return sorted(set.intersection(*(set(steps(run)) for run in runs)))


def restore_last(runs: Sequence[Path], like: Mapping[str, np.ndarray]) -> tuple[int, list[dict[str, np.ndarray]]]:
    """The last common step whose checkpoints are all readable, and their arrays; (0, []) if there is no checkpoint.

    `StoreError` of the last one if none is readable.
    """
    errors = []
    for step in reversed(common_steps(runs)):
        try:
            return step, [restore(run, step, like) for run in runs]
        except StoreError as error:
            errors.append(error)
    if errors:
        raise errors[0]
    return 0, []


def restore(run: Path, step: int, like: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays of a step; `StoreError` unless their names, shapes and types are those of `like`."""
    try:
        arrays, _ = read_safetensors(layout.checkpoint(run, step))
        if _kinds(arrays) != _kinds(like):
            difference = _first_difference(_kinds(arrays), _kinds(like))
            raise StoreError(f"{layout.checkpoint(run, step)} does not hold this run's training state: {difference}")
    except StoreError as error:
        raise StoreError(f"{error}; --overwrite retrains the run") from None
    return arrays


def remove_after(run: Path, step: int) -> None:
    """Removes the checkpoints after a step."""
    for later in steps(run):
        if later > step:
            layout.checkpoint(run, later).unlink(missing_ok=True)


def _kinds(arrays: Mapping[str, np.ndarray]) -> dict[str, tuple[tuple[int, ...], str]]:
    return {name: (array.shape, array.dtype.str) for name, array in arrays.items()}


def _first_difference(stored: Mapping[str, object], like: Mapping[str, object]) -> str:
    """The first difference: another version of a package may lay out its state differently."""
    names = sorted(name for name in stored.keys() | like.keys() if stored.get(name) != like.get(name))
    what = "is missing" if names[0] not in stored else "is unknown" if names[0] not in like else "has another shape"
    more = f", and {len(names) - 1} more differ" if len(names) > 1 else ""
    return f"{names[0]} {what}{more}"


def remove(run: Path) -> None:
    """Removes the checkpoints of a finished run, and gives up the folder: files put there later are not the run's."""
    if manifest.exists(run) and layout.CHECKPOINT_GLOB not in manifest.names(run):
        return
    folder = run / layout.CHECKPOINTS
    with suppress(OSError):
        for name in [f"{layout.CHECKPOINTS}/{path.name}" for path in folder.iterdir()]:
            if REMOVED_WHEN_DONE & {layout.manifest_name(name), layout.draft_target(name)}:
                (run / name).unlink(missing_ok=True)
        folder.rmdir()
    manifest.release(run, layout.CHECKPOINT_GLOB)
