"""Keeps arrays that take seconds to make between processes, by a hash of all that they depend on.

In `icl-lab-languages` of the user's cache folder. The hash covers the sources of this folder, so no change of it finds
what an earlier version made. A file that is missing, damaged or cannot be written costs the time to make it again:
each begins with a hash of the rest.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

Arrays = Mapping[str, np.ndarray]
DIGITS, HASH_BYTES = 32, 32


def cached(depends_on: str, make: Callable[[], Arrays]) -> Arrays:
    """The arrays that `make` gives, read from the cache where they are there."""
    name = f"{_key(depends_on)}.arrays"
    with contextlib.suppress(OSError, RuntimeError, ValueError):  # RuntimeError where there is no home folder
        return _read(_folder() / name)
    arrays = make()
    with contextlib.suppress(OSError, RuntimeError):
        _write(_folder() / name, arrays)
    return arrays


def _read(path: Path) -> Arrays:
    content = path.read_bytes()
    if content[:HASH_BYTES] != _hash(content[HASH_BYTES:]):
        raise ValueError("it is damaged")
    with np.load(io.BytesIO(content[HASH_BYTES:])) as stored:
        return {name: stored[name] for name in stored.files}


def _write(path: Path, arrays: Arrays) -> None:
    packed = io.BytesIO()
    np.savez(packed, allow_pickle=False, **arrays)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".tmp", delete=False) as file:
        draft = Path(file.name)
        try:
            file.write(_hash(packed.getvalue()) + packed.getvalue())
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
    os.replace(draft, path)


def _hash(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()


def _folder() -> Path:
    chosen = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (chosen if chosen.is_absolute() else Path("~/.cache").expanduser()) / "icl-lab-languages"


def _key(depends_on: str) -> str:
    return hashlib.sha256(f"{_sources()} {depends_on}".encode()).hexdigest()[:DIGITS]


@cache
def _sources() -> str:
    """A hash of the sources here, with the versions of what they use."""
    content = b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))
    return f"{hashlib.sha256(content).hexdigest()} numpy {np.__version__} automata-lib {_version('automata-lib')}"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
