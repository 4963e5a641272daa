"""Which directory a run lives in, what state it is in, and its metrics so far."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

from configs.identity import config_id
from configs.registry import family_of, from_dict
from configs.run import RunConfig, to_dict
from configs.schema_1 import earlier_id
from src.checks import ConfigError
from src.registry import why_changed, why_not_loaded
from store import layout, manifest
from store.atomic import json_text, naming, write_bytes, write_json
from store.provenance import now
from store.readers import StoreError, expecting, is_count, is_number, read_json, read_json_lines

RUNS = Path("runs")
METRICS_FIELDS = ("step", "train_loss", "test_loss")  # of every run
SAID_AT_AN_END = ("end", "error", "stopped_at", "signal", "diverged_at", "last_losses")
STATUSES = ("running", "done", "stopped", "diverged", "failed")
FINISHED = ("done", "diverged")  # runs that are not trained again
LAST = (layout.META, layout.CONFIG)  # to be cleared

LEFTOVERS = {layout.LOCK, layout.MANIFEST, *(layout.draft(Path(name)).name for name in layout.OWN)}  # alone no run


def read_config(run: Path) -> Any:
    """The config of a run directory; which family's it is, only the file says."""
    path = run / layout.CONFIG
    if not path.exists():
        raise StoreError(f"{run} is not a run directory: it has no {layout.CONFIG}")
    values = read_json(path)
    if why := why_not_loaded(values):
        raise StoreError(f"{run} {why}")
    try:
        config = from_dict(values)
    except ConfigError as error:
        raise StoreError(f"{path} cannot be used: {error}") from None
    return config


def read_status(run: Path) -> str:
    """The status of a run directory; "new" where none has begun.

    `StoreError` if it is none of these, or if there are results that nothing says are done: they would be lost.
    """
    status = read_meta(run).get("status", "new")
    if status not in (*STATUSES, "new"):
        raise StoreError(f"{run / layout.META} has the unknown status {status!r}")
    if status == "new" and (run / layout.SUMMARY).exists():
        raise StoreError(f"{run / layout.META} has no status, but the run has results; --overwrite trains it anew")
    return str(status)


def read_meta(run: Path) -> dict[str, Any]:
    """The provenance of a run, or nothing where none has begun."""
    return read_json(run / layout.META) if (run / layout.META).exists() else {}


def has_begun(run: Path) -> bool:
    """Whether the directory is a run's already."""
    return (run / layout.CONFIG).exists()


def stored_id(run: Path) -> str:
    """The id of a run as it was trained, under the results version of then; of a run of an earlier schema, today's."""
    config, stored = read_config(run), read_meta(run).get("config_id")
    return config_id(config) if stored in (None, earlier_id(config)) else str(stored)


def find_required(config: RunConfig, run: Path) -> list[Path]:
    """The finished runs that a run builds on, among those beside it or below `runs`; `StoreError` if one is missing."""
    required = family_of(config).required(config) if config.requires else ()
    if len(required) != len(config.requires):
        raise StoreError(f"{run}: its config requires {len(config.requires)} runs, but its family {len(required)}")
    return [
        _find(identity, f"a run of {other.name}, seed {other.data_seed}", run)
        for identity, other in zip(config.requires, required, strict=True)
    ]


def _find(identity: str, called: str, beside: Path) -> Path:
    unfinished = None
    for folder in dict.fromkeys((beside.parent, RUNS)):
        for run in _runs_below(folder):
            if _id_or_none(run) == identity:
                if read_status(run) == "done":
                    return run
                unfinished = run
    if unfinished is None:
        raise StoreError(
            f"{beside} builds on {called}, of the id {identity}, which is not in {beside.parent}; train it first"
        )
    status = read_status(unfinished)
    how = "take other settings" if status == "diverged" else "let it finish first"
    raise StoreError(f"{beside} builds on {called}, {unfinished}, which is {status}; {how}")


