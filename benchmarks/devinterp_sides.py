"""Runs both sides of `benchmarks.devinterp` as processes that answer, in turns, and gives their estimates and times."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from icl_lab.benchmarks.devinterp_cases import CASES, write
from icl_lab.benchmarks.processes import ROOT
from icl_lab.lab.environment import num_threads
from icl_lab.src.checks import UsageError

VERSION = "1.3.2"
INSTALL = f"-m pip install torch devinterp=={VERSION}"
WORKER = Path(__file__).with_name("devinterp_worker.py")
THEIRS = "import runpy, sys; runpy.run_path(sys.argv[1])['main'](*sys.argv[2:])"
OURS = "import sys; from icl_lab.benchmarks.devinterp_ours import main; main(sys.argv[1])"
NOT_KEPT = {"JAX_ENABLE_COMPILATION_CACHE": "false"}  # a cold estimate compiles
VERSIONS = """
import importlib.metadata as found, json, platform
names = "devinterp", "torch", "numpy"
print(json.dumps({"Python": platform.python_version(), **{name: found.version(name) for name in names}}))
"""
TOLERANCE = 1e-4  # of the losses of samples at w*, over their mean: float32 on both sides

ALL_DATA, FIRST_BATCH, BURN_IN = "all data", "first batch", "burn-in averaged in"
Say = Callable[[str], None]


class Side(NamedTuple):
    """Who estimates, how it is asked to, and how many warm estimates it makes in a turn at most."""

    ours: bool
    asked: Mapping[str, Any]
    warm: int = 1000


# name -> a process of its own in each turn
SIDES = {
    "ours": Side(True, {"predict": False}),
    "ours, predicted": Side(True, {"predict": True}, warm=1),  # of the same chains, and a decoder's takes minutes
    "devinterp": Side(False, {"replacement": False}),
    "devinterp, replacement": Side(False, {"replacement": True}),
}


class Reading(NamedTuple):
    """An estimate: value, its own standard error, and the means of chains [C]."""

    value: float
    error: float
    means: np.ndarray


class Estimated(NamedTuple):
    """An estimate: whose, in which turn, whether of a fresh process; seconds of the clock and of processors.

    readings: by `ALL_DATA`, `FIRST_BATCH`, `BURN_IN`.
    """

    side: str
    turn: int
    cold: bool
    seconds: float
    cpu: float
    readings: Mapping[str, Reading]


class Measured(NamedTuple):
    """A model's estimates, the reference with its error, PyTorch's threads, and how far the two models are apart."""

    estimates: list[Estimated]
    reference: tuple[float, float]
    threads: int
    apart: float


# --- the other environment ---


def versions_of(python: str) -> dict[str, str]:
    """The versions of Python, devinterp, PyTorch and NumPy there; `UsageError` where they are missing or others."""
    try:
        done = subprocess.run([python, "-I", "-c", VERSIONS], capture_output=True, text=True, check=False)
    except OSError:
        raise UsageError(
            f"--python {python} cannot be run; make an environment with python3 -m venv DIR, then DIR/bin/python "
            f"{INSTALL}"
        ) from None
    try:
        found: dict[str, str] = json.loads(done.stdout)
    except ValueError:
        raise UsageError(
            f"--python {python} lacks devinterp {VERSION} and PyTorch; install them: {python} {INSTALL}"
        ) from None
    if found["devinterp"] != VERSION:
        raise UsageError(
            f"--python {python} has devinterp {found['devinterp']}, but {VERSION} is compared; install it: {python} "
            f"{INSTALL}"
        )
    return found


# --- processes that answer ---


class Process:
    """A process that answers lines of JSON; `RuntimeError` with its error output when it ends instead."""

    def __init__(self, words: list[str], environment: Mapping[str, str] | None = None) -> None:
        self.name = words[0]
        self.began, self.cpu = time.perf_counter(), 0.0  # cpu: seconds of its processors until its last answer
        self.errors = tempfile.TemporaryFile("w+")  # noqa: SIM115  # closed with the process
        self.process = subprocess.Popen(
            words,
            cwd=ROOT,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
        )

    def ask(self, name: str, **asked: Any) -> dict[str, Any]:
        """Its answer to a question."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        line = ""
        with suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps({"ask": name, **asked}) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        if not line:
            self.errors.seek(0)
            raise RuntimeError(f"{self.name} ended: {self.errors.read()[-2000:]}")
        answer: dict[str, Any] = json.loads(line)
        self.cpu = answer["cpu"]
        return answer

    def close(self) -> None:
        """Ends it."""
        self.process.kill()
        self.process.communicate()
        self.errors.close()

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def start(ours: bool, python: str, path: Path, threads: int) -> Process:
    """A fresh process of ours, or of theirs with so many threads, for a problem's file."""
    theirs = [python, "-I", "-c", THEIRS, str(WORKER), str(path), str(threads)]
    return Process([sys.executable, "-c", OURS, str(path)] if ours else theirs, NOT_KEPT)


