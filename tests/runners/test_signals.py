"""Signals: everything is as it was after they were handled, and the second one ends a process wherever it is."""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from icl_lab.lab.executors import signals
from icl_lab.lab.executors.signals import WAITING, Stopped, catch_signals
from tests.runners.tiny import INTERRUPTED, LSA1, ROOT, SIZES, Workshop, results

pytestmark = pytest.mark.robust

HELD = {"INTERRUPT": "after:meta.json:HOLD:2", "PYTHONPATH": INTERRUPTED}  # the run has begun, and compiles next
AT_ONCE = "stopped at once; what is on disk is kept, and the same command without --overwrite resumes it\n"


def state() -> tuple[object, ...]:
    """What a process has that hearing signals changes."""
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    wakeup = signal.set_wakeup_fd(-1)
    signal.set_wakeup_fd(wakeup)
    return (*handlers, wakeup, threading.active_count(), sorted(os.listdir("/proc/self/fd")))


@pytest.mark.parametrize("afterwards", [None, "it goes on"])
def test_everything_is_restored(afterwards: str | None) -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    own = signal.set_wakeup_fd(writer)  # as a notebook's loop has one
    try:
        before = state()
        with catch_signals(afterwards):
            outer = state()
            with suppress(ZeroDivisionError), catch_signals("that too"):
                assert state() != outer
                raise ZeroDivisionError
            assert state()[:4] == outer[:4]
        assert state() == before
    finally:
        signal.set_wakeup_fd(own)
        os.close(reader)
        os.close(writer)


def test_signals_are_heard_by_the_innermost_and_again_by_the_outer() -> None:
    with catch_signals("it goes on") as outer:
        with catch_signals("it goes on") as inner:
            os.kill(os.getpid(), signal.SIGTERM)
            assert (inner.received, outer.received) == ([signal.SIGTERM], [])
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(Stopped):
            outer.check()


def test_in_another_thread_nothing_is_heard_and_nothing_changes() -> None:
    seen: list[bool] = []

    def work() -> None:
        before = signal.getsignal(signal.SIGINT)
        with catch_signals("it goes on"):
            seen.append(signal.getsignal(signal.SIGINT) is before)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [True]


def test_an_echo_is_no_second_signal(monkeypatch: pytest.MonkeyPatch) -> None:
    """As from `timeout`, which signals the process and then its group. Else this would end the tests."""
    monkeypatch.setitem(signals.ECHO, signal.SIGTERM, float("inf"))
    with catch_signals("it goes on") as caught:
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)
    assert caught.received == [signal.SIGTERM] * 2


class Ended(Exception):
    """In place of the end of the process."""


