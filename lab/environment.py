"""Checks the environment: the version of Python, the packages, and the environment variables.

Importing this module ends the process with one sentence if Python is too old or a package is missing. Every folder of
commands imports it first, so it uses only the standard library, as old Pythons have it.
"""

from __future__ import annotations

from icl_lab.lab.command_end import ROOT as ROOT
from icl_lab.lab.command_end import (
    UnusableEnvironment as UnusableEnvironment,  # first: it ends a command interrupted in the others
)
from icl_lab.lab.command_end import exit_with

# isort: split
import math
import os
import re
import subprocess
import sys
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from icl_lab.lab.cpu_quota import cpu_quota
from icl_lab.lab.environment_variables import recorded, refusal, unset_empty

OLDEST_PYTHON = (3, 11)
MAKE_ENV = "`make env` makes .venv with all that is needed, and .venv/bin/python runs the commands"
# import name -> name in requirements.txt
PACKAGES = {
    "absl": "absl-py",
    "automata": "automata-lib",
    "haiku": "dm-haiku",
    "jax": "jax",
    "jaxlib": "jaxlib",
    "matplotlib": "matplotlib",
    "ml_collections": "ml_collections",
    "numpy": "numpy",
    "optax": "optax",
    "pandas": "pandas",
    "PIL": "pillow",
    "safetensors": "safetensors",
    "sklearn": "scikit-learn",
    "scipy": "scipy",
    "tqdm": "tqdm",
}
# import name -> the extra in pyproject.toml that brings it; in a checkout requirements-EXTRA.txt pins it
EXTRAS = {
    "arviz": "llc",
    "axe_playwright_python": "site",
    "blackjax": "llc",
    "equinox": "examples",
    "flax": "examples",
    "jinja2": "dev",
    "nbclient": "notebook",
    "nbformat": "notebook",
    "playwright": "site",
    "pytest": "dev",
    "ray": "ray",
    "sphinx": "site",
    "submitit": "slurm",
    "tensorboard": "tensorboard",
    "torch": "torch",
    "transformers": "torch",
    "wandb": "wandb",
    "xarray": "llc",
}
MOST_THREADS = 1024  # no machine has more, and 100 000 threads would need gigabytes before the first step


def missing_requirement(version: tuple[int, ...] = sys.version_info[:3]) -> str | None:
    """A sentence that names what this Python lacks; None if nothing is missing."""
    if version < OLDEST_PYTHON:
        return f"this is Python {'.'.join(map(str, version))}, and 3.11 or newer is needed; {MAKE_ENV}"
    for module, package in PACKAGES.items():
        if module not in sys.modules and find_spec(module) is None:
            return f"{sys.executable or 'this Python'} lacks the package {package}; {_remedy(package)}"
    return None


def _remedy(package: str) -> str:
    """How a required package is installed: in a checkout with all others, else by itself."""
    return MAKE_ENV if os.path.exists(os.path.join(ROOT, "Makefile")) else _installation(package)


def extra(module: str) -> Any:
    """Imports a module of a package that only some commands need; `UnusableEnvironment` that says how to install it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.partition(".")[0]:
            raise
        raise UnusableEnvironment(_lacking(error.name)) from None


def check_extra(package: str) -> None:
    """`UnusableEnvironment` as of `extra`, without importing the package."""
    if find_spec(package) is None:
        raise UnusableEnvironment(_lacking(package))


def _lacking(package: str) -> str:
    if package not in EXTRAS:  # one that only the library uses, of whatever version the user has
        name = PACKAGES.get(package, package)
        return f"{sys.executable or 'python'} lacks the package {name}; {_installation(name)}"
    pinned = f"requirements-{EXTRAS[package]}.txt"
    what = f"-r {pinned}" if os.path.exists(os.path.join(ROOT, pinned)) else f"'icl-lab[{EXTRAS[package]}]'"
    return f"{sys.executable or 'python'} lacks the package {package}; {_installation(what)}"


def _installation(what: str) -> str:
    return f"install it with `{sys.executable or 'python'} -m pip install {what}`"


def processors() -> int:
    """The number of processors available to this process: by its affinity, and by a container's quota, rounded up."""
    quota = cpu_quota()
    return len(cores()) if quota is None else min(len(cores()), max(math.ceil(quota), 1))


