"""Chooses and clears run directories, and reads and writes their config and status."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from shlex import quote
from typing import Any

from icl_lab.lab.configs.identity import config_id
from icl_lab.lab.configs.presets import command_of, title_of
from icl_lab.lab.configs.registry import check_schema, from_dict, is_of_schema_1
from icl_lab.lab.configs.run import RunConfig, to_dict
from icl_lab.lab.loaded_plugins import why_changed, why_not_loaded
from icl_lab.src.checks import ConfigError
from icl_lab.store import aside, layout, manifest, ownership
from icl_lab.store.atomic import write_json
from icl_lab.store.readers import StoreError, read_json
from icl_lab.store.replacing import naming_file

RUNS = Path("runs")
END_KEYS = ("end", "error", "stopped_at", "signal", "diverged_at", "last_losses")  # how a run ended
STATUSES = ("running", "done", "stopped", "diverged", "failed")
FINISHED = ("done", "diverged")  # not trained again
EARLIER = "schema 1"  # in place of the status of a run of an earlier version, which is not read
CLEARED_LAST = (layout.META, layout.CONFIG)


class PluginMissing(StoreError):
    """A run was trained with a plugin that is not loaded, or not as it was; nothing is wrong with the run."""


class EarlierVersion(StoreError):
    """A run was trained by a version whose configs are no longer read; nothing is wrong with the run."""


def read_config(run: Path) -> Any:
    """The config of a run directory, of the class that its family says.

    `PluginMissing` without a plugin of it, `EarlierVersion` for a run of schema 1.
    """
    path = run / layout.CONFIG
    if not path.exists():
        raise StoreError(f"{run} is not a run directory: it has no {layout.CONFIG}")
    values = read_json(path)
    if is_of_schema_1(values):
        raise EarlierVersion(
            f"{run} is a run of an earlier version (schema 1), which stays as it is and is not read: read it with the "
            f"version that trained it (git_hash in its {layout.META}), or train its settings again into another --out"
        )
    try:
        check_schema(values)  # before what it says of plugins, which is of its schema
        if why := why_not_loaded(values):
            raise PluginMissing(f"{run} {why}")
        config = from_dict(values)
    except ConfigError as error:
        raise StoreError(f"{path} cannot be used: {error}") from None
    return config


def is_of_earlier_version(run: Path) -> bool:
    """Whether a folder has a run of schema 1."""
    try:
        return has_begun(run) and is_of_schema_1(read_json(run / layout.CONFIG))
    except StoreError:
        return False


def read_status(run: Path) -> str:
    """The status of a run directory, "new" if no run has begun.

    `StoreError` for an unknown status, and for results without a status, which would be overwritten.
    """
    status = read_meta(run).get("status", "new")
    if status not in (*STATUSES, "new"):
        raise StoreError(f"{run / layout.META} has the unknown status {status!r}")
    if status == "new" and (run / layout.SUMMARY).exists():
        raise StoreError(f"{run / layout.META} has no status, but the run has results; --overwrite retrains it")
    return str(status)


def read_meta(run: Path) -> dict[str, Any]:
    """The meta.json of a run, empty if no run has begun."""
    return read_json(run / layout.META) if (run / layout.META).exists() else {}


def has_begun(run: Path) -> bool:
    """Whether a run has begun in this directory."""
    return (run / layout.CONFIG).exists()


def stored_id(run: Path) -> str:
    """The id that a run was trained under."""
    return _stored_id(read_config(run), read_meta(run))


def _stored_id(config: RunConfig, meta: Mapping[str, Any]) -> str:
    stored = meta.get("config_id")
    return config_id(config) if stored is None else str(stored)


def find_required(config: RunConfig, run: Path) -> list[Path]:
    """The finished runs that a run builds on, from its parent folder or `runs`; `StoreError` if one is missing."""
    required = config.required_runs() if config.requires else ()
    if len(required) != len(config.requires):
        raise StoreError(
            f"{run}: its config requires {len(config.requires)} runs, but its family requires {len(required)}"
        )
    return [_find(identity, other, run) for identity, other in zip(config.requires, required, strict=True)]


def _find(identity: str, required: RunConfig, dependent: Path) -> Path:
    """The finished run of this id, of a config, that the run `dependent` builds on."""
    unfinished, text = None, f"a run of {required.name}, seed {required.data_seed}"
    for folder in dict.fromkeys((dependent.parent, RUNS)):
        for run in runs_below(folder):
            if _id_or_none(run) == identity:
                if read_status(run) == "done":
                    return run
                unfinished = run
    if unfinished is None:
        raise StoreError(
            f"{dependent} builds on {text} (id {identity}), which is not in {dependent.parent}; train it first: "
            f"{command_of(required)} --out {quote(str(dependent.parent / required.name))}"
        )
    status = read_status(unfinished)
    remedy = "choose other settings" if status == "diverged" else "let it finish first"
    raise StoreError(f"{dependent} builds on {text}, {unfinished}, which is {status}; {remedy}")


def _id_or_none(run: Path) -> str | None:
    """The id of a run, None if it is broken."""
    try:
        return stored_id(run)
    except StoreError:
        return None


def begin(run: Path, config: RunConfig) -> None:
    """Starts a run of this config in a directory."""
    manifest.begin(run)
    write_json(run / layout.CONFIG, to_dict(config))


def update_meta(run: Path, **values: Any) -> None:
    """Sets fields of meta.json."""
    write_json(run / layout.META, read_meta(run) | values)


def mark_running(run: Path) -> None:
    """Sets the status "running", and drops from meta.json how the run ended before."""
    write_json(run / layout.META, _without_end(run) | {"status": "running"})


def mark_failed(run: Path, error: str) -> None:
    """Sets the status "failed" and the error of a run that has begun and not finished; ignores errors of the disk."""
    with contextlib.suppress(OSError, StoreError):
        if read_status(run) not in ("new", *FINISHED):
            write_json(run / layout.META, _without_end(run) | {"status": "failed", "error": error, "end": now()})


def _without_end(run: Path) -> dict[str, Any]:
    return {name: value for name, value in read_meta(run).items() if name not in END_KEYS}


def choose(config: RunConfig, out: str | None, overwrite: bool, runs: Path = RUNS, finished: bool = False) -> Path:
    """The directory of a run of this config.

    With `out`, that directory; `StoreError` if it holds another config or is not a run directory. Without, the newest
    unfinished run of this config under `runs`, otherwise the next free `<name>[_k]`; with `finished`, before that the
    newest one that is done. With `overwrite`, the run in `out` or the newest run of this config is trained again.
    """
    if out is not None:
        check_usable(Path(out), config, overwrite)
        return Path(out)
    same = _newest_first([run for run in runs_below(runs) if _same_config(run, config)])
    if overwrite and same:
        return same[0]
    unfinished = [run for run in same if read_status(run) not in FINISHED]
    done = [run for run in same if finished and read_status(run) == "done"]
    if done or unfinished:
        return (done or unfinished)[0]
    name = title_of(config)
    names = (name if k == 0 else f"{name}_{k}" for k in count())
    return next(runs / name for name in names if not os.path.lexists(runs / name))  # a dangling link takes its name


def clear(run: Path) -> list[str]:
    """Removes the files in a run's manifest and those kept beside it; returns the names of foreign files, which stay.

    The status is set to "running" first, if the disk has room, since the results are about to go. The manifest is
    emptied last, so after a kill the same command finishes the job.
    """
    ownership.check(run)
    manifest.adopt(run)
    beside = [os.path.relpath(path, run.resolve()) for path in aside.clear(run)]
    if not manifest.exists(run):
        return beside
    if (run / layout.META).exists():
        with contextlib.suppress(OSError):
            write_json(run / layout.META, {"status": "running"})
    files = manifest.files(run)
    for name in sorted(files, key=CLEARED_LAST.__contains__):
        with naming_file(run / name):
            (run / name).unlink(missing_ok=True)
    folders = {folder for name in files for folder in Path(run, name).parents if run in folder.parents}
    for folder in sorted(folders, key=lambda path: len(path.parts), reverse=True):
        with contextlib.suppress(OSError):  # it holds foreign files
            folder.rmdir()
    manifest.reset(run)
    return [*manifest.foreign_files(run), *beside]


def now() -> str:
    """The current time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def check_usable(out: Path, config: RunConfig, overwrite: bool) -> None:
    """`StoreError` unless a directory can hold a run of this config: it is new, empty, or holds that run.

    With `overwrite` it may hold any run. A run directory has a manifest, or was made before there were manifests.
    Foreign files must not be where the run would write. Leftovers of a process killed at its first file are ignored.
    """
    if out.exists() and not out.is_dir():
        raise StoreError(f"{out} is a file, not a run directory")
    if not (manifest.exists(out) or manifest.predates_manifests(out)):
        if out.is_dir() and not all(_is_leftover(path.name) for path in out.iterdir()):
            reason = f"has a {layout.CONFIG} but no {layout.MANIFEST}" if has_begun(out) else "is not empty"
            raise StoreError(f"{out} {reason}, so it is not a run directory; choose another --out")
        return
    if has_begun(out) and not overwrite:
        _check_same(out, config)
    if not overwrite and read_status(out) in FINISHED:
        return  # nothing is written
    if manifest.exists(out) and (foreign := manifest.conflicting_files(out)):
        raise StoreError(f"{out / foreign[0]} was not written by the laboratory and would be overwritten; move it away")