# --- estimates ---


def measure(name: str, python: str, turns: int, warm: int, say: Say) -> Measured:
    """The estimates of all sides for a model: in each turn a cold one and `warm` warm ones of each, by turns."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.npz"
        write(name, path, Path(folder))
        say(f"{name}: made")
        with start(False, python, path, 1) as torch, start(True, python, path, 1) as jax:
            theirs, ours = (np.array(process.ask("losses")["losses"]) for process in (torch, jax))
            apart = float(np.abs(theirs - ours).max() / ours.mean())
            if not apart < TOLERANCE:
                raise RuntimeError(f"the two models of {name} differ: losses at w* are {apart:.2g} of their mean apart")
            threads = torch.ask("threads", most=num_threads())["threads"]
            found = torch.ask("reference", **CASES[name].reference._asdict())
        say(f"{name}: reference {found['value']:.3f} +- {found['error']:.3f}, PyTorch with {threads} threads")
        estimates: list[Estimated] = []
        for turn in range(turns):
            estimates += one_turn(name, python, path, threads, turn, warm, float(theirs.mean()))
            say(f"{name}: turn {turn + 1} of {turns}")
    return Measured(estimates, (found["value"], found["error"]), threads, apart)


def one_turn(
    name: str, python: str, path: Path, threads: int, turn: int, warm: int, at_centre: float
) -> Iterator[Estimated]:
    """A cold estimate of each side, then warm ones by turns; every other turn begins with the other library."""
    order = list(SIDES)[:: 1 if turn % 2 == 0 else -1]
    with ExitStack() as stack:
        processes: dict[str, Process] = {}
        for number in range(warm + 1):
            for who in (each for each in order if number <= SIDES[each].warm):
                if number == 0:
                    processes[who] = stack.enter_context(start(SIDES[who].ours, python, path, threads))
                process = processes[who]
                began, used = (process.began, 0.0) if number == 0 else (time.perf_counter(), process.cpu)
                answer = process.ask("estimate", seed=turn * (warm + 1) + number, **SIDES[who].asked)
                seconds = time.perf_counter() - began
                readings = readings_of(answer, CASES[name].settings, at_centre)
                yield Estimated(who, turn, number == 0, seconds, process.cpu - used, readings)


def readings_of(answer: Mapping[str, Any], settings: Mapping[str, Any], at_centre: float) -> dict[str, Reading]:
    """What is made of an answer: ours is an estimate, devinterp's losses [C, T] are read in three ways.

    all data: less L(w*) over all data. first batch: less the loss of the first batch, its default, which its own value
    of all draws tells. burn-in averaged in: less L(w*), with the draws of the burn-in.
    """
    if "trace" not in answer:
        return {ALL_DATA: Reading(answer["value"], answer["error"], np.array(answer["means"]))}
    nbeta, trace = settings["nbeta"], np.array(answer["trace"])
    kept = trace[:, settings["burn_in"] :]
    first_batch = trace.mean() - answer["value"] / nbeta
    return {
        ALL_DATA: reading(nbeta * (kept.mean(axis=1) - at_centre)),
        FIRST_BATCH: reading(nbeta * (kept.mean(axis=1) - first_batch)),
        BURN_IN: reading(nbeta * (trace.mean(axis=1) - at_centre)),
    }


def reading(means: np.ndarray) -> Reading:
    """The estimate of chains with these means [C]."""
    return Reading(float(means.mean()), float(means.std(ddof=1) / np.sqrt(len(means))), means)