def _id_or_none(run: Path) -> str | None:
    """The id of a run; None for one that is broken."""
    try:
        return stored_id(run)
    except StoreError:
        return None


def begin(run: Path, config: RunConfig) -> None:
    """Makes the directory a run of this config."""
    manifest.begin(run)
    write_json(run / layout.CONFIG, to_dict(config))


def update_meta(run: Path, **values: Any) -> None:
    """Adds to meta.json, or replaces what is there."""
    write_json(run / layout.META, read_meta(run) | values)


def mark_running(run: Path) -> None:
    """Gives a run the status "running"; what meta.json says of how it ended before is dropped."""
    write_json(run / layout.META, _without_end(run) | {"status": "running"})


def note_failure(run: Path, error: str) -> None:
    """Leaves the status "failed" and what is known of it with a run that has begun and not ended, if that can be."""
    with contextlib.suppress(OSError, StoreError):
        if read_status(run) not in ("new", *FINISHED):
            write_json(run / layout.META, _without_end(run) | {"status": "failed", "error": error, "end": now()})


def _without_end(run: Path) -> dict[str, Any]:
    return {name: value for name, value in read_meta(run).items() if name not in SAID_AT_AN_END}


def choose(config: RunConfig, out: str | None, overwrite: bool, runs: Path = RUNS) -> Path:
    """The directory of a run of this config.

    With `out`, that one; `StoreError` if it holds another config or is no run directory. Without, the newest unfinished
    run of this config under `runs`, otherwise the next free `<name>[_k]`. `overwrite` redoes what is there: the run in
    `out`, or the newest run of this config.
    """
    if out is not None:
        check_usable(Path(out), config, overwrite)
        return Path(out)
    same = _newest_first([run for run in _runs_below(runs) if _same_config(run, config)])
    if overwrite and same:
        return same[0]
    unfinished = [run for run in same if read_status(run) not in FINISHED]
    if unfinished:
        return unfinished[0]
    names = (config.name if k == 0 else f"{config.name}_{k}" for k in count())
    return next(runs / name for name in names if not os.path.lexists(runs / name))  # a dangling link takes its name


def clear(run: Path) -> list[str]:
    """Removes the files that a run's manifest names, and gives the names of those that lie beside them and stay.

    The manifest is emptied last: until then the directory is a run's, so if this is cut short the same command ends it,
    and afterwards it is one that has not begun. A run whose results are going is not done any more, which is said
    first; a disk too full for it is no reason to stop.
    """
    manifest.adopt(run)
    if not manifest.exists(run):
        return []
    if (run / layout.META).exists():
        with contextlib.suppress(OSError):
            write_json(run / layout.META, {"status": "running"})
    own = manifest.files(run)
    for name in sorted(own, key=LAST.__contains__):
        with naming(run / name):
            (run / name).unlink(missing_ok=True)
    for folder in {Path(run, name).parent for name in own} - {run}:
        with contextlib.suppress(OSError):  # something else lies there
            folder.rmdir()
    manifest.forget(run)
    return manifest.others(run)


def append_metrics(run: Path, record: Mapping[str, Any]) -> None:
    """Adds one line to the metrics, synced to disk; if that fails, none of it stays."""
    path = run / layout.METRICS
    manifest.claim(path)
    before = path.stat().st_size if path.exists() else 0
    with naming(path):
        try:
            with open(path, "ab") as file:
                file.write((json_text(record, indent=None) + "\n").encode())
                file.flush()
                os.fsync(file.fileno())
        except OSError:
            with contextlib.suppress(OSError):
                os.truncate(path, before)
            raise


def cut_metrics(run: Path, step: int, due: Sequence[int]) -> None:
    """Keeps the metrics up to a step: what came after the checkpoint will be computed again.

    `StoreError` unless these are of the steps `due`: a record is written before its checkpoint, so none can be missing.
    """
    path = run / layout.METRICS
    found = read_json_lines(path) if path.exists() else []
    with expecting(path, "the metrics of a run; --overwrite trains the run anew"):
        records = [record for record in found if record["step"] <= step]
    if [record["step"] for record in records] != list(due):
        raise StoreError(f"{path} lacks records of steps up to the checkpoint's, {step}; --overwrite trains it anew")
    write_bytes(path, "".join(json_text(record, indent=None) + "\n" for record in records).encode())


