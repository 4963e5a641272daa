"""The machine that is measured, and how busy it is."""

from __future__ import annotations

import os
import platform
import re
from typing import Any

import jax

from configs.regression import RegressionConfig
from environment import num_threads
from runners.compile_cache import CPUINFO
from runners.training import device_text
from store.provenance import now, provenance

BUSY = 0.5  # a load average above this disturbs the measurements
FACTS = ("command", "git_hash", "git_dirty", "versions", "device", "platform", "threads")


def describe() -> dict[str, Any]:
    """Where, when and of what the results are."""
    facts = provenance(RegressionConfig(), device_text())  # what it says of a run is left out
    return {
        "machine": name(),
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "date": now(),
        "load_average": os.getloadavg()[0],
    } | {key: facts[key] for key in FACTS}


def name() -> str:
    """The device in words: an accelerator's name, or the CPU's and how many threads compute."""
    device = jax.devices()[0]
    return str(device.device_kind) if device.platform != "cpu" else f"{_cpu()}, {num_threads()} threads"


def slug() -> str:
    """The name as that of a file."""
    return re.sub(r"[^a-z0-9]+", "-", name().lower()).strip("-")


def _cpu() -> str:
    """The CPU's model."""
    lines = CPUINFO.read_text() if CPUINFO.exists() else ""
    found = re.search(r"^model name\s*: (.+)$", lines, re.M)
    return found[1] if found else platform.processor() or platform.machine()
