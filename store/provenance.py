"""Collects the provenance written to meta.json: versions, device, seeds, threads, variables, commit."""

from __future__ import annotations

import platform
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from icl_lab.lab.configs.identity import RESULTS_VERSION, config_id
from icl_lab.lab.configs.registry import family_of
from icl_lab.lab.configs.run import SCHEMA_VERSION, RunConfig
from icl_lab.lab.environment import num_threads
from icl_lab.lab.environment_variables import recorded
from icl_lab.store.sources import ROOT, sources

PACKAGES = ("jax", "jaxlib", "dm-haiku", "optax", "numpy", "scipy", "safetensors")


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that results depend on."""
    installed = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            installed[name] = version(name)
        except PackageNotFoundError:
            installed[name] = "not installed"
    return installed


def provenance(config: RunConfig, device: str) -> dict[str, Any]:
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
        "loss_convention": family_of(config).loss_convention,
        "sources": sources(),
    }


def now() -> str:
    """The current time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def notice(metas: Sequence[Mapping[str, Any]], of: int) -> str:
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
