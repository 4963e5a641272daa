"""One process at a time in a run directory, on one host or on several whose kernels know nothing of each other.

Hosts are processes with names of their own, without the kernel's locks. Beats come every tenth of a second here.
"""

import errno
import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from icl_lab.store import StoreError, checkpoint, layout, lock, manifest, ownership, rundir, snapshots
from icl_lab.store.atomic import replace_file, write_bytes
from icl_lab.store.lock import in_use, locked, locked_file
from icl_lab.store.metrics import append_metrics
from tests.doors import snapshot
from tests.runners.tiny import copied

pytestmark = pytest.mark.robust

BEAT, STALE = 0.1, 1.5

# a process of a host: HOST FOLDER; it says when it holds the lock, and after each line of input does what that says
HOLD = f"""
import fcntl, sys, time
from pathlib import Path
from icl_lab.store import lock, ownership
from icl_lab.store.atomic import replace_file
from icl_lab.store.lock import locked
fcntl.flock = lambda *_: None
time.time = lambda: 1e12  # a clock that is far ahead
ownership.BEAT_SECONDS, ownership.STALE_SECONDS = {BEAT}, {STALE}
if sys.argv[1]:
    ownership.host = lambda: sys.argv[1]
with locked(Path(sys.argv[2]), shared="shared" in sys.argv):
    print("held", flush=True)
    for line in sys.stdin:
        replace_file(Path(sys.argv[2], "file"), line.encode())
        print("written", flush=True)
"""


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ownership, "BEAT_SECONDS", BEAT)
    monkeypatch.setattr(ownership, "STALE_SECONDS", STALE)
    monkeypatch.setattr(fcntl, "flock", lambda *_: None)