@pytest.mark.parametrize(
    ("first", "second", "seconds", "ends"),
    [
        (signal.SIGINT, signal.SIGINT, 0.2, True),  # an impatient double Ctrl-C
        (signal.SIGINT, signal.SIGINT, 0.01, False),  # `timeout -s INT`
        (signal.SIGTERM, signal.SIGTERM, 0.2, False),  # `timeout` on a machine that does much else
        (signal.SIGTERM, signal.SIGTERM, 0.4, True),
        (signal.SIGINT, signal.SIGTERM, 0.01, True),  # no echo is another signal
    ],
)
def test_how_soon_a_second_signal_counts(
    first: int, second: int, seconds: float, ends: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    coming, clock, statuses = iter([first, second, None]), iter([5.0, 5.0 + seconds]), []

    def end(status: int) -> None:
        statuses.append(status)
        raise Ended

    monkeypatch.setattr(signals, "_next", lambda reader: next(coming))
    monkeypatch.setattr(signals.time, "monotonic", lambda: next(clock, 5.0 + seconds))
    monkeypatch.setattr(signals.threading, "Timer", lambda *_: SimpleNamespace(start=int, cancel=int))
    monkeypatch.setattr(signals.os, "_exit", end)
    with suppress(Ended):
        signals._watch(0, "it goes on")
    assert statuses == [128 + second] * ends


def test_a_signal_is_counted_from_when_it_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that comes with the handler itself is the first, and the next one ends the process."""
    ended, install = threading.Event(), signal.signal

    def installed(number: int, handler: object) -> object:
        before = install(number, handler)
        if number == signal.SIGTERM and getattr(handler, "__self__", None) is not None:
            os.kill(os.getpid(), number)
        return before

    monkeypatch.setattr(signals.signal, "signal", installed)
    monkeypatch.setattr(signals.os, "_exit", lambda status: ended.set())
    monkeypatch.setitem(signals.ECHO, signal.SIGTERM, -1.0)
    with catch_signals("it goes on") as caught:
        assert caught.received == [signal.SIGTERM]
        os.kill(os.getpid(), signal.SIGTERM)
        assert ended.wait(30)


def test_from_python_a_second_signal_is_noted_and_no_more() -> None:
    with catch_signals() as caught:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
    assert caught.received == [signal.SIGINT] * 2


def twice(process: subprocess.Popen[str], first: int, second: int) -> list[str]:
    """Sends a signal, waits for the word on it, sends another; what the process says on standard error from then on."""
    assert process.stderr is not None
    process.send_signal(first)
    for line in process.stderr:
        if WAITING in line:
            break
    else:
        raise AssertionError("the first signal was enough")
    process.send_signal(second)
    _, said = process.communicate(timeout=60)
    return said.splitlines(keepends=True)


def in_background(workshop: Workshop, *words: object, **environment: str) -> subprocess.Popen[str]:
    """A command whose output is read."""
    cache = {"JAX_COMPILATION_CACHE_DIR": str(workshop.folder / "compiled")}
    cache |= {f"JAX_PERSISTENT_CACHE_MIN_{name}": "0" for name in ("COMPILE_TIME_SECS", "ENTRY_SIZE_BYTES")}
    line = [sys.executable, "-m", *map(str, words)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(line, cwd=ROOT, env=os.environ | cache | environment, **pipes)


def until_held(log: Path, process: subprocess.Popen[str]) -> None:
    """Waits for a process to be where it stays."""
    while not (log.exists() and log.read_text()):
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.01)


def test_a_second_signal_ends_a_run_while_it_computes_and_it_resumes_to_the_same_bytes(
    lsa1_run: Path, workshop: Workshop, tmp_path: Path
) -> None:
    """With the status of the second; that of two Ctrl-C is seen below, of a run that compiles."""
    log, line = tmp_path / "log", [LSA1, *SIZES, "--save_attention", "--out", tmp_path / "run"]
    with in_background(workshop, *line, **HELD, INTERRUPT_LOG=str(log)) as process:
        try:
            until_held(log, process)
            assert twice(process, signal.SIGINT, signal.SIGTERM)[-1] == AT_ONCE
        finally:
            process.kill()
    assert process.returncode == 143
    done = workshop.run(*line)
    assert done.returncode == 0, done.stderr
    assert results(tmp_path / "run") == results(lsa1_run)


DEEP = [LSA1, *SIZES, "--num_layers", "12", "--steps", "3"]
# the runner, whose compiling takes seconds and then has no end
COMPILES = """
import threading
from icl_lab.runners import pack, run_concat_inputs_targets as runner
from icl_lab.runners import command
compile = pack.Programs.compile
def compiles(*given):
    print("compiling", flush=True)
    compile(*given)
    threading.Event().wait()
pack.Programs.compile = compiles
command.run(runner.MODEL, runner.PROG, runner.__doc__)
"""


@pytest.mark.slow
def test_a_deep_model_that_compiles_is_stopped_at_once_and_resumes_to_the_same_bytes(
    workshop: Workshop, tmp_path: Path
) -> None:
    line = [sys.executable, "-c", COMPILES, *DEEP[1:], "--out", str(tmp_path / "run")]
    with subprocess.Popen(line, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert any("compiling" in said for said in process.stdout)
            assert twice(process, signal.SIGINT, signal.SIGINT)[-1] == AT_ONCE
        finally:
            process.kill()
    assert process.returncode == 130
    runs = [tmp_path / "run", tmp_path / "uninterrupted"]
    for run in runs:
        done = workshop.run(*DEEP, "--out", run)
        assert done.returncode == 0, done.stderr
    assert results(runs[0]) == results(runs[1])
