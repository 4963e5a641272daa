"""What the numbers of a run depend on, as its meta.json records it: versions, device, seeds, threads, sources, commit.

Bitwise results depend on more than a config: versions, variables, pack width, threads, device and kernel are its
conditions. A run resumed under other conditions is not bitwise identical to an uninterrupted one. Its meta.json then
has `bitwise` false, and `resumed_elsewhere` lists what changed at which step.
"""

from __future__ import annotations

import hashlib
import platform
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from icl_lab.lab.configs.identity import RESULTS_VERSION, config_id
from icl_lab.lab.configs.registry import family_of, outputs_of
from icl_lab.lab.configs.run import SCHEMA_VERSION, RunConfig
from icl_lab.lab.environment import num_threads
from icl_lab.lab.environment_variables import recorded
from icl_lab.lab.native.kernel import XLA_NAME
from icl_lab.src.words import printable
from icl_lab.store import checkpoint, layout, rundir
from icl_lab.store.readers import StoreError, expecting

ROOT = Path(__file__).resolve().parent.parent
# `store` is included because it writes the bytes
FOLDERS = ("src", "lab/configs", "baselines", "families", "analysis", "runners", "store")
DIGITS = 16  # of a SHA-256, in hexadecimal
KERNEL = "kernel"  # in meta.json: what computes gradients, as `lab.native.kernel` describes it
MAX_NAMED = 2  # files named in a message
PACKAGES = ("jax", "jaxlib", "dm-haiku", "optax", "numpy", "scipy", "safetensors")
PROCESS_CONDITIONS = ("pack_width", "threads", "device", KERNEL)  # in addition to the versions and the variables
Change = dict[str, Any]  # {"step", "what", "was", "is"}


@cache
def sources(root: Path = ROOT) -> dict[str, str]:
    """{path relative to the root: hash} of every .py file that produces results; read once per process."""
    files = sorted(path for folder in FOLDERS for path in (root / folder).rglob("*.py"))
    return {path.relative_to(root).as_posix(): _hash(path) for path in files}


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:DIGITS]


def changed_files(meta: Mapping[str, Any]) -> list[str] | None:
    """The files that differ from those recorded in a run's meta.json; None if none are recorded.

    New files do not count: they act only through a file that was there. Files that differed when the run was resumed
    count, whatever they contain now.
    """
    recorded = meta.get("sources")
    if not isinstance(recorded, dict):
        return None
    here, earlier = sources(), meta.get("sources_changed", [])
    since = {str(name) for name, value in recorded.items() if here.get(name) != value}
    return sorted(since | {str(name) for name in earlier} if isinstance(earlier, list) else since)


def sources_notice(metas: Sequence[Mapping[str, Any]]) -> str:
    """One line for finished runs, given by their meta.json: which sources have changed since; "" if none has."""
    changed = [changed_files(meta) for meta in metas]
    differing, unknown = [names for names in changed if names], changed.count(None)
    them = "it" if len(metas) == 1 else "them"
    parts = []
    if differing:
        names = sorted({name for those in differing for name in those})
        have = "has" if len(names) == 1 else "have"
        parts.append(f"{_joined(names)} {have} changed since {_share(len(differing), len(metas))} began")
    if unknown:
        parts.append(f"the sources that made {_share(unknown, len(metas))} are not recorded")
    return f"{'; '.join(parts)}; --overwrite retrains {them}" if parts else ""


def _share(count: int, of: int) -> str:
    return "this run" if of == 1 else f"{count} of {of} finished runs"