def read_metrics(run: Path, further: Sequence[str] = ()) -> list[dict[str, Any]]:
    """The metrics, one record for each logged step: what every run logs, and the `further` fields that are needed."""
    fields = (*METRICS_FIELDS, *further)
    records = read_json_lines(run / layout.METRICS)
    if not records or not all(set(fields) <= set(record) for record in records):
        raise StoreError(f"{run / layout.METRICS} holds no metrics of a run: these have {', '.join(fields)}")
    values = [record[name] for record in records for name in fields]
    if not all(is_count(record["step"]) for record in records) or not all(v is None or is_number(v) for v in values):
        raise StoreError(f"{run / layout.METRICS} has values in its metrics that are no numbers")
    return records


def check_usable(out: Path, config: RunConfig, overwrite: bool) -> None:
    """`StoreError` unless a directory can take a run of this config: it is new, empty, or that run's.

    With `overwrite` it may be any run's. A folder is a run's if it has a manifest, or was made by a version that had
    none. Whatever else lies in it must not be where the run would write. What a killed process left in writing its
    first file does not count.
    """
    if out.exists() and not out.is_dir():
        raise StoreError(f"{out} is a file, not a run directory")
    if not (manifest.exists(out) or manifest.is_earlier_run(out)):
        if out.is_dir() and not {path.name for path in out.iterdir()} <= LEFTOVERS:
            reason = f"has a {layout.CONFIG} but no {layout.MANIFEST}" if has_begun(out) else "is not empty"
            raise StoreError(f"{out} {reason}, so it is not a run directory; choose another --out")
        return
    if has_begun(out) and not overwrite:
        _check_same(out, config)
    if not overwrite and read_status(out) in FINISHED:
        return  # nothing is written
    if manifest.exists(out) and (foreign := manifest.in_the_way(out)):
        raise StoreError(
            f"{out / foreign[0]} was not written by the laboratory, and a run would write there; move it away"
        )


def _check_same(out: Path, config: RunConfig) -> None:
    read_status(out)
    if why := why_changed(read_json(out / layout.CONFIG)):
        raise StoreError(f"{out} {why}, choose another --out, or --overwrite it")
    if stored_id(out) != config_id(config):
        _check_shared(out, config)
        raise StoreError(
            f"{out} holds a run of another config or results version; choose another --out, or --overwrite it"
        )
    if config_id(read_config(out)) != config_id(config):
        raise StoreError(f"{out / layout.CONFIG} is not the config that the run was trained with")


def _check_shared(out: Path, config: RunConfig) -> None:
    """`StoreError` if a run's config differs in its shared arrays alone."""
    stored = read_config(out)
    alike = type(stored) is type(config) and replace(stored, shared=config.shared, preset=config.preset) == config
    if alike and stored.shared != config.shared:
        name = min({*stored.shared} ^ {*config.shared}).partition(":")[0]
        raise StoreError(
            f"the shared array {name} has changed since {out} began; bring it back, or choose another --out"
        )


def _runs_below(runs: Path) -> list[Path]:
    """The runs that live here; links to others stay out of it."""
    found = [path.parent for path in runs.glob(f"*/{layout.META}")] if runs.is_dir() else []
    return [run for run in found if not run.is_symlink()]


def _newest_first(runs: list[Path]) -> list[Path]:
    return sorted(runs, key=lambda run: str(read_meta(run).get("start")), reverse=True)


def _same_config(run: Path, config: RunConfig) -> bool:
    try:
        read_status(run)
        return stored_id(run) == config_id(config)
    except StoreError:  # another run's broken file is not this run's concern
        return False
