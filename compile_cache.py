"""Keeps compiled programs for later processes, in a folder that only the user can write to, since they are executed.

A program is compiled for one CPU, and may crash on another, and for one number of threads, among which XLA:CPU divides
the work. JAX's cache key covers neither, so each combination has its own folder. All together they have at most
`MOST_BYTES`: the least recently used are deleted. JAX's own variables take precedence: JAX_COMPILATION_CACHE_DIR names
another folder, JAX_ENABLE_COMPILATION_CACHE=false keeps nothing.
"""

from __future__ import annotations

import glob
import hashlib
import os
import platform
import re
import stat
import sys
import warnings
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from cli import printable
from environment import fix_threads, num_threads

MOST_BYTES = 2**29
UNREADABLE = re.compile("Error reading persistent compilation cache entry for '(.*?)'")  # JAX's warnings
UNWRITTEN = "Error writing persistent compilation cache entry"
CPUINFO = Path("/proc/cpuinfo")
CPU_FIELDS = ("vendor_id", "cpu family", "model", "model name", "stepping", "flags", "Features", "CPU")  # x86 and ARM


class UnsafeFolder(Exception):
    """Programs cannot be kept there; the message is one sentence."""


@cache  # the tasks of a worker all ask
def enable() -> None:
    """Makes JAX keep compiled programs, unless its own variables say where or not to.

    Must be called before the first compilation, and after the number of threads is fixed. Where they cannot be kept,
    a line on standard error says why.
    """
    import jax

    fix_threads()
    config: Any = jax.config  # whose values have no types
    if config.jax_compilation_cache_dir or not config.jax_enable_compilation_cache:
        return
    try:
        keep_in(default_folder())
    except (UnsafeFolder, OSError) as error:
        print(f"compiled programs are not kept: {printable(str(error))}", file=sys.stderr)


def keep_in(folder: Path) -> Path:
    """Makes JAX keep compiled programs in a subfolder of `folder`, and returns that; `UnsafeFolder` if that is open."""
    import jax

    programs = private_folder(folder / key())
    discard_oldest(folder, MOST_BYTES)
    jax.config.update("jax_compilation_cache_dir", str(programs))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    _replace_unreadable(programs)
    return programs


def _replace_unreadable(programs: Path) -> None:
    """From now on a program that cannot be read is deleted, so that it is kept anew.

    A kill or a full disk cuts a file short. JAX warns, compiles the program, and leaves the file as it is. Warnings
    of failed writes are hidden: results do not need the cache, and a full disk is reported where they are written.
    """
    shown = warnings.showwarning

    def show(message: Warning | str, *where: Any, **more: Any) -> None:
        unreadable = UNREADABLE.match(str(message))
        if unreadable is None:
            shown(message, *where, **more)
            return
        for path in programs.glob(f"{glob.escape(unreadable[1])}-*-cache"):
            path.unlink(missing_ok=True)

    warnings.showwarning = show
    warnings.filterwarnings("always", message=UNREADABLE.pattern)
    warnings.filterwarnings("ignore", message=UNWRITTEN)


def discard_oldest(folder: Path, most_bytes: int) -> None:
    """Deletes programs in the subfolders of `folder`, those used longest ago first, until so many bytes are left."""
    kept = []
    for path in folder.glob("jaxlib-*/*-cache"):
        with suppress(FileNotFoundError):  # another process discards too
            info = path.stat()
            kept.append((max(info.st_mtime_ns, info.st_atime_ns), info.st_size, path))
    left = sum(size for _, size, _ in kept)
    for _, size, path in sorted(kept):
        if left <= most_bytes:
            return
        path.unlink(missing_ok=True)
        left -= size


def default_folder() -> Path:
    """`icl-lab` in the user's cache folder ($XDG_CACHE_HOME if that is an absolute path, else ~/.cache)."""
    chosen = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return private_folder((chosen if chosen.is_absolute() else _home() / ".cache") / "icl-lab")


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError:
        raise UnsafeFolder("there is no home folder for compiled programs; set XDG_CACHE_HOME to a folder") from None


def private_folder(folder: Path) -> Path:
    """Creates the folder if needed; `UnsafeFolder` unless it belongs to the user with mode 700."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    info = folder.lstat()
    if not stat.S_ISDIR(info.st_mode):
        raise UnsafeFolder(
            f"{folder} is a link, not a folder; compiled programs are executed, so they need a real folder"
        )
    if info.st_uid != os.getuid():
        raise UnsafeFolder(f"{folder} belongs to another user; set XDG_CACHE_HOME to a folder of your own")
    if stat.S_IMODE(info.st_mode) != 0o700:
        raise UnsafeFolder(f"{folder} is open to other users; check its contents, then `chmod 700 {folder}`")
    return folder


def key() -> str:
    """The subfolder's name, from jaxlib, machine, number of threads and CPU."""
    cpu = hashlib.sha256(_cpu().encode()).hexdigest()[:12]
    return f"jaxlib-{version('jaxlib')}-{platform.machine()}-{num_threads()}-threads-{cpu}"


def _cpu() -> str:
    """The CPU's model and features as the kernel lists them for the first core, else its name."""
    if not CPUINFO.exists():
        return platform.processor()
    first = CPUINFO.read_text().partition("\n\n")[0].splitlines()
    return "\n".join(line for line in first if line.startswith(CPU_FIELDS))
