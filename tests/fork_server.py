"""Runs commands in forks of one process, which has imported what they would: importing is most of what many cost.

A fork is a process of its own: its status, its output and its end are those of `python -m` with the same words. What
depends on when a module is imported, or with which environment, is for a process that Python has started.
"""

import gc
import importlib
import json
import os
import runpy
import sys
import warnings
from pathlib import Path

from icl_lab.lab import environment

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("src", "lab", "store", "baselines", "plots", "families", "analysis", "runners", "sweeps")
PACKAGES = ("jax", "haiku", "optax", "pandas", "scipy.stats", "matplotlib.backends.backend_agg", "matplotlib.figure")


def import_library() -> None:
    """Imports all modules but commands, which Python imports again under another name when it runs them."""
    for name in PACKAGES:
        importlib.import_module(name)
    for path in sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py")):
        if '__name__ == "__main__"' not in path.read_text():
            parts = path.relative_to(ROOT).with_suffix("").parts
            importlib.import_module(".".join(("icl_lab", *parts)).removesuffix(".__init__"))


def asked_for() -> list[str]:
    """Forks for each line of standard input, and answers with the exit status; returns a module's words in the fork."""
    lines, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    for line in lines:
        with warnings.catch_warnings(action="ignore"):  # of threads, which are OpenBLAS's: a fork starts its own
            fork = os.fork()
        if fork == 0:
            lines.close()
            answers.close()
            return become(**json.loads(line))
        print(os.waitstatus_to_exitcode(os.waitpid(fork, 0)[1]), file=answers, flush=True)
    os._exit(0)


def become(words: list[str], variables: dict[str, str], out: str, err: str) -> list[str]:
    """Takes another process's variables and files of output; its words."""
    for number, path in enumerate((os.devnull, out, err)):
        file = os.open(path, os.O_WRONLY if number else os.O_RDONLY)
        os.dup2(file, number)
        os.close(file)
    os.environ.clear()
    os.environ.update(variables)
    return words


if __name__ == "__main__":
    import_library()
    environment.check_variables()  # which remembers that XLA takes these flags
    assert not environment.jax_has_started(), "an import starts JAX, whose threads a fork lacks"
    gc.collect()
    gc.freeze()
    module, *rest = asked_for()
    sys.argv, sys.orig_argv = ["-m", *rest], [sys.executable, "-m", module, *rest]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
