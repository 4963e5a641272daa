"""How many processors' time a container may use, as Linux's control groups limit it.

Uses only the standard library, as old Pythons have it: `lab.environment` imports it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PROCESS = Path("/proc/self")


class Mount(NamedTuple):
    """A mounted hierarchy of groups. root: the group that its folder is of. controllers: of version 1, else empty."""

    root: str
    folder: Path
    controllers: frozenset[str]


def cpu_quota(process: Path = PROCESS) -> float | None:
    """The smallest limit of the groups that a process is in and of those around them, in processors; None without.

    Version 2 has it in cpu.max, version 1 in cpu.cfs_quota_us and cpu.cfs_period_us.
    """
    try:
        mounts = list(_mounts((process / "mountinfo").read_text(errors="replace")))
        lines = (process / "cgroup").read_text(errors="replace").splitlines()
    except OSError:  # not Linux
        return None
    limits = []
    for line in lines:
        _, names, group = line.split(":", 2)
        wanted = frozenset(filter(None, names.split(",")))
        for mount in mounts:
            if "cpu" in mount.controllers & wanted or not (wanted or mount.controllers):
                limits += [_limit(folder) for folder in _upwards(mount, group)]
    return min((limit for limit in limits if limit is not None), default=None)


def _mounts(text: str) -> Iterator[Mount]:
    """The hierarchies in a mountinfo, whose lines are `... root folder options - type source options`."""
    for line in text.splitlines():
        before, _, after = line.partition(" - ")
        words, (kind, *_, options) = before.split(), after.split()
        if kind in ("cgroup", "cgroup2"):
            root, folder = (re.sub(r"\\(\d{3})", lambda octal: chr(int(octal[1], 8)), word) for word in words[3:5])
            yield Mount(root, Path(folder), frozenset(options.split(",") if kind == "cgroup" else ()))


def _upwards(mount: Mount, group: str) -> list[Path]:
    """The folders of a group and of those around it. A group that is not below the mounted one is taken for that."""
    below = Path(group.lstrip("/"))
    if Path(group).is_relative_to(mount.root):
        below = Path(group).relative_to(mount.root)
    if ".." in below.parts or not (mount.folder / below).is_dir():
        below = Path()
    return [mount.folder / below, *(mount.folder / above for above in below.parents)]


def _limit(folder: Path) -> float | None:
    """A group's own limit; None where it has none, or none that can be read."""
    try:
        if (folder / "cpu.max").exists():
            quota, period = (folder / "cpu.max").read_text().split()
        else:
            quota, period = ((folder / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period"))
        return int(quota) / int(period) if int(quota) > 0 else None
    except (OSError, ValueError, ZeroDivisionError):  # "max" is no number
        return None
