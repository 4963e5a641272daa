"""Keeps arrays that take seconds to make between processes, by a hash of all that they depend on.

In `icl-lab-FAMILY` of the user's cache folder, with the care of `lab.caches`. The hash covers the sources of the
family, so no change of them finds what an earlier version made. A file that is missing, damaged or odd, or that cannot
be kept, costs the time to make it again: each begins with a hash of the rest.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TypeVar

import numpy as np

from icl_lab.lab import caches

T = TypeVar("T")
Arrays = Mapping[str, np.ndarray]
FOLDER, SUFFIX = "icl-lab-", ".arrays"
DIGITS, HASH_BYTES = 32, 32


def cached(
    family: str, depends_on: str, make: Callable[[], T], write: Callable[[T], Arrays], read: Callable[[Arrays], T]
) -> T:
    """What `make` gives; kept as the arrays that `write` makes of it, of which `read` makes it again.

    `read` raises for arrays that `write` does not give. Where nothing can be kept, a line on standard error says why.
    """
    try:
        path = caches.user_folder(f"{FOLDER}{family}") / f"{_key(family, depends_on)}{SUFFIX}"
    except (caches.UnsafeFolder, OSError) as error:
        caches.print_why(f"arrays of {family}", str(error))
        return make()
    with suppress(Exception):  # whatever is wrong with it, it is made again
        return read(_unpacked(caches.read(path)))
    made = make()
    try:
        caches.write(path, _packed(write(made)))
        caches.tidy(path.parent, f"*{SUFFIX}")
    except OSError as error:
        caches.print_why(f"arrays of {family}", str(error))
    return made


def _unpacked(content: bytes) -> Arrays:
    if content[:HASH_BYTES] != _hash(content[HASH_BYTES:]):
        raise ValueError("it is damaged")
    packed = io.BytesIO(content[HASH_BYTES:])
    with zipfile.ZipFile(packed) as parts:
        if any(part.compress_type != zipfile.ZIP_STORED for part in parts.infolist()):
            raise ValueError("it would be larger in memory than on disk")
    with np.load(packed) as stored:
        return {name: stored[name] for name in stored.files}


def _packed(arrays: Arrays) -> bytes:
    packed = io.BytesIO()
    np.savez(packed, allow_pickle=False, **arrays)
    return _hash(packed.getvalue()) + packed.getvalue()


def _hash(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()


def _key(family: str, depends_on: str) -> str:
    return hashlib.sha256(f"{_sources(family)} {depends_on}".encode()).hexdigest()[:DIGITS]


@cache
def _sources(family: str) -> str:
    """A hash of a family's sources, with the versions of what they use."""
    content = b"".join(path.read_bytes() for path in sorted((Path(__file__).parent / family).glob("*.py")))
    return f"{hashlib.sha256(content).hexdigest()} numpy {np.__version__} automata-lib {_version('automata-lib')}"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
