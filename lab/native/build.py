"""Builds the native kernel's object where it runs, and finds it again.

It is compiled under a temporary name, checked by a child process, and then moved to its place. What goes wrong is a
sentence and never an error: every training has XLA's programs too.
"""

from __future__ import annotations

import errno
import os
import sys
import tempfile
from contextlib import suppress
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from icl_lab.lab import caches
from icl_lab.lab.native import kept
from icl_lab.lab.native.compilers import FULL, Compiler, TooLong, Until, compilers, finished, probed
from icl_lab.lab.native.kept import Kept
from icl_lab.lab.native.kernel import Kernel
from icl_lab.src.namespace import FOLDER
from icl_lab.src.words import printable

SOURCE = Path(__file__).resolve().parent.parent.parent / "src" / "native"
INSTALL = "install g++ (Debian, Ubuntu: apt install g++; macOS: xcode-select --install)"
RETRY = "python -m scripts.build_native tries again"
LANES = "import ctypes, sys; print(ctypes.CDLL(sys.argv[1]).icl_lanes())"


class Recipe(NamedTuple):
    """What is compiled, and how the object is checked: a command that gets its path.

    seconds: for all compilers and checks together. The kernel takes four of a processor that does nothing else.
    """

    source: Path = SOURCE
    main: str = "native.cpp"
    check: tuple[str, ...] = (sys.executable, "-m", "icl_lab.runners.check_native")
    seconds: float = 60.0


class Failed(Exception):
    """A build has failed; the message says why."""


RECIPE = Recipe()


@lru_cache
def native_kernel() -> Kernel:
    """What `found_or_built` gives; it is chosen once in a process."""
    return found_or_built()


def found_or_built(recipe: Recipe = RECIPE, retry: bool = False) -> Kernel:
    """The kernel's object of this machine, built if it is not there; XLA, with the reason, where it cannot be.

    A build that has failed is not tried again with the same compiler, source and folder, unless `retry`.
    """
    try:
        place = kept.folder()
        if os.statvfs(place).f_flag & getattr(os, "ST_NOEXEC", 0):
            return Kernel(why=f"{_shown(place)} is mounted noexec; set XDG_CACHE_HOME to another folder")
        return _in(place, recipe, retry)
    except caches.UnsafeFolder as error:
        return Kernel(why=printable(str(error)))
    except OSError as error:
        named = f"{_shown(Path(str(error.filename)))}: " if error.filename else ""
        return Kernel(why=f"{named}{error.strerror or error}; set XDG_CACHE_HOME to a folder with space to write in")


def of_this_machine(kernel: Kernel) -> Kernel:
    """A kernel that another process has chosen, if its object is here and whole; else this machine's own.

    A node of a cluster may have another processor.
    """
    with suppress(OSError, caches.UnsafeFolder):
        place = kept.folder()
        found = kept.find(place, kernel.tag)
        if found is not None and found.path == kernel.path:
            return kernel
    return found_or_built()._replace(asked=kernel.asked)


def _in(place: Path, recipe: Recipe, retry: bool) -> Kernel:
    source, reasons = kept.source_hash(recipe.source), []
    until = Until(recipe.seconds)
    for compiler in compilers():
        tag = kept.key(source, compiler)
        found = kept.find(place, tag)
        if found is None:
            why = "" if retry else kept.failure(place, tag)
            try:
                found = None if why else _build(recipe, place, tag, source, compiler, until)
            except (Failed, TooLong) as error:
                if FULL in str(error):
                    raise OSError(errno.ENOSPC, FULL, str(place)) from None
                why = printable(f"{compiler.command[0]} ({compiler.version}) builds no native kernel: {error}")
                kept.note_failure(place, tag, why)
            reasons.append(why)
        if found is not None:
            return Kernel(found.path, tag, found.described)
    return Kernel(why=f"{reasons[0]}; {INSTALL} or set CXX; {RETRY}" if reasons else f"no C++ compiler; {INSTALL}")


def _build(recipe: Recipe, place: Path, tag: str, source: str, compiler: Compiler, until: Until) -> Kept:
    """Compiles and checks with the first set of flags whose object computes what it should; `Failed` if none does."""
    reasons, refusals = list[str](), list[str]()
    with tempfile.TemporaryDirectory(dir=place, prefix=kept.DRAFTS) as made:  # with mode 700
        folder = Path(made)
        for flags, reason in probed(compiler, folder, until):
            if reason:
                refusals.append(reason)
                continue
            draft = folder / "native.so"
            line = [*compiler.command, *flags, "-isystem", _headers(), str(recipe.source / recipe.main), "-o"]
            reason = finished([*line, str(draft)], until, folder).reason
            if not reason:
                reason, lanes = _checked(recipe, draft, folder, until)
                if not reason:
                    return kept.keep(draft, place, tag, source, compiler.version, " ".join(flags), lanes)
            reasons.append(reason)
    raise Failed([*reasons, *reversed(refusals)][0])


def _checked(recipe: Recipe, draft: Path, folder: Path, until: Until) -> tuple[str, int]:
    """Why an object cannot be used, "" if it can; and its lanes. A child loads it, which a bad one would kill."""
    path = os.pathsep.join(filter(None, [FOLDER, os.environ.get("PYTHONPATH", "")]))
    variables = {"PYTHONPATH": path, "JAX_PLATFORMS": "cpu", "NPROC": "1", "XLA_FLAGS": ""}
    check = finished([*recipe.check, str(draft)], until, folder, **variables)
    if check.reason:
        return f"its check fails: {check.reason}", 0
    said = finished([sys.executable, "-I", "-S", "-c", LANES, str(draft)], until, folder)
    if said.reason or not said.out.strip().isdecimal():
        return f"its lanes are not known: {said.reason or said.out}", 0
    return "", int(said.out)


def _headers() -> str:
    """The folder of jaxlib's headers, as `jax.ffi.include_dir` gives it, without importing JAX."""
    spec = find_spec("jaxlib")
    if spec is None or not spec.submodule_search_locations:
        raise Failed("jaxlib has no folder")
    return os.path.join(spec.submodule_search_locations[0], "include")


def _shown(path: Path) -> str:
    return str(printable(path))
