"""The C++ compilers of this machine, and the flags that they take. No flag lets a compiler assume finite numbers."""

from __future__ import annotations

import errno
import os
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

NAMES = ("c++", "g++", "clang++")
FLAGS = ("-O3", "-std=c++17", "-fPIC", "-shared", "-fno-math-errno", "-ffp-contract=fast")
OF_CPU = (("-march=native",), ("-mcpu=native",), ())  # tried in this order; Arm's compilers differ in what they take
OF_GCC = ("-fno-ivopts",)  # its inner loops are a third faster without these; clang's need nothing
VERSION_SECONDS = 10.0
FULL = os.strerror(errno.ENOSPC)  # as compilers say it


class Compiler(NamedTuple):
    """command: how it is called. path: the file, links followed. version: the first line of --version."""

    command: tuple[str, ...]
    path: str
    version: str


class TooLong(Exception):
    """A child process has not ended in time."""


class Until:
    """A time by which child processes have to end, so many seconds from now."""

    def __init__(self, seconds: float):
        self.seconds, self._end = seconds, time.monotonic() + seconds

    def left(self) -> float:
        """Seconds until then."""
        return max(self._end - time.monotonic(), 0.0)


class Done(NamedTuple):
    """How a child process ended; `reason` is "" if all is well, else its last words."""

    reason: str
    out: str


def compilers(variables: Mapping[str, str] = os.environ) -> Iterator[Compiler]:
    """The compilers that say their version: that of CXX first, each once."""
    seen = set()
    for words in (_words(variables.get("CXX", "")), *((name,) for name in NAMES)):
        found = shutil.which(words[0]) if words else None
        if found is None or (key := (os.path.realpath(found), words[1:])) in seen:
            continue
        seen.add(key)
        command = (os.path.abspath(found), *words[1:])
        with suppress(TooLong):
            said = finished([*command, "--version"], Until(VERSION_SECONDS))
            if said.reason or not said.out.strip():
                continue
            yield Compiler(command, key[0], _version(said.out, Path(found).name, Path(key[0]).name))


def _version(said: str, name: str, file: str) -> str:
    """The first line, where g++ says by what name it was called; that of its file is the same by all names."""
    words = said.splitlines()[0].split()
    return " ".join([file if words[0] == name else words[0], *words[1:]])


def _words(text: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(text))
    except ValueError:  # a quote that does not end
        return ()


def probed(compiler: Compiler, folder: Path, until: Until) -> Iterator[tuple[tuple[str, ...], str]]:
    """Sets of flags, the best first, each with what a compiler that is to compile nothing at all says against it."""
    for of_cpu in OF_CPU:
        for more in (() if "clang" in compiler.version else OF_GCC, ()):
            flags = (*FLAGS, *of_cpu, *more)
            line = [*compiler.command, *flags, "-x", "c++", os.devnull, "-o", str(folder / "nothing.so")]
            reason = finished(line, until, folder).reason
            yield flags, reason
            if not reason:
                break


def finished(command: Sequence[str], until: Until, folder: Path | None = None, **variables: str) -> Done:
    """Runs a child process; `TooLong` if it has to be ended, with all that it started.

    It begins in a folder, if one is given, which also gets its temporary files.
    """
    own = {} if folder is None else {"TMPDIR": str(folder)}
    with open(os.devnull) as nothing:
        try:
            process = subprocess.Popen(
                command,
                cwd=folder,
                stdin=nothing,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=os.environ | {"LC_ALL": "C"} | own | variables,
                text=True,
                errors="replace",
                start_new_session=True,
            )
        except OSError as error:
            return Done(f"{command[0]}: {error.strerror or error}", "")
    with process:
        try:
            out, said = process.communicate(timeout=until.left())
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise TooLong(f"it took longer than {until.seconds:.0f} s") from None
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return Done(_reason(process.returncode, said), out)


def _reason(status: int, said: str) -> str:
    if status == 0:
        return ""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    telling = [line for word in (FULL, "error") for line in lines if word.lower() in line.lower()]
    if status < 0:
        try:
            return f"it ends with {signal.Signals(-status).name}"
        except ValueError:
            return f"it ends with signal {-status}"
    return next(iter([*telling, *lines[-1:]]), "") or f"it ends with exit status {status}"
