"""Lists the runs below a folder with status, loss, age, size and whether their sources have changed; or as a table."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from icl_lab.lab.configs.columns import LAST
from icl_lab.lab.configs.registry import named, outputs_of
from icl_lab.lab.configs.run import TAGS, fields_of
from icl_lab.lab.loaded_plugins import not_loaded
from icl_lab.lab.registries import FAMILIES
from icl_lab.store import layout, ownership, provenance, rundir
from icl_lab.store.metrics import last_metrics, read_summary
from icl_lab.store.provenance import changed_files
from icl_lab.store.readers import StoreError, expecting, is_number, json_lines, read_csv, read_json
from icl_lab.store.rundir import PluginMissing, has_begun, read_config, read_meta, read_status

if TYPE_CHECKING:
    import pandas as pd

BROKEN, NO_RUN = "broken", "no run"  # statuses of unreadable runs, and of other folders
MISSING = "plugins_missing"  # the word for a run whose plugins are not loaded
SETTINGS = ("contexts",)  # fields of a summary that repeat the config


class Entry(NamedTuple):
    """A run, or a folder that might be one.

    reason: why it is broken, not read or no run, else "". config: fields by dotted name. loss: name and value on the
    test set, None if there is none yet. time: end, or else start. size: bytes. sources: same, changed or not recorded.
    shown: False if the folder is only counted. host: of the process that has locked it, else "". killed: that process
    was one of this host and has ended. bitwise: False if the run was resumed elsewhere, None if it does not say
    (`store.provenance`).
    whose: of a finished run that kept its best parameters too, of which parameters its loss is, else "".
    plugins_missing: those of its config, NAME:HASH, that are not loaded; its config is then unchecked, as written.
    """

    path: Path
    status: str
    reason: str = ""
    config: Mapping[str, Any] = {}
    loss: tuple[str, float] | None = None
    time: datetime | None = None
    size: int = 0
    sources: str = ""
    shown: bool = True
    bitwise: bool | None = None
    host: str = ""
    killed: bool = False
    plugins_missing: tuple[str, ...] = ()
    whose: str = ""


def list_runs(folder: Path) -> list[Entry]:
    """The runs at or below a folder, newest first; `StoreError` if there is no such folder."""
    _check_folder(folder)
    entries = [_entry(path, is_near=folder in (path, path.parent)) for path in _candidates(folder)]
    oldest = datetime.min.replace(tzinfo=UTC)
    return sorted(entries, key=lambda entry: (entry.time or oldest, str(entry.path)), reverse=True)


def run_folders(folder: Path) -> list[Path]:
    """The runs at or below a folder, of which nothing is read; `StoreError` if there is no such folder."""
    _check_folder(folder)
    return [path for path in _candidates(folder) if _is_run(path)]


def _check_folder(folder: Path) -> None:
    if not folder.is_dir():
        why = "is not a folder" if folder.exists() else "does not exist; the first run makes it"
        raise StoreError(f"{folder} {why}")


def _candidates(folder: Path) -> Iterator[Path]:
    """The runs at or below a folder, and the folders without a run or a subfolder.

    Runs are not searched, and links are not followed, except a link to a run.
    """
    try:
        if _is_run(folder):
            yield folder
            return
        inside = [path for path in sorted(folder.iterdir()) if path.is_dir() and not path.name.startswith(".")]
        below = [path for path in inside if not path.is_symlink() or _is_run(path)]
    except OSError:
        below = []  # its line says why it cannot be read
    for path in below:
        yield from _candidates(path)
    if not below:
        yield folder


def _is_run(folder: Path) -> bool:
    """Whether a folder is a run, complete or not."""
    return has_begun(folder) or (folder / layout.META).exists()


def _entry(run: Path, is_near: bool) -> Entry:
    try:
        if not _is_run(run):
            shown = is_near or (run / layout.MANIFEST).exists()
            reason = f"it has no {layout.CONFIG}"
            return Entry(run, NO_RUN, reason, time=_last_change(run), size=_size(run) if shown else 0, shown=shown)
        (fields, missing), status, meta = _fields(run), read_status(run), read_meta(run)
        loss, owner = loss_of(run, str(fields["family"]), status), ownership.read(run / layout.LOCK)
        whose = _whose(run) if status == "done" and fields.get("keep_best") else ""
    except (StoreError, OSError) as error:
        status = rundir.EARLIER if isinstance(error, rundir.EarlierVersion) else BROKEN
        return Entry(run, status, str(error), time=_last_change(run), size=_size(run))
    time, bitwise = _time(meta) or _last_change(run / layout.META), provenance.is_bitwise(meta)
    host = owner.host.partition(" ")[0] if owner else ""
    killed = status == "running" and owner is not None and ownership.has_ended(owner.writer())
    facts = (loss, time, _size(run), _sources(meta), True, bitwise, host, killed, missing, whose)
    return Entry(run, status, "", fields, *facts)


def _fields(run: Path) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The fields of a run's config by dotted name, and the plugins of it that are not loaded."""
    try:
        config = read_config(run)
        return {"family": config.family, **flat(fields_of(config))}, ()
    except PluginMissing:
        values = read_json(run / layout.CONFIG)
    words = {name: values.pop(name, None) for name in TAGS}
    if not (isinstance(words["family"], str) and isinstance(values.get("name"), str)):
        raise StoreError(f"{run / layout.CONFIG} is not the config of a run")
    return {"family": words["family"], **flat(values)}, tuple(not_loaded(values))


