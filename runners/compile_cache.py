"""Caches compiled programs between processes, in a folder that only the user can write to, since they are executed.

A program is compiled for one CPU, and may crash on another, and for one number of threads, among which XLA:CPU divides
the work. JAX's cache key covers neither, so each combination has its own folder.
"""

from __future__ import annotations

import hashlib
import os
import platform
import stat
from importlib.metadata import version
from pathlib import Path

from environment import num_threads
from store.readers import StoreError

CPUINFO = Path("/proc/cpuinfo")
CPU_FIELDS = ("vendor_id", "cpu family", "model", "model name", "stepping", "flags", "Features", "CPU")  # x86 and ARM


def enable(folder: Path | None = None) -> Path:
    """Makes JAX cache compiled programs in a subfolder of `folder` (default: `default_folder()`), and returns that.

    Must be called before the first compilation, and after the number of threads is fixed.
    """
    import jax

    cache = subfolder(folder or default_folder())
    jax.config.update("jax_compilation_cache_dir", str(cache))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    return cache


def subfolder(folder: Path) -> Path:
    """The subfolder for the programs of this process; `StoreError` unless only the user can write to it."""
    return private_folder(folder / key())


def default_folder() -> Path:
    """`icl-lab` in the user's cache folder ($XDG_CACHE_HOME if that is an absolute path, else ~/.cache)."""
    chosen = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return private_folder((chosen if chosen.is_absolute() else _home() / ".cache") / "icl-lab")


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError:
        raise StoreError("there is no home folder for compiled programs; set XDG_CACHE_HOME to a folder") from None


def private_folder(folder: Path) -> Path:
    """Creates the folder if needed; `StoreError` unless it belongs to the user with mode 700."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    info = folder.lstat()
    if not stat.S_ISDIR(info.st_mode):
        raise StoreError(
            f"{folder} is a link, not a folder; compiled programs are executed, so they need a real folder"
        )
    if info.st_uid != os.getuid():
        raise StoreError(f"{folder} belongs to another user; set XDG_CACHE_HOME to a folder of your own")
    if stat.S_IMODE(info.st_mode) != 0o700:
        raise StoreError(f"{folder} is open to other users; check its contents, then `chmod 700 {folder}`")
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
