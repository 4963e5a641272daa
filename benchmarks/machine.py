"""Describes the machine that is measured, and how busy it is."""

from __future__ import annotations

import os
import platform
import re
from typing import Any

import jax

from icl_lab.lab.compile_cache import CPUINFO
from icl_lab.lab.configs.presets import preset, resolve
from icl_lab.lab.configs.registry import models
from icl_lab.lab.environment import num_threads
from icl_lab.runners.conditions import device_text
from icl_lab.store.provenance import provenance_of
from icl_lab.store.rundir import now

BUSY = 0.5  # load average above which measurements are unreliable
FACTS = ("command", "git_hash", "git_dirty", "versions", "device", "platform", "threads")


def describe() -> dict[str, Any]:
    """The machine, date, load and versions of the results."""
    # only `FACTS` of it, which do not depend on the config
    facts = provenance_of(resolve(preset(models()[0])), device_text())
    return {
        "machine": name(),
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "date": now(),
        "load_average": os.getloadavg()[0],
    } | {key: facts[key] for key in FACTS}


def name() -> str:
    """The device: an accelerator's name, or the CPU's with the number of threads."""
    device = jax.devices()[0]
    return str(device.device_kind) if device.platform != "cpu" else f"{_cpu()}, {num_threads()} threads"


def slug() -> str:
    """The machine's name as a file name."""
    return re.sub(r"[^a-z0-9]+", "-", name().lower()).strip("-")


def _cpu() -> str:
    """The CPU's model; of one by x86 without AVX-512, on which all is slower, that too."""
    lines = CPUINFO.read_text() if CPUINFO.exists() else ""
    model, flags = (re.search(rf"^{key}\s*: (.+)$", lines, re.M) for key in ("model name", "flags"))
    narrow = ", no AVX-512" if flags and "avx512f" not in flags[1].split() else ""
    return (model[1] if model else platform.processor() or platform.machine()) + narrow