def _sources(meta: Mapping[str, Any]) -> str:
    names = changed_files(meta)
    return "not recorded" if names is None else "changed" if names else "same"


def loss_of(run: Path, family: str, status: str) -> tuple[str, float] | None:
    """The loss on the test set if the run is finished, else in its last record; None of an unknown family."""
    if status == "done":
        if family not in FAMILIES:
            return None
        name, find = outputs_of(named(family)).test_loss
        summary = read_summary(run)
        with expecting(run / layout.SUMMARY, "a run's summary"):
            value = find(summary)
    elif record := last_record(run):
        name, value = "eval_loss", record["eval_loss"]
    else:
        return None
    return (name, float(value)) if is_number(value) else (name, float("nan"))


def _whose(run: Path) -> str:
    summary = read_summary(run)
    with expecting(run / layout.SUMMARY, "a run's summary"):
        return f"step {summary['num_steps']}, the last; best: step {summary['best']['step']}"


def last_record(run: Path) -> dict[str, Any]:
    """The last record of a run's metrics; empty if there is none yet, as during compilation."""
    path = run / layout.METRICS
    if not path.exists() or next(json_lines(path), None) is None:
        return {}
    return last_metrics(run, 1)[0]


def _time(meta: Mapping[str, Any]) -> datetime | None:
    try:
        time = datetime.fromisoformat(str(meta.get("end") or meta.get("start")))
    except ValueError:
        return None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _last_change(path: Path) -> datetime | None:
    try:
        return datetime.fromtimestamp(path.stat().st_mtime, UTC)
    except OSError:
        return None


def _size(folder: Path) -> int:
    """Total bytes of the files below a folder, without locks and the manifest, which whoever locks a run may write."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in (name for name in names if not layout.is_lock(name) and name != layout.MANIFEST):
            try:
                total += os.lstat(os.path.join(parent, name)).st_size
            except OSError:
                continue  # removed in the meantime
    return total


def flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested mappings as one mapping with dotted names."""
    fields: dict[str, Any] = {}
    for name, value in values.items():
        fields |= flat(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {f"{prefix}{name}": value}
    return fields


def table(path: str | Path) -> pd.DataFrame:
    """One row per run: `path`, `status`, the config's fields under dotted names, and the numbers of its summary.

    A run that is not done has the numbers of its last record. Lists of numbers, such as curves, are left out. Broken
    runs, and those of an earlier version, have a reason in `error`. A sweep's CSV keeps its columns, with `exp` as
    `path` too. `StoreError` for anything else.
    """
    source = Path(path)
    if source.is_dir():
        import pandas as pd  # half a second, see store.atomic

        return pd.DataFrame([_row(entry) for entry in list_runs(source) if entry.status != NO_RUN])
    rows = read_csv(source, ("seed",), ("exp", "model", "status"))
    rows.insert(0, "path", rows["exp"])
    return rows[["path", "status", *(name for name in rows.columns if name not in ("path", "status"))]]


def _row(entry: Entry) -> dict[str, Any]:
    row: dict[str, Any] = {"path": str(entry.path), "status": entry.status}
    if entry.status in (BROKEN, rundir.EARLIER):
        return row | {"error": entry.reason}
    try:
        missing = {MISSING: _cell([*entry.plugins_missing])} if entry.plugins_missing else {}
        return row | missing | {name: _cell(value) for name, value in entry.config.items()} | _numbers(entry)
    except StoreError as error:  # changed since it was listed
        return row | {"status": BROKEN, "error": str(error)}


def _cell(value: Any) -> Any:
    """Lists as text, so that columns can be compared and grouped by."""
    return ",".join(map(str, value)) if isinstance(value, list) else value


def _numbers(entry: Entry) -> dict[str, Any]:
    """The numbers of a run; of one that keeps its best parameters too, with a word on whose they are."""
    numbers = numeric(read_summary(entry.path) if entry.status == "done" else last_record(entry.path))
    if not (numbers and entry.config.get("keep_best")):
        return numbers
    return {"measured_params": LAST, "measured_step": numbers.get("num_steps", numbers.get("step")), **numbers}


def numeric(values: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers in nested mappings, and in lists of mappings by index; NaN for null."""
    kept = {name: value for name, value in values.items() if name not in SETTINGS}
    by_index = {
        name: dict(enumerate(value)) if isinstance(value, list) and all(isinstance(v, dict) for v in value) else value
        for name, value in kept.items()
    }
    return {
        name: float("nan") if value is None else value
        for name, value in flat(by_index).items()
        if value is None or is_number(value)
    }
