"""Hashes the source files that produce results, and finds which have changed since a run."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from icl_lab.lab.cli import printable

ROOT = Path(__file__).resolve().parent.parent
# `store` is included because it writes the bytes
FOLDERS = ("src", "lab/configs", "baselines", "families", "analysis", "runners", "store")
DIGITS = 16  # of a SHA-256, in hexadecimal
MAX_NAMED = 2  # files named in a message


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


def notice(metas: Sequence[Mapping[str, Any]]) -> str:
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
