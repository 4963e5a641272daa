"""Keeps compiled programs for later processes, in a folder that only the user can write to, since they are executed.

A program is compiled for one CPU, and may crash on another, and for one number of threads, among which XLA:CPU divides
the work. JAX's cache key covers neither, so each combination has its own folder. `lab.caches` says what may lie there,
and how much. JAX's own variables take precedence: JAX_COMPILATION_CACHE_DIR names another folder,
JAX_ENABLE_COMPILATION_CACHE=false keeps nothing.
"""

from __future__ import annotations

import glob
import hashlib
import platform
import re
import warnings
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from icl_lab.lab import caches
from icl_lab.lab.environment import fix_threads, num_threads

PROGRAMS = "jaxlib-*/*-cache"  # JAX's names, in the folders of `key`
NATIVE = "native-*/*"  # of `lab.native`, which count too
UNREADABLE = re.compile("Error reading persistent compilation cache entry for '(.*?)'")  # JAX's warnings
UNWRITTEN = "Error writing persistent compilation cache entry"
CPUINFO = Path("/proc/cpuinfo")
CPU_FIELDS = ("vendor_id", "cpu family", "model", "model name", "stepping", "flags", "Features", "CPU")  # x86 and ARM


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
    except (caches.UnsafeFolder, OSError) as error:
        caches.print_why("compiled programs", str(error))


def keep_in(folder: Path) -> Path:
    """Makes JAX keep compiled programs in a subfolder of `folder`, and returns that; `UnsafeFolder` if that is open."""
    import jax

    programs = caches.private_folder(folder / key())
    caches.tidy(folder, PROGRAMS, counted=NATIVE)
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


def default_folder() -> Path:
    """`icl-lab` in the user's cache folder."""
    return caches.user_folder("icl-lab")


def key() -> str:
    """The subfolder's name, from jaxlib, machine, number of threads and CPU."""
    of_cpu = hashlib.sha256(cpu().encode()).hexdigest()[:12]
    return f"jaxlib-{version('jaxlib')}-{platform.machine()}-{num_threads()}-threads-{of_cpu}"


def cpu() -> str:
    """The CPU's model and features as the kernel lists them for the first core, else its name."""
    if not CPUINFO.exists():
        return platform.processor()
    first = CPUINFO.read_text().partition("\n\n")[0].splitlines()
    return "\n".join(line for line in first if line.startswith(CPU_FIELDS))
