"""What a process needs around it: Python and the packages, and environment variables that say something usable.

Importing this module ends a process whose Python is too old or lacks a package, with one sentence; every folder of
commands imports it first. So it uses nothing but the standard library, as old Pythons have it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec

OLDEST = (3, 11)
MAKE_ENV = "`make env` makes .venv with all that is needed, and .venv/bin/python runs the commands"
# package as it is imported -> as requirements.txt names it
PACKAGES = {
    "absl": "absl-py",
    "haiku": "dm-haiku",
    "jax": "jax",
    "jaxlib": "jaxlib",
    "matplotlib": "matplotlib",
    "ml_collections": "ml_collections",
    "numpy": "numpy",
    "optax": "optax",
    "pandas": "pandas",
    "safetensors": "safetensors",
    "sklearn": "scikit-learn",
    "scipy": "scipy",
    "tqdm": "tqdm",
}
MOST_THREADS = 1024  # more are no machine's, and a hundred thousand need gigabytes before the first step


class UnusableEnvironment(Exception):
    """An environment that nothing can run in as it is; the message is one sentence for the user."""


def missing_requirement(version: tuple[int, ...] = sys.version_info[:3]) -> str | None:
    """A sentence on what this Python lacks; None if it lacks nothing."""
    if version < OLDEST:
        return f"this is Python {'.'.join(map(str, version))}, and 3.11 or newer is needed; {MAKE_ENV}"
    for module, package in PACKAGES.items():
        if module not in sys.modules and find_spec(module) is None:
            return f"{sys.executable or 'this Python'} lacks the package {package}; {MAKE_ENV}"
    return None


def num_threads() -> int:
    """Threads that the CPU backend uses: `NPROC` if set, else the processors this process may run on.

    Results depend on this number to the bit, so one that cannot be had is `UnusableEnvironment`, never another one.
    """
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    text = os.environ.get("NPROC") or str(affinity)
    if not (text.isascii() and text.isdecimal() and len(text) < 10 and 1 <= int(text) <= MOST_THREADS):
        said = (
            f"NPROC is {text!r}" if threads_are_set() else f"there are {affinity} processors here, and NPROC is unset"
        )
        raise UnusableEnvironment(f"{said}; it must be a whole number of threads from 1 to {MOST_THREADS}")
    return int(text)


def threads_are_set() -> bool:
    """Whether the user chose the number of threads."""
    return bool(os.environ.get("NPROC"))


def jax_has_started() -> bool:
    """Whether JAX has its devices, and with them its number of threads: from then on NPROC changes nothing.

    That JAX is imported, as by a plugin, is not enough: it reads NPROC when it first needs a device.
    """
    bridge = sys.modules.get("jax._src.xla_bridge")
    return bridge is not None and bool(bridge.backends_are_initialized())


def check_matplotlib_backend() -> None:
    """`UnusableEnvironment` if Matplotlib does not know `MPLBACKEND`: it would refuse after minutes of training.

    A notebook's, which the processes it starts inherit, may be unknown to this environment; files need none.
    """
    backend = os.environ.get("MPLBACKEND", "")
    if backend.startswith("module://"):
        os.environ["MPLBACKEND"] = "agg"
    elif backend:
        try:
            import matplotlib  # noqa: F401
        except ValueError:
            said = f"MPLBACKEND is {backend!r}, which Matplotlib does not know"
            raise UnusableEnvironment(f"{said}; unset it, or set MPLBACKEND=agg") from None


def check_devices() -> None:
    """`UnusableEnvironment` if JAX cannot start what `JAX_PLATFORMS` asks for.

    A process of its own tries it: this one may have to settle the number of threads first, or leave a GPU to others.
    """
    asked = os.environ.get("JAX_PLATFORMS", "")
    if asked in ("", "cpu") or jax_has_started():
        return
    line = [sys.executable, "-c", "import jax; jax.devices()"]
    tried = subprocess.run(
        line, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False
    )
    if tried.returncode:
        reason = "".join(tried.stderr.strip().splitlines()[-1:]).partition(": ")[2]  # behind the exception's name
        reason = reason.partition(" (set JAX_PLATFORMS=")[0]  # its own advice
        said = f"JAX_PLATFORMS is {asked!r}, and JAX cannot start that here{f' ({reason})' if reason else ''}"
        raise UnusableEnvironment(f"{said}; unset it, or set JAX_PLATFORMS=cpu")


def _refuse() -> None:
    sentence = missing_requirement()
    if sentence:
        sys.stderr.write(f"error: {sentence}\n")
        sys.exit(2)


_refuse()
