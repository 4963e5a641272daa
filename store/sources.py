"""The sources that results come from, by hash: whether a finished run was made by those that are here now."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from cli import printable

ROOT = Path(__file__).resolve().parent.parent
# `store` is among them because it writes the bytes
FOLDERS = ("src", "configs", "curricula", "baselines", "families", "analysis", "runners", "store")
DIGITS = 16  # of a SHA-256, in hexadecimal
NAMED = 2  # files that a sentence names


@cache
def sources(root: Path = ROOT) -> dict[str, str]:
    """{path from the root: hash} of every .py file that produces results, read once a process."""
    files = sorted(path for folder in FOLDERS for path in (root / folder).rglob("*.py"))
    return {path.relative_to(root).as_posix(): _hash(path) for path in files}


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:DIGITS]


def changed(meta: Mapping[str, Any]) -> list[str] | None:
    """The files that differ from what a run's meta.json says it was made by; None where it does not say.

    A file that has come since is none of them: what it does to a run, a file that was there lets it do. Files that
    differed when the run was resumed are, whatever they hold now.
    """
    recorded = meta.get("sources")
    if not isinstance(recorded, dict):
        return None
    here, earlier = sources(), meta.get("sources_changed", [])
    since = {str(name) for name, value in recorded.items() if here.get(name) != value}
    return sorted(since | {str(name) for name in earlier} if isinstance(earlier, list) else since)


def remark(metas: Sequence[Mapping[str, Any]]) -> str:
    """What is said where finished runs are shown instead of trained, from each one's meta.json; "" if nothing is.

    One line: which files have changed since, and how to train anew.
    """
    found = [changed(meta) for meta in metas]
    differing, unknown = [names for names in found if names], found.count(None)
    them = "it" if len(metas) == 1 else "them"
    parts = []
    if differing:
        names = sorted({name for those in differing for name in those})
        have = "has" if len(names) == 1 else "have"
        parts.append(f"{_in_words(names)} {have} changed since {_part(len(differing), len(metas))} began")
    if unknown:
        parts.append(f"the sources that made {_part(unknown, len(metas))} are not recorded")
    return f"{'; '.join(parts)}; --overwrite trains {them} anew" if parts else ""


def _part(count: int, of: int) -> str:
    return "this run" if of == 1 else f"{count} of {of} finished runs"


def _in_words(names: Sequence[str]) -> str:
    """`a.py`, `a.py and b.py`, or `a.py, b.py and 3 more`."""
    shown = [printable(name) for name in names[:NAMED]]
    rest = len(names) - len(shown)
    *most, last = [*shown, f"{rest} more"] if rest else shown
    return f"{', '.join(most)} and {last}" if most else last