@contextmanager
def holder(root: Path, run: Path, host: str = "", *words: str) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the lock, of this host unless another is named."""
    line = [sys.executable, "-c", HOLD, host, str(run), *words]
    pipe = subprocess.PIPE
    with subprocess.Popen(line, cwd=root, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "held\n"
            yield process
        finally:
            process.kill()


def write(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(line)
    process.stdin.flush()


def test_a_second_process_is_refused_until_the_first_is_killed(root: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    with holder(root, run) as first:
        assert in_use(run)
        with pytest.raises(StoreError, match=r"run is in use by another process$"), locked(run):
            pytest.fail("two held the lock")
        first.kill()
        assert first.wait(60) == -signal.SIGKILL
        began = time.monotonic()
        with locked(run):
            assert time.monotonic() - began < 1  # a process of this host is seen to have ended
            line = [sys.executable, "-c", HOLD, "", str(run)]
            second = subprocess.run(line, cwd=root, input="", capture_output=True, text=True, timeout=60)
            assert second.returncode == 1
            assert "is in use by another process" in second.stderr
    assert not in_use(run)


def test_the_lock_is_freed_by_an_error(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), locked(tmp_path):
        _ = 1 / 0
    with locked(tmp_path):
        assert [path.name for path in tmp_path.iterdir()] == [".lock"]
    assert (tmp_path / ".lock").read_bytes() == b""


def test_a_lock_of_an_earlier_version_is_free(tmp_path: Path) -> None:
    (tmp_path / ".lock").touch()
    assert not in_use(tmp_path)
    with locked(tmp_path):
        assert ownership.read(tmp_path / ".lock") is not None


def test_a_process_of_the_same_number_that_began_later_is_another(tmp_path: Path) -> None:
    gone = ownership.Owner("0" * 16, ownership.host(), os.getpid(), "1")
    (tmp_path / ".lock").write_bytes(gone.content())
    assert not in_use(tmp_path)
    with locked(tmp_path):
        now = ownership.read(tmp_path / ".lock")
        assert now is not None
        assert now.token != gone.token


# --- other hosts ---


def test_an_owner_on_another_host_keeps_its_lock_while_it_beats(root: Path, tmp_path: Path) -> None:
    with holder(root, tmp_path, "elsewhere boot 1"):
        for _ in range(3):  # in_use cannot tell at its first look, and then sees it beat
            assert in_use(tmp_path)
            time.sleep(STALE / 2)
        with pytest.raises(StoreError, match=r"is in use by another process on elsewhere$"), locked(tmp_path):
            pytest.fail("two held the lock")


def test_an_owner_on_another_host_that_was_killed_is_taken_over_with_a_notice(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with holder(root, tmp_path, "elsewhere boot 1") as first:
        first.kill()
        first.wait(60)
        began = time.monotonic()
        with locked(tmp_path):
            assert time.monotonic() - began >= STALE
    said = f"{tmp_path}: taken over from process {first.pid} on elsewhere, which has stopped\n"
    assert capsys.readouterr().err == said


def test_an_owner_that_stood_still_and_was_taken_over_writes_nothing_more(root: Path, tmp_path: Path) -> None:
    with holder(root, tmp_path, "elsewhere boot 1") as first:
        write(first, "before\n")
        assert first.stdout is not None
        assert first.stdout.readline() == "written\n"
        os.kill(first.pid, signal.SIGSTOP)
        with locked(tmp_path):
            replace_file(tmp_path / "file", b"ours\n")
            write(first, "after\n")
            os.kill(first.pid, signal.SIGCONT)
            _, said = first.communicate(timeout=60)
            assert "was taken over by another process while this one was suspended" in said
            assert first.returncode == 1
            owner = ownership.read(tmp_path / ".lock")
            assert owner is not None
            assert owner.pid == os.getpid()  # the other has not freed what is ours
        assert (tmp_path / "file").read_bytes() == b"ours\n"
    assert {path.name for path in tmp_path.iterdir()} == {".lock", "file"}


@pytest.mark.parametrize("host", ["", "elsewhere boot 1"])
def test_those_who_share_a_lock_exclude_who_does_not(host: str, root: Path, tmp_path: Path) -> None:
    with holder(root, tmp_path, host, "shared") as other:
        with locked(tmp_path, shared=True), locked(tmp_path, shared=True):
            pass
        with pytest.raises(StoreError, match="in use"), locked(tmp_path):
            pytest.fail("one of two did not share it")
        other.kill()
        other.wait(60)
        with locked(tmp_path):
            assert [path.name for path in tmp_path.iterdir()] == [".lock"]  # it has left nothing
            with pytest.raises(StoreError, match="in use"), locked(tmp_path, shared=True):
                pytest.fail("one of two did not share it")


@pytest.mark.parametrize(
    ("host", "timeout", "waited"), [("", 10, 10), ("elsewhere boot 1", 10, 120), ("elsewhere boot 1", 0, 1)]
)
def test_how_long_an_owner_that_is_alive_is_waited_for(
    host: str, timeout: float, waited: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On another host twice as long as it takes to know that it is gone, if at all."""
    clock, owner = [0.0], ownership.this_process()
    owner = owner._replace(host=host or owner.host)

    def sleep(seconds: float) -> None:
        clock[0] += seconds
        (tmp_path / LOCK).write_bytes(owner._replace(beat=f"{int(clock[0]):0{ownership.DIGITS}d}").content())

    monkeypatch.setattr(ownership, "STALE_SECONDS", 60.0)
    monkeypatch.setattr(lock, "RETRY_SECONDS", 1.0)
    for module, sleeping in ((lock, sleep), (ownership, time.sleep)):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: clock[0], sleep=sleeping))
    (tmp_path / LOCK).write_bytes(owner.content())
    with pytest.raises(StoreError, match="is in use"), locked(tmp_path, timeout=timeout):
        pytest.fail("two held the lock")
    assert clock[0] == waited