def cores() -> list[int]:
    """The cores this process may run on; all cores if the system does not say."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def num_threads() -> int:
    """Threads of the CPU backend: `NPROC` if set, else the number of processors available to this process.

    Results depend on this number to the bit, so an invalid one is `UnusableEnvironment`, never replaced.
    """
    text = os.environ.get("NPROC") or str(processors())
    if not (text.isascii() and text.isdecimal() and len(text) < 10 and 1 <= int(text) <= MOST_THREADS):
        problem = f"NPROC is {text!r}" if threads_are_set() else f"there are {text} processors here, and NPROC is unset"
        raise UnusableEnvironment(f"{problem}; it must be a whole number of threads from 1 to {MOST_THREADS}")
    return int(text)


def threads_are_set() -> bool:
    """Whether the user chose the number of threads."""
    return bool(os.environ.get("NPROC"))


def fix_threads() -> None:
    """Makes JAX, which has not started, take `num_threads` where a quota limits them: it knows affinities alone."""
    if num_threads() < len(cores()):
        os.environ["NPROC"] = str(num_threads())


def jax_has_started() -> bool:
    """Whether JAX has its devices; from then on NPROC has no effect.

    Importing JAX does not count: it reads NPROC when it first needs a device.
    """
    bridge = sys.modules.get("jax._src.xla_bridge")
    return bridge is not None and bool(bridge.backends_are_initialized())


def check_matplotlib_backend() -> None:
    """`UnusableEnvironment` if Matplotlib does not know `MPLBACKEND`, which otherwise shows after minutes of training.

    A notebook's backend, which child processes inherit, is replaced by agg.
    """
    backend = os.environ.get("MPLBACKEND", "")
    if backend.startswith("module://"):
        os.environ["MPLBACKEND"] = "agg"
    elif backend:
        try:
            import matplotlib  # noqa: F401
        except ValueError:
            problem = f"MPLBACKEND is {backend!r}, which Matplotlib does not know"
            raise UnusableEnvironment(f"{problem}; unset it, or set MPLBACKEND=agg") from None


def check_variables() -> None:
    """`UnusableEnvironment` if an environment variable would change results unseen, or end the process without a word.

    The values that each may have are in `lab.environment_variables`. An empty one counts as unset.
    """
    if sys.flags.optimize > 1:
        problem = "Python is set to strip docstrings (-OO or PYTHONOPTIMIZE=2), which some packages read"
        raise UnusableEnvironment(f"{problem}; leave that out, or set PYTHONOPTIMIZE=1")
    unset_empty()
    sentence = refusal()
    if sentence:
        raise UnusableEnvironment(sentence)
    flags = recorded()["XLA_FLAGS"]
    if flags and not jax_has_started():
        problem = _xla_refuses(flags)
        if problem:
            raise UnusableEnvironment(f"XLA_FLAGS is {flags!r}, which XLA refuses: {problem}")


@lru_cache
def _xla_refuses(flags: str) -> str:
    """What XLA says of these flags, "" if it takes them. It aborts its process where it does not, so it has its own."""
    script = (
        "import resource; resource.setrlimit(resource.RLIMIT_CORE, (0, 0)); "
        "from jaxlib.xla_client import CompileOptions; CompileOptions().executable_build_options.debug_options"
    )
    tried = _tried(script)
    said = re.search(r"^[EF]\d{4} .*?\] (.*?)( \(.*)?$", tried.stderr, re.M)
    return "" if tried.returncode == 0 else said[1] if said else "it ends the process"


def _tried(script: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-c", script]
    return subprocess.run(line, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False)


def check_devices() -> None:
    """`UnusableEnvironment` if JAX cannot start the platforms in `JAX_PLATFORMS`, or under the environment's variables.

    Tried in a separate process: this one may still have to set the number of threads, or to leave the GPU to others.
    """
    check_variables()
    asked = os.environ.get("JAX_PLATFORMS", "")
    if asked in ("", "cpu") or jax_has_started():
        return
    tried = _tried("import jax; jax.devices()")
    if tried.returncode:
        reason = "".join(tried.stderr.strip().splitlines()[-1:]).partition(": ")[2]  # after the exception's name
        reason = reason.partition(" (set JAX_PLATFORMS=")[0]  # without JAX's own advice
        problem = f"JAX_PLATFORMS is {asked!r}, and JAX cannot start that here{f' ({reason})' if reason else ''}"
        raise UnusableEnvironment(f"{problem}; unset it, or set JAX_PLATFORMS=cpu")


def _exit_if_incomplete() -> None:
    sentence = missing_requirement()
    if sentence:
        exit_with(sentence)


_exit_if_incomplete()