def _joined(names: Sequence[str]) -> str:
    """`a.py`, `a.py and b.py`, or `a.py, b.py and 3 more`."""
    shown = [printable(name) for name in names[:MAX_NAMED]]
    rest = len(names) - len(shown)
    *most, last = [*shown, f"{rest} more"] if rest else shown
    return f"{', '.join(most)} and {last}" if most else last


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that results depend on."""
    installed = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            installed[name] = version(name)
        except PackageNotFoundError:
            installed[name] = "not installed"
    return installed


def provenance_of(config: RunConfig, device: str) -> dict[str, Any]:
    """The fields of meta.json that are known when a run starts."""
    changes = _git("status", "--porcelain", "--untracked-files=no")
    return {
        "schema_version": SCHEMA_VERSION,
        "results_version": RESULTS_VERSION,
        "config_id": config_id(config),
        "command": shlex.join([Path(sys.executable).name, *sys.orig_argv[1:]]),
        "git_hash": git_commit(),
        "git_dirty": None if changes is None else bool(changes),
        "versions": versions(),
        "device": device,
        "platform": platform.platform(),
        "threads": num_threads(),
        "variables": recorded(),
        "seeds": {"data_seed": config.data_seed, "init_seed": config.init_seed},
        "prng": "threefry2x32_unrolled",
        "precision": "float32, matmul precision highest",
        "loss_convention": outputs_of(family_of(config)).of(config).loss_convention,
        "sources": sources(),
    }


def finished_notice(metas: Sequence[Mapping[str, Any]], of: int) -> str:
    """A line for runs that had finished before, given by their meta.json, of so many that are shown; "" for none."""
    if not metas:
        return ""
    ends = sorted(end for meta in metas if (end := _end(meta)))
    if of == 1:
        when = f"on {ends[0]:%Y-%m-%d at %H:%M:%S} UTC" if ends else "at a time that is not recorded"
        return f"this run finished {when} and was not trained again; --overwrite retrains it"
    days = dict.fromkeys(f"{end:%Y-%m-%d}" for end in (*ends[:1], *ends[-1:]))
    span = " to ".join(days) or "at times that are not recorded"
    return f"{len(metas)} of {of} runs finished earlier ({span}) and were not trained again; --overwrite retrains them"


def _end(meta: Mapping[str, Any]) -> datetime | None:
    """When a run ended, in UTC; None where that is not recorded."""
    try:
        return datetime.fromisoformat(str(meta.get("end"))).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def git_commit() -> str | None:
    """The commit of this project's working tree; None outside of git."""
    return _git("rev-parse", "HEAD")


def commit_of(path: Path) -> str | None:
    """The last commit of a file or folder in its own repository; None if it is in none, or has changed since."""
    words = ("--", str(path.resolve()))
    if _git("status", "--porcelain", "--ignored", *words, folder=path.resolve().parent) != "":
        return None
    return _git("log", "-1", "--format=%H", *words, folder=path.resolve().parent) or None


def _git(*words: str, folder: Path = ROOT) -> str | None:
    try:
        done = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def current_conditions(width: int, device: str | None = None, kernel: str | None = None) -> dict[str, Any]:
    """The conditions of this process. Device and kernel are left out while JAX must not be imported yet."""
    conditions = {**versions(), **recorded(), "pack_width": width, "threads": num_threads()}
    known = {name: value for name, value in (("device", device), (KERNEL, kernel)) if value is not None}
    return conditions | known


def conditions_at(run: Path, step: int) -> dict[str, Any]:
    """The conditions that a run had at a step. Runs of versions without a choice of kernels had XLA's."""
    meta = rundir.read_meta(run)
    with expecting(run / layout.META, "a run's meta.json; --overwrite retrains the run"):
        initial = {KERNEL: XLA_NAME, **meta.get("versions", {}), **meta.get("variables", {})}
        initial |= {name: meta[name] for name in PROCESS_CONDITIONS if name in meta}
        return initial | {change["what"]: change["is"] for change in _before(meta, step)}


def changes(run: Path, step: int, now: Mapping[str, Any]) -> list[Change]:
    """What would change if a run resumed from a step under the conditions `now`.

    A condition that one of the two does not record is not known to be equal. Device and kernel are left out where
    `now` has none.
    """
    before = conditions_at(run, step)
    names = [name for name in (before | dict(now)) if name not in ("device", KERNEL) or name in now]
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


def check_conditions(run: Path, now: Mapping[str, Any]) -> None:
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


def resumed_notice(metas: Sequence[Mapping[str, Any]]) -> str:
    """How many finished runs, given by their meta.json, were resumed elsewhere, and how many do not say; "" if none."""
    said = [is_bitwise(meta) for meta in metas]
    parts = [
        (
            said.count(False),
            "resumed under other conditions, not bitwise reproducible: see resumed_elsewhere in meta.json",
        ),
        (said.count(None), "not known to be bitwise reproducible: meta.json does not record it"),
    ]
    return "; ".join(f"{_which(count, len(metas))} {what}" for count, what in parts if count)


def _which(count: int, of: int) -> str:
    return "this run was" if of == 1 else f"{count} of {of} finished runs were"
