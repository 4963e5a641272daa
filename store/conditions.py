"""Tracks what bitwise results depend on besides a run's config: versions, variables, pack width, threads, device.

A run resumed under other conditions is not bitwise identical to an uninterrupted one. Its meta.json then has `bitwise`
false, and `resumed_elsewhere` lists what changed at which step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from icl_lab.lab.cli import printable
from icl_lab.lab.environment import num_threads
from icl_lab.lab.environment_variables import recorded
from icl_lab.store import checkpoint, layout, rundir
from icl_lab.store.provenance import versions
from icl_lab.store.readers import StoreError, expecting

PROCESS_CONDITIONS = ("pack_width", "threads", "device")  # in addition to the versions and the variables

Change = dict[str, Any]  # {"step", "what", "was", "is"}


def current(width: int, device: str | None = None) -> dict[str, Any]:
    """The conditions of this process. The device is left out while JAX must not be imported yet."""
    conditions = {**versions(), **recorded(), "pack_width": width, "threads": num_threads()}
    return conditions if device is None else conditions | {"device": device}


def at_step(run: Path, step: int) -> dict[str, Any]:
    """The conditions that a run had at a step."""
    meta = rundir.read_meta(run)
    with expecting(run / layout.META, "a run's meta.json; --overwrite retrains the run"):
        initial = {**meta.get("versions", {}), **meta.get("variables", {})}
        initial |= {name: meta[name] for name in PROCESS_CONDITIONS if name in meta}
        return initial | {change["what"]: change["is"] for change in _before(meta, step)}


def changes(run: Path, step: int, now: Mapping[str, Any]) -> list[Change]:
    """What would change if a run resumed from a step under the conditions `now`.

    A condition that one of the two does not record is not known to be equal. Where `now` has no device it is left out.
    """
    before = at_step(run, step)
    names = [name for name in (before | dict(now)) if name != "device" or name in now]
    return [
        {"step": step, "what": name, "was": before.get(name), "is": now.get(name)}
        for name in names
        if not _is_same(name, before.get(name), now.get(name))
    ]


def _is_same(name: str, was: Any, now: Any) -> bool:
    """Whether a condition is known to be the same."""
    if was is None or now is None:
        return False
    return bool(_hardware(was) == _hardware(now) if name == "device" else was == now)


def _hardware(device: str) -> str:
    """A device description without threads and version, which are separate conditions."""
    return str(device).partition(", ")[0]


def history(run: Path, step: int, now: Mapping[str, Any]) -> list[Change]:
    """All changes of a run that resumes from a step; changes after that step are dropped with their results."""
    meta = rundir.read_meta(run)
    with expecting(run / layout.META, "a run's meta.json; --overwrite retrains the run"):
        return [*_before(meta, step), *changes(run, step, now)]


def _before(meta: Mapping[str, Any], step: int) -> list[Change]:
    return [change for change in meta.get("resumed_elsewhere", []) if change["step"] < step]


def check(run: Path, now: Mapping[str, Any]) -> None:
    """`StoreError` if an unfinished run would resume from its last checkpoint under other conditions."""
    steps = checkpoint.steps(run)
    if not steps or rundir.read_status(run) in rundir.FINISHED:
        return
    differing = changes(run, steps[-1], now)
    if [change["what"] for change in differing] == ["threads"]:
        threads = differing[0]["was"]
        raise StoreError(f"{run} was begun with {threads} threads; set NPROC={threads} to resume")
    if differing:
        reasons = " and ".join(map(_was_not_is, differing))
        raise StoreError(f"{run} was begun {reasons}; --overwrite retrains it")


def _was_not_is(change: Change) -> str:
    if change["what"] == "device":
        return f"on {change['was']}, not {change['is']}"
    return f"with {change['what']} {_value(change['was'])}, not {_value(change['is'])}"


def _value(value: Any) -> Any:
    """A condition in words; a variable that is empty is unset."""
    return {None: "not recorded", "": "unset"}.get(value, value)


def describe(changes: Sequence[Change]) -> str:
    """`threads 2 instead of 1 from step 40`."""
    parts = [
        f"{each['what']} {_value(each['is'])} instead of {_value(each['was'])} from step {each['step']}"
        for each in changes
    ]
    return printable(", ".join(parts))


def describe_resumes(run: Path) -> str:
    """What changed when a run was resumed elsewhere."""
    meta = rundir.read_meta(run)
    with expecting(run / layout.META, "a run's meta.json"):
        return describe(meta["resumed_elsewhere"])


def verdict(changes: Sequence[Change]) -> bool | None:
    """Whether a run with these changes is bitwise identical; None where all are of what one side did not record."""
    known = [change for change in changes if None not in (change.get("was"), change.get("is"))]
    return False if known else None if changes else True


def is_bitwise(meta: Mapping[str, Any]) -> bool | None:
    """Whether a run is bitwise identical to an uninterrupted one; None where its meta.json does not say."""
    said = meta.get("bitwise")
    return said if isinstance(said, bool) else None


def in_words(bitwise: bool | None) -> str:
    """`true`, `false` or `not recorded`."""
    return "not recorded" if bitwise is None else str(bitwise).lower()


def notice(metas: Sequence[Mapping[str, Any]]) -> str:
    """How many finished runs, given by their meta.json, were resumed elsewhere, and how many do not say; "" if none."""
    said = [is_bitwise(meta) for meta in metas]
    parts = [
        (said.count(False), "resumed elsewhere and not bitwise reproducible: see resumed_elsewhere in meta.json"),
        (said.count(None), "not known to be bitwise reproducible: meta.json does not record it"),
    ]
    return "; ".join(f"{_which(count, len(metas))} {what}" for count, what in parts if count)


def _which(count: int, of: int) -> str:
    return "this run was" if of == 1 else f"{count} of {of} finished runs were"
