"""Saves and restores the training state of a run.

The last two checkpoints are kept, and the last of a finished run that keeps its state, from which a longer run goes on.
The runs of a pack save one after another, so after a kill their last common step may be the second-to-last of some. If
the last file is damaged, as a hash of its content shows, it is set aside and the run resumes from the previous one.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from icl_lab.store import layout, manifest, ownership
from icl_lab.store.atomic import write_safetensors
from icl_lab.store.readers import StoreError, read_safetensors
from icl_lab.store.rundir import read_meta

KEPT = 2
CONTENT = "sha256"  # of the arrays, in a checkpoint's metadata
KEEPS_STATE = "keeps_state"  # in meta.json of a finished run: its last checkpoint stays
RETRAIN = "--overwrite retrains the run"
REMOVED_WHEN_DONE = {layout.CHECKPOINT_GLOB, layout.GROWING_SNAPSHOTS, layout.SNAPSHOTS_INDEX}


class Damaged(StoreError):
    """A checkpoint differs from what was saved, or cannot be read."""


class Restored(NamedTuple):
    """The state of each run at a step, 0 where there is none, and the damaged checkpoints that were set aside."""

    step: int
    arrays: list[dict[str, np.ndarray]]
    damaged: list[Path]


def save(run: Path, step: int, arrays: Mapping[str, np.ndarray], metadata: Mapping[str, Any]) -> None:
    """Saves a state, then deletes all checkpoints but the last two."""
    write_safetensors(layout.checkpoint(run, step), arrays, {**metadata, CONTENT: _content(arrays)})
    for old in steps(run)[:-KEPT]:
        layout.checkpoint(run, old).unlink(missing_ok=True)


def steps(run: Path) -> list[int]:
    """The steps with a checkpoint, ascending; not those that were set aside."""
    names = [f"{layout.CHECKPOINTS}/{path.name}" for path in (run / layout.CHECKPOINTS).glob("step_*.safetensors")]
    return sorted(int(match[1]) for name in names if (match := layout.CHECKPOINT_NAME.fullmatch(name)))


def common_steps(runs: Sequence[Path]) -> list[int]:
    """The steps at which every run has a checkpoint, ascending."""
    return sorted(set.intersection(*(set(steps(run)) for run in runs)))


def restore_last(runs: Sequence[Path], like: Mapping[str, np.ndarray]) -> Restored:
    """The last common step whose checkpoints are all intact, and their arrays; step 0 if there are none.

    Damaged ones of later steps are renamed to *.damaged. If no step is usable, the `StoreError` is that of the last
    step, and nothing is renamed.
    """
    errors: list[StoreError] = []
    damaged: list[Path] = []
    for step in reversed(common_steps(runs)):
        arrays = []
        for run in runs:
            try:
                arrays.append(restore(run, step, like))
            except StoreError as error:
                errors.append(error)
                damaged += [layout.checkpoint(run, step)] * isinstance(error, Damaged)
        if len(arrays) == len(runs):
            return Restored(step, arrays, [_set_aside(path) for path in damaged])
    if errors:
        raise errors[0]
    return Restored(0, [], [])


def _set_aside(path: Path) -> Path:
    """Renames a damaged checkpoint, so that nobody resumes from it."""
    ownership.check(path)
    aside = path.with_name(f"{path.name}{layout.DAMAGED}")
    os.replace(path, aside)
    return aside


def restore(run: Path, step: int, like: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays of a step; `StoreError` unless their names, shapes and types are those of `like`.

    It is `Damaged` if the file cannot be read, or its arrays are not those that were saved.
    """
    path = layout.checkpoint(run, step)
    arrays = read(run, step)
    if _kinds(arrays) != _kinds(like):
        difference = _first_difference(_kinds(arrays), _kinds(like))
        raise StoreError(f"{path} does not hold this run's training state: {difference}; {RETRAIN}")
    return arrays


def read(run: Path, step: int) -> dict[str, np.ndarray]:
    """The arrays of a step, whichever they are; `Damaged` if they cannot be read, or are not those that were saved."""
    path = layout.checkpoint(run, step)
    try:
        arrays, metadata = read_safetensors(path)
    except StoreError as error:
        raise Damaged(f"{error}; {RETRAIN}") from None
    if metadata.get(CONTENT) not in (None, _content(arrays)):  # earlier versions saved no hash
        raise Damaged(f"{path} is damaged: its arrays are not those that were saved; {RETRAIN}")
    return arrays


def _content(arrays: Mapping[str, np.ndarray]) -> str:
    """A hash of named arrays: of names, types, shapes and values."""
    digest = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def notice(metas: Sequence[Mapping[str, Any]]) -> str:
    """A line that says how many runs, given by their meta.json, had damaged checkpoints; "" if none had."""
    count = sum(bool(meta.get("damaged_checkpoints")) for meta in metas)
    which = "this run has" if len(metas) == 1 else f"{count} of {len(metas)} runs have"
    return f"{which} met damaged checkpoints and resumed from earlier ones" if count else ""


def remove_after(run: Path, step: int) -> None:
    """Removes the checkpoints after a step."""
    ownership.check(run)
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
    """Removes the checkpoints of a finished run, all but the last if its meta.json says that it keeps its state.

    If none stays it gives up the folder: files put there later are not the run's.
    """
    if manifest.exists(run) and layout.CHECKPOINT_GLOB not in manifest.names(run):
        return
    ownership.check(run)
    folder, kept = run / layout.CHECKPOINTS, kept_state(run)
    with suppress(OSError):
        for name in [f"{layout.CHECKPOINTS}/{path.name}" for path in folder.iterdir()]:
            if run / name != kept and REMOVED_WHEN_DONE & {layout.manifest_name(name), layout.draft_target(name)}:
                (run / name).unlink(missing_ok=True)
        folder.rmdir()
    if kept is None:
        manifest.release(run, layout.CHECKPOINT_GLOB)


def kept_state(run: Path) -> Path | None:
    """The checkpoint from which a longer run goes on, of a finished run that keeps its state; None if it has none."""
    there = steps(run) if read_meta(run).get(KEEPS_STATE) is True else []
    return layout.checkpoint(run, there[-1]) if there else None
