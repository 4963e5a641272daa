"""A compiled object of this folder's C++, opened, with its functions known to XLA."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
from typing import NamedTuple

import jax

FUNCTIONS = ("icl_stack", "icl_bits", "icl_units")


class Library(NamedTuple):
    """What XLA calls: `tag` ends the functions' names, `lanes` are the tasks of a block."""

    tag: str
    lanes: int

    def named(self, function: str) -> str:
        """The name of a function as XLA knows it."""
        return f"{function}_{self.tag}"


@cache
def open_library(path: Path, tag: str) -> Library:
    """Opens an object and makes its functions known, once in a process; `OSError` for one that cannot be opened.

    tag: a hash of all that the object depends on. A stored program calls what is known under the name it was compiled
    with, so no two objects may share one.
    """
    opened = ctypes.CDLL(str(path.absolute()))  # of a bare name the loader would search its own folders
    library = Library(tag, int(opened.icl_lanes()))
    for function in FUNCTIONS:
        capsule = jax.ffi.pycapsule(getattr(opened, function))
        jax.ffi.register_ffi_target(library.named(function), capsule, platform="cpu")
    return library
