"""Python in processes of their own: started by the system, or forked where nothing can tell the difference."""

import atexit
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
IN_A_FORK = {"NPROC", "XLA_FLAGS"}  # variables that are read when a command starts JAX
FIXED = {"PYTHONWARNINGS": "error"}

Done = subprocess.CompletedProcess[str]


def python(*words: object, **environment: str) -> Done:
    """Python in a process of its own, from the root, with warnings as errors; NPROC is unset unless given."""
    line = [sys.executable, *map(str, words)]
    own = inherited() | environment
    return subprocess.run(line, cwd=ROOT, env=own, capture_output=True, text=True, timeout=600)


def command(module: str, *words: object, **environment: str) -> Done:
    """`python -m MODULE ...` as of `python`, in a fork of a process that has imported the library, where that is it."""
    if not environment.keys() <= IN_A_FORK:
        return python("-m", module, *words, **environment)
    return _forks().run([module, *map(str, words)], inherited() | environment)


def inherited() -> dict[str, str]:
    """The variables of processes that tests start."""
    return {name: value for name, value in os.environ.items() if name != "NPROC"} | FIXED


class _Forks:
    """A process that `fork_server` runs in; it ends with this one, which closes its standard input."""

    def __init__(self) -> None:
        line = [sys.executable, "-m", "tests.fork_server"]
        pipe = subprocess.PIPE
        self.server = subprocess.Popen(line, cwd=ROOT, env=inherited(), stdin=pipe, stdout=pipe, text=True)
        atexit.register(self.server.communicate)

    def run(self, words: list[str], environment: Mapping[str, str]) -> Done:
        """A command from its words."""
        asks, answers = self.server.stdin, self.server.stdout
        assert asks is not None
        assert answers is not None
        with tempfile.TemporaryDirectory() as folder:
            out, err = Path(folder, "out"), Path(folder, "err")
            out.touch()
            err.touch()
            asked = {"words": words, "variables": dict(environment), "out": str(out), "err": str(err)}
            print(json.dumps(asked), file=asks, flush=True)
            status = int(answers.readline())
            return subprocess.CompletedProcess(["-m", *words], status, out.read_text(), err.read_text())


@cache
def _forks() -> _Forks:
    return _Forks()
