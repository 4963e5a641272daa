"""What is kept of builds between processes: objects, each beside a JSON that says what it is, and failures.

The JSON names the object, whose name has the SHA-256 of its content, so that two processes that build at once never mix
theirs. A folder is for one CPU, since objects use all that it can.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import time
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from icl_lab.lab import caches, compile_cache
from icl_lab.lab.native import compilers
from icl_lab.lab.native.compilers import Compiler

DIGITS = 16  # of a SHA-256, in hexadecimal
MOST_OBJECTS = 8  # in a folder
DRAFTS = "build-"  # folders of builds that are going on


class Kept(NamedTuple):
    """An object and what its JSON says of it."""

    path: Path
    sha256: str
    source: str
    compiler: str
    flags: str
    lanes: int

    @property
    def described(self) -> str:
        """As in meta.json."""
        return f"native {self.source}, {self.compiler}, {self.lanes} lanes"


def folder() -> Path:
    """The private folder of this machine's objects; `UnsafeFolder` or `OSError` if there can be none."""
    cpu = _hash(compile_cache.cpu().encode())[:12]
    return caches.private_folder(compile_cache.default_folder() / f"native-{platform.machine()}-{cpu}")


def source_hash(source: Path) -> str:
    """The hash of all C++ files of a folder, and of the flags that they are compiled with."""
    flags = repr((compilers.FLAGS, compilers.OF_CPU, compilers.OF_GCC)).encode()
    files = sorted(path for pattern in ("*.cpp", "*.hpp") for path in source.glob(pattern))
    return _hash(flags + b"".join(path.name.encode() + b"\0" + path.read_bytes() + b"\0" for path in files))[:DIGITS]


def key(source: str, compiler: Compiler) -> str:
    """The hash of what an object depends on: source and flags, compiler, CPU, machine, and jaxlib's headers."""
    parts = (source, compiler.command[1:], compiler.path, compiler.version)
    return _hash(repr((*parts, compile_cache.cpu(), platform.machine(), version("jaxlib"))).encode())[:DIGITS]


def find(place: Path, name: str) -> Kept | None:
    """The object of a key, if it is whole; if it is not, what is there is removed."""
    facts = _read(place / f"{name}.json")
    if facts is None:
        return None
    try:
        path = place / str(facts["object"])
        kept = Kept(path, *(facts[field] for field in Kept._fields[1:]))
        whole = path.parent == place and _hash(caches.read(path)) == kept.sha256
    except (KeyError, OSError):
        whole = False
    if not whole:
        for damaged in (place / f"{name}.json", *place.glob(f"{name}-*.so")):
            damaged.unlink(missing_ok=True)
        return None
    with suppress(OSError):  # in a folder that cannot be written to
        os.utime(path)
        os.utime(place / f"{name}.json")
    return kept


def keep(draft: Path, place: Path, name: str, source: str, compiler: str, flags: str, lanes: int) -> Kept:
    """Moves an object from its draft into its place, and writes its JSON; forgets a failure, and old objects."""
    digest = _hash(caches.read(draft))
    kept = Kept(place / f"{name}-{digest[:DIGITS]}.so", digest, source, compiler, flags, lanes)
    os.replace(draft, kept.path)
    facts = {"object": kept.path.name, **{field: getattr(kept, field) for field in Kept._fields[1:]}}
    caches.write(place / f"{name}.json", (json.dumps(facts, indent=1) + "\n").encode())
    (place / f"{name}.failed").unlink(missing_ok=True)
    _tidy(place)
    return kept


def failure(place: Path, name: str) -> str:
    """Why the build of a key has failed before; "" if it has not."""
    return str((_read(place / f"{name}.failed") or {}).get("why", ""))


def note_failure(place: Path, name: str, why: str) -> None:
    """Notes that a build has failed; where that cannot be written, the next process tries again."""
    with suppress(OSError):
        caches.write(place / f"{name}.failed", json.dumps({"why": why}).encode())


def _tidy(place: Path) -> None:
    """Removes drafts of killed builds, and all but the objects that were used last."""
    now = time.time()
    newest = sorted(place.glob("*.json"), key=_used, reverse=True)
    left = {str((_read(path) or {}).get("object")) for path in newest[:MOST_OBJECTS]}
    for path in newest[MOST_OBJECTS:]:
        path.unlink(missing_ok=True)
    for path in place.glob("*.so"):  # another process may have moved its own here and not written the JSON yet
        if path.name not in left and now - _used(path) > caches.DRAFT_SECONDS:
            path.unlink(missing_ok=True)
    for draft in place.glob(f"{DRAFTS}*"):
        if now - _used(draft) > caches.DRAFT_SECONDS:
            shutil.rmtree(draft, ignore_errors=True)


def _used(path: Path) -> float:
    try:
        return path.lstat().st_mtime
    except OSError:
        return 0.0


def _read(path: Path) -> dict[str, Any] | None:
    try:
        facts = json.loads(caches.read(path))
    except (OSError, ValueError):
        return None
    return facts if isinstance(facts, dict) else None


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
