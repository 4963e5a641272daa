"""Where a result came from: versions, device, seeds, threads, commit. Written into every run's meta.json."""

from __future__ import annotations

import hashlib
import json
import platform
import shlex
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from environment import num_threads
from src.config import RunConfig, to_dict
from store.sources import ROOT, sources

SCHEMA_VERSION = 1  # of the files in a run directory
RESULTS_VERSION = 4  # of the numbers in them: raised when the same config gives other numbers

VOLATILE = ("preset",)  # fields that name a config without changing what it computes
PACKAGES = ("jax", "jaxlib", "dm-haiku", "optax", "numpy", "scipy", "safetensors")


def config_id(config: RunConfig) -> str:
    """A hash of all that a run's numbers depend on: the resolved config and the results version.

    Only what differs from the defaults counts, so that a field added later, at its default, leaves old ids alone.
    """
    values = _differences(to_dict(config), to_dict(RunConfig()))
    values = {name: value for name, value in values.items() if name not in VOLATILE}
    text = json.dumps({"config": values, "results_version": RESULTS_VERSION}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _differences(values: dict[str, Any], defaults: dict[str, Any]) -> dict[str, Any]:
    """The entries that differ from the defaults, sections within sections."""
    return {
        name: _differences(value, defaults[name]) if isinstance(value, dict) else value
        for name, value in values.items()
        if value != defaults[name]
    }


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that numbers depend on."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def provenance(config: RunConfig, device: str) -> dict[str, Any]:
    """The part of meta.json that is known when a run starts."""
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
        "seeds": {"data_seed": config.data_seed, "init_seed": config.init_seed},
        "prng": "threefry2x32_unrolled",
        "precision": "float32, matmul precision highest",
        "loss_convention": LOSS_CONVENTION,
        "sources": sources(),
    }


LOSS_CONVENTION = "loss: half the mean squared error; mse: the mean squared error"


def now() -> str:
    """The time, in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def git_commit() -> str | None:
    """The commit of this project's working tree, if there is one."""
    return _git("rev-parse", "HEAD")


def _git(*words: str) -> str | None:
    try:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
