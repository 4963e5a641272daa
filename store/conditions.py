"""What a run's bits depend on beside its config: versions, the pack's width, threads, the device.

A run that goes on under others than it had so far ends with other bits than an uninterrupted one. Its meta.json says
so: `bitwise` is false, and `resumed_elsewhere` has what changed at which step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cli import printable
from environment import num_threads
from store import checkpoint, layout, rundir
from store.provenance import versions
from store.readers import StoreError, expecting

OF_A_PROCESS = ("pack_width", "threads", "device")  # beside the versions

Change = dict[str, Any]  # {"step", "what", "was", "is"}


def current(width: int, device: str | None = None) -> dict[str, Any]:
    """The conditions of this process; the device's text is known once JAX may be imported."""
    found = {**versions(), "pack_width": width, "threads": num_threads()}
    return found if device is None else found | {"device": device}


def at_step(run: Path, step: int) -> dict[str, Any]:
    """Those that a run was trained under up to a step: as it began, and as it went on since."""
    meta = rundir.read_meta(run)
    with expecting(run / layout.META, "a run's meta.json; --overwrite trains the run anew"):
        began = {**meta.get("versions", {}), **{name: meta[name] for name in OF_A_PROCESS if name in meta}}
        return began | {change["what"]: change["is"] for change in _before(meta, step)}


def changes(run: Path, step: int, now: Mapping[str, Any]) -> list[Change]:
    """What differs if a run goes on from a step under the conditions of now."""
    found = at_step(run, step)
    differing = [name for name, was in found.items() if name != "device" and was != now.get(name)]
    if {"device"} <= found.keys() & now.keys() and _hardware(found["device"]) != _hardware(now["device"]):
        differing.append("device")
    return [{"step": step, "what": name, "was": found[name], "is": now.get(name)} for name in differing]


def _hardware(device: str) -> str:
    """A device's text without threads and version, which are conditions of their own."""
    return str(device).partition(", ")[0]


def history(run: Path, step: int, now: Mapping[str, Any]) -> list[Change]:
    """All changes of a run that goes on from a step. What was computed after it is gone, and its conditions with it."""
    meta = rundir.read_meta(run)
    with expecting(run / layout.META, "a run's meta.json; --overwrite trains the run anew"):
        return [*_before(meta, step), *changes(run, step, now)]


def _before(meta: Mapping[str, Any], step: int) -> list[Change]:
    return [change for change in meta.get("resumed_elsewhere", []) if change["step"] < step]


def check(run: Path, now: Mapping[str, Any]) -> None:
    """`StoreError` if an unfinished run would go on from its last checkpoint under other conditions than it had."""
    steps = checkpoint.steps(run)
    if not steps or rundir.read_status(run) in rundir.FINISHED:
        return
    found = changes(run, steps[-1], now)
    if [change["what"] for change in found] == ["threads"]:
        threads = found[0]["was"]
        raise StoreError(f"{run} was begun with {threads} threads; set NPROC={threads} to resume")
    if found:
        differing = " and ".join(map(_refused, found))
        raise StoreError(f"{run} was begun {differing}; --overwrite trains it anew")


def _refused(change: Change) -> str:
    if change["what"] == "device":
        return f"on {change['was']}, not {change['is']}"
    return f"with {change['what']} {change['was']}, not {change['is']}"


def describe(found: Sequence[Change]) -> str:
    """`threads 2 instead of 1 from step 40`."""
    parts = [f"{each['what']} {each['is']} instead of {each['was']} from step {each['step']}" for each in found]
    return printable(", ".join(parts))


def describe_resumes(run: Path) -> str:
    """What changed in a run that was resumed elsewhere."""
    meta = rundir.read_meta(run)
    with expecting(run / layout.META, "a run's meta.json"):
        return describe(meta["resumed_elsewhere"])


def is_bitwise(meta: Mapping[str, Any]) -> bool:
    """Whether a run has the bits of an uninterrupted one; of older runs, which were never resumed elsewhere, too."""
    return bool(meta.get("bitwise", True))


def notice(metas: Sequence[Mapping[str, Any]]) -> str:
    """A line on finished runs, from each one's meta.json, if some were resumed elsewhere; else ""."""
    count = sum(not is_bitwise(meta) for meta in metas)
    if not count:
        return ""
    which = "this run was" if len(metas) == 1 else f"{count} of {len(metas)} finished runs were"
    return f"{which} resumed elsewhere, with other bits than uninterrupted: see resumed_elsewhere in meta.json"