def _is_leftover(name: str) -> bool:
    """Whether a killed process may have left this file of a run that has not begun."""
    return layout.is_lock(name) or name == layout.MANIFEST or layout.draft_target(name) in layout.TOP_FILES


def _check_same(out: Path, config: RunConfig) -> None:
    read_status(out)
    if why := why_changed(read_json(out / layout.CONFIG)):
        raise StoreError(f"{out} {why}, choose another --out, or --overwrite it")
    there, identity = read_config(out), config_id(config)
    if _stored_id(there, read_meta(out)) != identity:
        _check_shared(out, config)
        raise StoreError(
            f"{out} holds a run of another config or results version; choose another --out, or --overwrite it"
        )
    if config_id(there) != identity:
        raise StoreError(f"{out / layout.CONFIG} is not the config that the run was trained with")


def _check_shared(out: Path, config: RunConfig) -> None:
    """`StoreError` if the file of a run's contexts has changed, and if its config differs in shared arrays alone."""
    stored = read_config(out)
    if stored.data_file and stored.data_file == config.data_file and _of_file(stored) != _of_file(config):
        raise StoreError(f"{stored.data_file} has changed since {out} began; restore it, or choose another --out")
    alike = type(stored) is type(config) and replace(stored, shared=config.shared, preset=config.preset) == config
    if alike and stored.shared != config.shared:
        name = min({*stored.shared} ^ {*config.shared}).partition(":")[0]
        raise StoreError(f"the shared array {name} has changed since {out} began; restore it, or choose another --out")


def _of_file(config: RunConfig) -> set[str]:
    """The hashes of what a file holds, without the split, which fields change too."""
    return {entry for entry in config.shared if not entry.startswith("split:")}


def runs_below(runs: Path) -> list[Path]:
    """The runs directly below a folder, without links."""
    paths = [path.parent for path in runs.glob(f"*/{layout.META}")] if runs.is_dir() else []
    return [run for run in paths if not run.is_symlink()]


def _newest_first(runs: list[Path]) -> list[Path]:
    return sorted(runs, key=lambda run: str(read_meta(run).get("start")), reverse=True)


def _same_config(run: Path, config: RunConfig) -> bool:
    try:
        read_status(run)
        return stored_id(run) == config_id(config)
    except StoreError:  # other broken runs do not matter here
        return False
