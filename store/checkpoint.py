"""What a resume needs: the training state after a step, by name of array.

The last two are kept: the runs of a pack save one after another, and when they are stopped between two of them the
step that all of them have is the last but one of some. And if the last is damaged, a run goes on from the one before.
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
REMOVED = {layout.CHECKPOINT_GLOB, layout.GROWING_SNAPSHOTS, layout.SNAPSHOTS_INDEX}  # when a run is done


def save(run: Path, step: int, arrays: Mapping[str, np.ndarray], metadata: Mapping[str, Any]) -> None:
    """Saves a state, then lets go of the ones before the last two."""
    write_safetensors(layout.checkpoint(run, step), arrays, metadata)
    for old in steps(run)[:-KEPT]:
        layout.checkpoint(run, old).unlink(missing_ok=True)


def steps(run: Path) -> list[int]:
    """The steps that have a checkpoint, ascending."""
    names = [f"{layout.CHECKPOINTS}/{path.name}" for path in (run / layout.CHECKPOINTS).glob("step_*.safetensors")]
    return sorted(int(match[1]) for name in names if (match := layout.CHECKPOINT_NAME.fullmatch(name)))


def common_steps(runs: Sequence[Path]) -> list[int]:
    """The steps that every run has a checkpoint of, ascending."""
    return sorted(set.intersection(*(set(steps(run)) for run in runs)))


def restore_last(runs: Sequence[Path], like: Mapping[str, np.ndarray]) -> tuple[int, list[dict[str, np.ndarray]]]:
    """The last common step whose checkpoints can all be read, and what they hold; (0, []) where there is no such step.

    If there are some but none can be read, the `StoreError` of the last.
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
    """The arrays of a step, as many and of such shapes as these; `StoreError` says how to go on if they are not."""
    try:
        arrays, _ = read_safetensors(layout.checkpoint(run, step))
        if _kinds(arrays) != _kinds(like):
            differing = _differing(_kinds(arrays), _kinds(like))
            raise StoreError(f"{layout.checkpoint(run, step)} does not hold this run's training state: {differing}")
    except StoreError as error:
        raise StoreError(f"{error}; --overwrite trains the run anew") from None
    return arrays


def remove_after(run: Path, step: int) -> None:
    """Removes the checkpoints later than a step."""
    for later in (found for found in steps(run) if found > step):
        layout.checkpoint(run, later).unlink(missing_ok=True)


def _kinds(arrays: Mapping[str, np.ndarray]) -> dict[str, tuple[tuple[int, ...], str]]:
    return {name: (array.shape, array.dtype.str) for name, array in arrays.items()}


def _differing(found: Mapping[str, object], like: Mapping[str, object]) -> str:
    """What differs first: a version of a package may lay a state out otherwise than another."""
    names = sorted(name for name in found.keys() | like.keys() if found.get(name) != like.get(name))
    what = "is missing" if names[0] not in found else "is unknown" if names[0] not in like else "has another shape"
    more = f", and {len(names) - 1} more differ" if len(names) > 1 else ""
    return f"{names[0]} {what}{more}"


def remove(run: Path) -> None:
    """Removes all checkpoints and what grew beside them: the run is done, and what lies there later is not its own."""
    if manifest.exists(run) and layout.CHECKPOINT_GLOB not in manifest.names(run):
        return
    folder = run / layout.CHECKPOINTS
    with suppress(OSError):
        for name in [f"{layout.CHECKPOINTS}/{path.name}" for path in folder.iterdir()]:
            if REMOVED & {layout.manifest_name(name), layout.draft_target(name)}:
                (run / name).unlink(missing_ok=True)
        folder.rmdir()
    manifest.release(run, layout.CHECKPOINT_GLOB)
