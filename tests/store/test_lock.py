"""One process at a time in a run directory, on one host or on several whose kernels know nothing of each other.

Hosts are processes with names of their own, without the kernel's locks. Beats come every tenth of a second here.
"""

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from store import StoreError, layout, lock, ownership
from store.atomic import replace_file
from store.lock import in_use, locked, locked_file

BEAT, STALE = 0.1, 1.5

# a process of a host: HOST FOLDER; it says when it holds the lock, and after each line of input does what that says
HOLD = f"""
import fcntl, sys, time
from pathlib import Path
from store import ownership
from store.atomic import replace_file
from store.lock import locked
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
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
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
    with locked(tmp_path):
        pass


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
            assert "was taken over by another process while this one stood still" in said
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


# --- kills while the owner changes ---


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
from store import ownership
from store.lock import locked_file
from store.atomic import replace_file
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
