"""Compiled programs kept between processes, in a folder nobody else can write to: they are run as they are found.

A program is compiled for one CPU, and may crash on another, and for one number of threads, among which XLA:CPU divides
the work. JAX's own key covers the program, its versions and the compiler's options but neither of these, so each
combination has a folder of its own.
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
    """Makes JAX keep what it compiles in a part of `folder` (`default_folder()`) and look there first; gives the part.

    To be called before the first program is compiled, and after the number of threads is settled.
    """
    import jax

    kept = part(folder or default_folder())
    jax.config.update("jax_compilation_cache_dir", str(kept))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    return kept


def part(folder: Path) -> Path:
    """The part of a folder for the programs of this process; `StoreError` unless it is this user's alone."""
    return private_folder(folder / key())


def default_folder() -> Path:
    """`icl-lab` in the user's cache folder ($XDG_CACHE_HOME if that is an absolute path, else ~/.cache)."""
    given = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return private_folder((given if given.is_absolute() else _home() / ".cache") / "icl-lab")


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError:
        raise StoreError(
            "there is no home folder to keep compiled programs in; set XDG_CACHE_HOME to a folder"
        ) from None


def private_folder(folder: Path) -> Path:
    """The folder, made if there is none; `StoreError` unless it is this user's alone."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode):
        raise StoreError(f"{folder} is a link, not a folder; compiled programs are run, so they need one of their own")
    if found.st_uid != os.getuid():
        raise StoreError(f"{folder} belongs to another user; set XDG_CACHE_HOME to a folder of your own")
    if stat.S_IMODE(found.st_mode) != 0o700:
        raise StoreError(f"{folder} is open to other users; `chmod 700 {folder}` after a look at what is in it")
    return folder


def key() -> str:
    """The name of the part for this jaxlib, machine, number of threads and CPU."""
    cpu = hashlib.sha256(_cpu().encode()).hexdigest()[:12]
    return f"jaxlib-{version('jaxlib')}-{platform.machine()}-{num_threads()}-threads-{cpu}"


def _cpu() -> str:
    """The CPU's model and features, as the kernel lists them for the first core; where it does not, its name."""
    if not CPUINFO.exists():
        return platform.processor()
    first = CPUINFO.read_text().partition("\n\n")[0].splitlines()
    return "\n".join(line for line in first if line.startswith(CPU_FIELDS))