@pytest.mark.parametrize("refusal", [PermissionError, FileNotFoundError])
def test_an_owner_whose_start_is_hidden_is_watched(
    refusal: type[OSError], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As under /proc with hidepid: another user's process may be the owner, or have its number since."""

    def hidden(path: Path) -> str:
        raise refusal(str(path))

    monkeypatch.setattr(ownership.Path, "read_text", hidden)
    clock = [0.0]
    monkeypatch.setattr(ownership, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait(60)
    assert (ownership.started(os.getppid()), ownership.started(ended.pid)) == (ownership.HIDDEN, "")
    owner = ownership.this_process()._replace(pid=os.getppid(), start="123")
    assert not ownership.has_ended(owner.writer())
    watch, beating = ownership.Watch(), owner._replace(beat="000000000001")
    assert watch.observe(tmp_path, owner) is ownership.LockBusy.WATCHED
    assert watch.observe(tmp_path, beating) is ownership.LockBusy.OWNED
    for clock[0] in range(0, 61, 20):
        still = watch.observe(tmp_path, beating)
    assert still is None  # its beat stands still
    assert ownership.Watch().observe(tmp_path, owner._replace(pid=ended.pid)) is None


# --- owners of other hosts, without waiting ---

LOCK = layout.LOCK


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Owners on other hosts are gone at the first look."""
    monkeypatch.setattr(ownership, "STALE_SECONDS", 0.0)


@contextmanager
def elsewhere(name: str) -> Iterator[None]:
    """This process is one of another host."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ownership, "host", lambda: f"{name} boot 1")
        yield


def held_from(host: str, run: Path, shared: bool = False) -> ownership.HeldLock | ownership.LockBusy:
    """What a process of a host gets that tries once to take the lock."""
    with elsewhere(host):
        return lock.hold(run / LOCK, run, shared, ownership.Watch())


def is_ours(held: object) -> bool:
    return isinstance(held, ownership.HeldLock) and held.is_ours()


def let_go(*held: object) -> None:
    for each in held:
        assert isinstance(each, ownership.HeldLock)
        ownership.let_go(each)


@pytest.mark.usefixtures("at_once")
def test_an_owner_that_is_gone_loses_the_lock_before_others_share_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = held_from("a", tmp_path)
    assert is_ours(first)
    with elsewhere("b"), locked(tmp_path, shared=True, timeout=60):
        assert capsys.readouterr().err.count("taken over from process") == 1
        assert not is_ours(first)
        with pytest.raises(StoreError, match="was taken over by another process while this one was suspended"):
            replace_file(tmp_path / "file", b"late")
        with elsewhere("c"), locked(tmp_path, shared=True):
            assert capsys.readouterr().err == ""
    let_go(first)
    assert [path.name for path in tmp_path.iterdir()] == [LOCK]


@pytest.mark.parametrize("at", ["listdir", "replace"])
@pytest.mark.usefixtures("at_once")
def test_a_file_that_was_about_to_get_its_name_when_the_lock_was_taken_over_does_not_get_it(
    at: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before its draft is there, or between the last check and the rename, where nobody can check."""
    first, real = held_from("a", tmp_path), getattr(os, at)
    taken = list[object]()

    def late(*places: Path) -> object:
        monkeypatch.setattr(os, at, real)
        taken.append(held_from("b", tmp_path))
        (tmp_path / "file").write_bytes(b"of the new owner")
        return real(*places)

    monkeypatch.setattr(os, at, late)
    with elsewhere("a"), pytest.raises(StoreError, match="was taken over"):
        replace_file(tmp_path / "file", b"late")
    assert is_ours(taken[0])
    assert (tmp_path / "file").read_bytes() == b"of the new owner"
    let_go(first, *taken)
    assert {path.name for path in tmp_path.iterdir()} == {LOCK, "file"}


@pytest.mark.usefixtures("at_once")
def test_drafts_are_removed_in_all_folders_but_those_with_a_lock_of_their_own(tmp_path: Path) -> None:
    first = held_from("a", tmp_path)
    assert isinstance(first, ownership.HeldLock)
    names = ("file", "cell/file", "cell/analysis/develop/file", "locked/file")
    drafts = {name: layout.draft(tmp_path / name, first.owner.writer()) for name in names}
    other = layout.draft(tmp_path / "file", "0123abcd-1-1")
    for path in (*drafts.values(), other, tmp_path / "locked" / LOCK):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"half")
    second = held_from("b", tmp_path)
    assert {name for name, path in drafts.items() if path.exists()} == {"cell/analysis/develop/file", "locked/file"}
    assert other.exists()
    let_go(first, second)


@pytest.mark.usefixtures("at_once")
def test_who_was_taken_over_changes_no_file_of_the_run(tmp_path: Path) -> None:
    manifest.begin(tmp_path)
    first, params = held_from("a", tmp_path), {"layer": {"w": np.ones(3, np.float32)}}
    snapshots.begin(tmp_path, (0, 5), params)
    append_metrics(tmp_path, {"step": 0})
    checkpoint.save(tmp_path, 5, {"w": np.ones(3)}, {})
    second = held_from("b", tmp_path)
    before = snapshot(tmp_path)
    for write in (
        lambda: snapshots.begin(tmp_path, (0, 5), params),
        lambda: snapshots.write(tmp_path, 5, params),
        lambda: append_metrics(tmp_path, {"step": 5}),
        lambda: replace_file(tmp_path / "file", b"late"),
        lambda: write_bytes(tmp_path / "file", b"late"),
        lambda: checkpoint.remove_after(tmp_path, 0),
        lambda: checkpoint.remove(tmp_path),
        lambda: rundir.clear(tmp_path),
        lambda: manifest.release(tmp_path, layout.METRICS),
    ):
        with pytest.raises(StoreError, match="was taken over"):
            write()
        assert snapshot(tmp_path) == before
    let_go(first, second)


def test_a_record_goes_to_the_file_that_was_open_when_the_lock_was_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who takes the run over writes the metrics anew, and the late record is not among them."""
    append_metrics(tmp_path, {"step": 0})
    check = lambda path: replace_file(path, b"of the new owner\n")  # noqa: E731
    with monkeypatch.context() as patch:
        patch.setattr(rundir.ownership, "check", lambda path: (patch.undo(), check(path)))
        patch.setattr(manifest, "claim", lambda path: None)
        append_metrics(tmp_path, {"step": 5})
    assert (tmp_path / layout.METRICS).read_bytes() == b"of the new owner\n"


# --- beats ---


def test_a_beat_is_synced_and_a_slow_sync_keeps_nobody_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    syncing, may_end = threading.Event(), threading.Event()
    fsync, beats = os.fsync, list[tuple[bool, bytes]]()

    def slow(descriptor: int) -> None:
        if threading.current_thread() is not threading.main_thread():
            is_the_lock = os.path.samestat(os.fstat(descriptor), os.stat(tmp_path / LOCK))
            beats.append((is_the_lock, os.pread(descriptor, 1000, 0)[-ownership.DIGITS :]))
            syncing.set()
            may_end.wait(60)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", slow)
    with locked(tmp_path):
        assert syncing.wait(60)
        assert beats == [(True, b"000000000001")]
    with locked(tmp_path):  # it was released meanwhile
        pass
    may_end.set()
    assert (tmp_path / LOCK).read_bytes() == b""


def test_a_watcher_that_stood_still_itself_has_not_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    owner, watch, now = ownership.Owner("0" * 16, "elsewhere boot 1", 1, "1"), ownership.Watch(), [0.0]
    monkeypatch.setattr(ownership, "STALE_SECONDS", 60.0)
    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    def looks(*times: float) -> list[ownership.LockBusy | None]:
        found = []
        for now[0] in times:
            found.append(watch.observe(Path("lock"), owner))
        return found

    assert looks(0, 1, 1000, 1001, 1020) == [ownership.LockBusy.WATCHED] * 5
    assert looks(1040) == [None]
    owner = owner._replace(beat="1".zfill(ownership.DIGITS))
    assert looks(1041, 1042) == [ownership.LockBusy.OWNED] * 2


# --- locks that cannot be read ---


@pytest.mark.parametrize("code", [errno.EACCES, errno.EIO, errno.EMFILE])
def test_a_lock_that_cannot_be_read_is_not_free(code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with locked(tmp_path):
        before, real = (tmp_path / LOCK).read_bytes()[: -ownership.DIGITS], os.open

        def failing(path: Path, flags: int, mode: int = 0o777) -> int:
            if Path(path).name == LOCK:
                raise OSError(code, os.strerror(code))
            return real(path, flags, mode)

        with monkeypatch.context() as patch:
            patch.setattr(os, "open", failing)
            sentence = rf"\.lock cannot be read, so which process writes here is unknown: {os.strerror(code)}"
            for shared in (False, True):
                with pytest.raises(StoreError, match=sentence), locked(tmp_path, shared=shared):
                    pytest.fail("two held the lock")
            with pytest.raises(StoreError, match=sentence):
                in_use(tmp_path)
            with pytest.raises(StoreError, match=sentence):
                replace_file(tmp_path / "file", b"perhaps not ours")
        assert [path.name for path in tmp_path.iterdir()] == [LOCK]
        assert (tmp_path / LOCK).read_bytes()[: -ownership.DIGITS] == before


def test_a_lock_that_is_none_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / LOCK).write_text("years of work")
    with pytest.raises(StoreError, match=r"\.lock is not a lock of the laboratory; move it away"), locked(tmp_path):
        pytest.fail("it was locked")
    assert (tmp_path / LOCK).read_text() == "years of work"


# --- kills while the owner changes ---


@pytest.mark.usefixtures("at_once")
def test_of_two_who_take_the_turn_from_a_dead_process_one_gets_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first is delayed between reading whose turn it is and removing that: it removes the second's."""
    turn = tmp_path / layout.LOCKS[1]
    turn.write_bytes(ownership.Owner("0" * 16, "dead boot 1", 1, "1").content())
    unlink, replace, taken = os.unlink, os.replace, list[object]()

    def delayed(path: Path) -> None:
        if path == turn:  # the first one's removal: meanwhile the second gets as far as the rename
            monkeypatch.setattr(os, "unlink", unlink)
            monkeypatch.setattr(os, "replace", renaming)
            assert held_from("b", tmp_path) is ownership.LockBusy.CHANGING  # it has removed the dead one's
            taken.append(held_from("b", tmp_path))
        unlink(path)

    def renaming(source: Path, target: Path) -> None:
        if target == tmp_path / LOCK:  # the second's rename: meanwhile the first goes on, and once more
            monkeypatch.setattr(os, "replace", replace)
            unlink(turn)
            taken.append(held_from("a", tmp_path))
        replace(source, target)

    monkeypatch.setattr(os, "unlink", delayed)
    assert held_from("a", tmp_path) is ownership.LockBusy.CHANGING
    first, second = taken
    assert is_ours(first)
    assert second is ownership.LockBusy.CHANGING
    let_go(first)
    assert [path.name for path in tmp_path.iterdir()] == [LOCK]
    assert (tmp_path / LOCK).read_bytes() == b""


def test_who_stood_still_before_its_rename_neither_gets_the_lock_nor_moves_a_file_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace, second = os.replace, list[object]()

    def late(source: Path, target: Path) -> None:
        monkeypatch.setattr(os, "replace", replace)
        with monkeypatch.context() as patch:
            patch.setattr(ownership, "STALE_SECONDS", 0.0)
            assert held_from("b", tmp_path) is ownership.LockBusy.CHANGING
        second.append(held_from("b", tmp_path))
        (tmp_path / layout.LOCKS[1]).write_bytes(b"the turn of a third")
        replace(source, target)

    monkeypatch.setattr(os, "replace", late)
    assert held_from("a", tmp_path) is ownership.LockBusy.CHANGING
    assert is_ours(second[0])
    assert (tmp_path / layout.LOCKS[1]).read_bytes() == b"the turn of a third"
    let_go(*second)


@pytest.mark.parametrize("end", ["claim", "shared"])
def test_what_a_process_killed_while_it_took_the_lock_left_is_removed(end: str, tmp_path: Path) -> None:
    (tmp_path / f"{LOCK}.{'0' * 16}.{end}").touch()
    assert manifest.foreign_files(tmp_path) == []
    with locked(tmp_path):
        assert [path.name for path in tmp_path.iterdir()] == [LOCK]


def test_a_folder_that_its_owner_deletes_is_made_again_by_who_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    run.mkdir()
    held = lock.hold(run / LOCK, run, False, ownership.Watch())

    def deleted(_: float) -> None:
        monkeypatch.setattr(lock.time, "sleep", lambda _: None)
        (run / LOCK).unlink()
        run.rmdir()

    monkeypatch.setattr(lock.time, "sleep", deleted)
    with locked(run, timeout=60):
        assert [path.name for path in run.iterdir()] == [LOCK]
    let_go(held)


@pytest.mark.parametrize("written", [True, False])
def test_a_process_killed_while_it_took_the_lock_keeps_nobody_out(written: bool, tmp_path: Path) -> None:
    dead = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True)
    owner = ownership.Owner("0" * 16, ownership.host(), int(dead.stdout), "17")
    (tmp_path / layout.LOCKS[1]).write_bytes(owner.content() if written else b"")
    with locked(tmp_path, timeout=0 if written else 60):
        assert [path.name for path in tmp_path.iterdir()] == [".lock"]


def test_a_lock_is_not_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    for name in layout.LOCKS:
        (tmp_path / "run").mkdir(exist_ok=True)
        (tmp_path / "run" / name).symlink_to(tmp_path / "mine")
        with pytest.raises(StoreError, match="is a symbolic link"), locked(tmp_path / "run"):
            pytest.fail("it was locked")
        (tmp_path / "run" / name).unlink()
    assert (tmp_path / "mine").read_text() == "mine"


# --- whatever the interleaving, nothing is lost ---

COUNT = r"""
import sys, time
from pathlib import Path
from icl_lab.store import lock, ownership
from icl_lab.store.lock import locked_file
from icl_lab.store.atomic import replace_file
ownership.host = lambda: sys.argv[1]
file = Path(sys.argv[2])
for number in range(int(sys.argv[3])):
    with locked_file(file, 100):
        seen = file.read_text() if file.exists() else ""
        replace_file(file, f"{seen}{sys.argv[1]} {number}\n".encode())
"""


@pytest.mark.parametrize("hosts", [["here"] * 3, ["a", "b", "c"]])
def test_of_many_writers_every_line_is_there(hosts: list[str], root: Path, tmp_path: Path) -> None:
    """Each adds lines to what it finds; with a writer too many inside, a line would be lost."""
    names = [f"{host}" if hosts.count(host) == 1 else host for host in hosts]
    lines = [[sys.executable, "-c", COUNT, name, str(tmp_path / "lines"), "15"] for name in names]
    running = [subprocess.Popen(line, cwd=root) for line in lines]
    assert [process.wait(120) for process in running] == [0] * 3
    written = (tmp_path / "lines").read_text().splitlines()
    assert sorted(written) == sorted(f"{name} {number}" for name in names for number in range(15))
    assert {path.name for path in tmp_path.iterdir()} == {"lines", ".lines.lock"}


def test_the_beat_is_written_over_and_the_rest_stays(tmp_path: Path) -> None:
    with locked(tmp_path):
        first = ownership.read(tmp_path / ".lock")
        deadline = time.monotonic() + 60
        while (now := ownership.read(tmp_path / ".lock")) == first:
            assert time.monotonic() < deadline
            time.sleep(BEAT)
        assert first is not None
        assert now is not None
        assert now[:-1] == first[:-1]
        assert int(now.beat) > int(first.beat)
        assert json.loads((tmp_path / ".lock").read_text()[: -ownership.DIGITS])[0] == now.token


def test_a_file_is_locked_by_a_file_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "table.csv"
    with locked_file(file), pytest.raises(StoreError, match=r"table.csv is in use"), locked_file(file):
        pytest.fail("two held the lock")
    assert [path.name for path in tmp_path.iterdir()] == [".table.csv.lock"]
    assert lock.RETRY_SECONDS < 1


def test_a_run_is_copied_while_others_take_its_lock_and_write(tmp_path: Path) -> None:
    """Locks and drafts may be gone before they are copied: a copy has the run's files, and a lock of nobody."""
    run = tmp_path / "run"
    manifest.begin(run)
    write_bytes(run / layout.SUMMARY, b"{}")
    (run / layout.LOCK).write_text("an owner")
    passing = [".lock.next", ".lock.0123456789abcdef.claim", ".lock.0123456789abcdef.shared"]
    passing += [layout.draft(run / name, "01234567-89-ab").name for name in (layout.META, layout.METRICS)]
    for name in passing:
        (run / name).touch()
    copy = copied(run, tmp_path / "copy")
    assert sorted(path.name for path in copy.iterdir()) == sorted([layout.LOCK, layout.MANIFEST, layout.SUMMARY])
    assert (copy / layout.LOCK).read_bytes() == b""
