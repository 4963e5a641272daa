"""Whatever the order of the steps of several writers, and whoever is taken for gone: nothing finished is lost.

Each writer is a thread that stops before every step on the disk, until a drawn schedule lets it go on.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icl_lab.store import StoreError, layout, lock, ownership
from icl_lab.store.atomic import replace_file

pytestmark = pytest.mark.robust

STEPS = ("open", "write", "replace", "unlink", "ftruncate", "listdir", "scandir")  # of `os`: a writer stops before each
ATTEMPTS = 20  # to take the lock
NEVER = 1000  # steps


class Killed(BaseException):
    """What a killed writer gets from every step, none of which is carried out any more."""


class Writer(threading.Thread):
    """Takes the lock twice, and adds a line to the file each time that it has it; or shares it, and writes its own."""

    def __init__(self, disk: "Disk", number: int, host: str, shared: bool, lifetime: int):
        super().__init__(daemon=True)
        self.disk, self.number, self.host, self.shared, self.left = disk, number, host, shared, lifetime
        self.go, self.error, self.is_done = threading.Semaphore(0), None, False
        self.error: BaseException | None
        self.locks: list[ownership.HeldLock] = []
        self.files: set[int] = set()
        self.inside: ownership.HeldLock | None = None
        self.finished: list[str] = []
        self.refused: list[str] = []

    def run(self) -> None:
        self.go.acquire()
        try:
            for number in range(2):
                self.write(f"{self.number} {number}\n")
        except Killed:
            pass
        except BaseException as error:
            self.error = error
        self.is_done, self.inside = True, self.inside if self.left < 0 else None
        for descriptor in self.files:
            self.disk.real["close"](descriptor)
        self.disk.stopped.release()

    def write(self, line: str) -> None:
        watch, run = ownership.Watch(), self.disk.run
        for _ in range(ATTEMPTS):
            self.stop()
            held = lock.hold(run / layout.LOCK, run, self.shared, watch)
            if isinstance(held, ownership.HeldLock):
                break
        else:
            return
        self.inside = held
        path = run / ("of_those_who_share" if self.shared else "file")
        seen = path.read_text() if path.exists() else ""
        try:
            replace_file(path, f"{seen}{line}".encode())
            self.finished.append(line)
        except StoreError as error:
            self.refused.append(str(error))
        self.inside = None
        ownership.let_go(held)

    def stop(self) -> None:
        """Waits until the schedule lets this writer go on."""
        self.disk.stopped.release()
        self.go.acquire()
        self.left -= 1
        if self.left < 0:
            raise Killed


class Disk:
    """A run directory, its writers, and the functions that they call."""

    def __init__(self, run: Path, patch: pytest.MonkeyPatch, pause: float):
        self.run, self.stopped, self.writers = run, threading.Semaphore(0), list[Writer]()
        self.real: dict[str, Callable[..., Any]] = {name: getattr(os, name) for name in (*STEPS, "close")}
        self.clock = 0.0
        for name in STEPS:
            patch.setattr(os, name, self.stopping(name))
        patch.setattr(os, "close", self.close)
        patch.setattr(os, "fsync", lambda _: None)
        me, real_host, real_started, real_pid = threading.current_thread, ownership.host, ownership.started, os.getpid()
        patch.setattr(ownership, "host", lambda: w.host if isinstance(w := me(), Writer) else real_host())
        patch.setattr(os, "getpid", lambda: w.number if isinstance(w := me(), Writer) else real_pid)
        patch.setattr(
            ownership, "started", lambda pid: self.started(pid) if isinstance(me(), Writer) else real_started(pid)
        )
        patch.setattr(ownership, "_held", LocksOfEach())
        patch.setattr(ownership, "_beating", me())  # nobody beats
        patch.setattr(lock, "_say_taken", lambda *_: None)
        patch.setattr(ownership, "time", SimpleNamespace(monotonic=lambda: self.later(pause), sleep=time.sleep))

    def later(self, pause: float) -> float:
        self.clock += pause
        return self.clock

    def started(self, number: int) -> str:
        return "" if self.writers[number].is_done else "1"

    def stopping(self, name: str) -> Callable[..., Any]:
        def step(*args: Any, **options: Any) -> Any:
            writer = threading.current_thread()
            if not isinstance(writer, Writer):
                return self.real[name](*args, **options)
            writer.stop()
            found = self.real[name](*args, **options)
            if name == "open":
                writer.files.add(found)
            if name == "replace" and layout.draft_parts(Path(args[0]).name) != ("", ""):
                self.check_alone(writer)
            return found

        return step

    def close(self, descriptor: int) -> None:
        if isinstance(writer := threading.current_thread(), Writer):
            writer.files.discard(descriptor)
        self.real["close"](descriptor)

    def check_alone(self, writer: Writer) -> None:
        """Nobody else has the lock when a file gets its name, unless both share it."""
        for other in self.writers:
            if other is not writer and other.inside is not None and not (other.shared and writer.shared):
                lock = other.inside.lock
                owner = ownership.parsed(lock.read_bytes()) if lock.exists() else None
                assert owner is None or owner.token != other.inside.owner.token, "two owners"

    def step(self, writer: Writer) -> None:
        if not writer.is_done:
            writer.go.release()
            self.stopped.acquire()
            if writer.error is not None:
                raise writer.error

    def start(self, *words: Any) -> Writer:
        writer = Writer(self, len(self.writers), *words)
        self.writers.append(writer)
        writer.start()
        return writer

    def finish(self, writers: list[Writer]) -> None:
        while not all(writer.is_done for writer in writers):
            for writer in writers:
                self.step(writer)

    def kill_all(self) -> None:
        for writer in self.writers:
            while not writer.is_done:
                writer.left = 0
                writer.go.release()
                self.stopped.acquire()
            writer.join()


class LocksOfEach:
    """Like `ownership._held`, of each writer its own, as if it were a process."""

    @property
    def own(self) -> list[ownership.HeldLock]:
        writer = threading.current_thread()
        return writer.locks if isinstance(writer, Writer) else []

    def append(self, held: ownership.HeldLock) -> None:
        self.own.append(held)

    def remove(self, held: ownership.HeldLock) -> None:
        self.own.remove(held)

    def __iter__(self) -> Iterator[ownership.HeldLock]:
        return iter(self.own)


HOSTS = st.sampled_from(["a boot", "b boot", "c boot"])
WRITERS = st.lists(
    st.tuples(HOSTS, st.sampled_from([False, False, True]), st.integers(0, 60) | st.just(NEVER)), min_size=2, max_size=3
)
SCHEDULE = st.lists(st.tuples(st.integers(0, 2), st.integers(1, 25)), max_size=40)
PAUSES = st.sampled_from([0.0, ownership.STALE_SECONDS / 4, ownership.STALE_SECONDS])  # between looks: who is gone


@settings(max_examples=200, deadline=None)
@given(WRITERS, SCHEDULE, PAUSES)
def test_whatever_the_interleaving_nothing_finished_is_lost(
    tmp_path_factory: pytest.TempPathFactory,
    writers: list[tuple[str, bool, int]],
    schedule: list[tuple[int, int]],
    pause: float,
) -> None:
    """And never does a file get its name from one while another has the lock; and killed ones leave nobody out."""
    run = tmp_path_factory.mktemp("run")
    with pytest.MonkeyPatch.context() as patch:
        disk = Disk(run, patch, pause)
        try:
            for words in writers:
                disk.start(*words)
            for number, steps in schedule:
                for _ in range(steps):
                    disk.step(disk.writers[number % len(writers)])
            disk.finish(disk.writers)
            disk.clock, last = disk.clock + 1, disk.start("d boot", False, NEVER)
            patch.setattr(ownership.time, "monotonic", lambda: disk.later(ownership.STALE_SECONDS))
            disk.finish([last])
        finally:
            disk.kill_all()
        assert len(last.finished) == 2  # whoever came before
        for shared, name in ((False, "file"), (True, "of_those_who_share")):
            finished = {line for writer in disk.writers if writer.shared is shared for line in writer.finished}
            lines = (run / name).read_text().splitlines(keepends=True) if (run / name).exists() else []
            assert len(lines) == len({*lines})
            if not shared:
                assert finished <= {*lines}
        left = {path.name for path in run.iterdir()} - {"file", "of_those_who_share", layout.LOCK}
        killed = {str(writer.number) for writer in disk.writers if writer.left < 0}
        assert {layout.draft_parts(name)[1].split("-")[1] for name in left} <= killed, left
        assert all("was taken over by another" in said for writer in disk.writers for said in writer.refused)
        assert (run / layout.LOCK).read_bytes() == b""
