"""Folders of what is kept between processes: private, bounded, and nothing in them hangs or is believed by its name."""

import os
import socket
import stat
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from icl_lab.lab import caches

pytestmark = pytest.mark.robust

DAY = 86400.0


@pytest.mark.parametrize("given", ["", "relative/folder"])
def test_a_cache_home_that_is_no_absolute_path_does_not_count(
    given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the XDG base directory specification has it."""
    monkeypatch.setenv("XDG_CACHE_HOME", given)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert caches.user_folder("mine") == tmp_path / ".cache" / "mine"


def test_without_a_home_another_folder_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a user whom the system does not know, in a container."""

    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    with pytest.raises(caches.UnsafeFolder, match=r"there is no home folder .* set XDG_CACHE_HOME"):
        caches.user_folder("mine")


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o707, 0o720])
def test_a_folder_open_to_others_is_refused(mode: int, tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(mode)
    with pytest.raises(caches.UnsafeFolder, match="open is open to other users"):
        caches.private_folder(tmp_path / "open")


def test_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(caches.UnsafeFolder, match="link is a link, not a folder"):
        caches.private_folder(tmp_path / "link")


def test_another_users_folder_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "theirs").mkdir(mode=0o700)
    monkeypatch.setattr(os, "getuid", lambda: (tmp_path / "theirs").stat().st_uid + 1)
    with pytest.raises(caches.UnsafeFolder, match="theirs belongs to another user"):
        caches.private_folder(tmp_path / "theirs")


def test_a_folder_is_made_for_this_user_alone(tmp_path: Path) -> None:
    folder = caches.private_folder(tmp_path / "cache" / "mine")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert caches.private_folder(folder) == folder


@pytest.mark.parametrize(("most", "left"), [(1000, "abcd"), (350, "bcd"), (200, "cd"), (0, "")])
def test_those_used_longest_ago_go_first(most: int, left: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caches, "MOST_BYTES", most)
    for number, name in enumerate("abcd"):
        path = tmp_path / f"part-{number % 2}" / f"{name}-kept"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"x" * 100)
        os.utime(path, (1000 + number, 1))
    other = tmp_path / "part-0" / "notes.txt"
    other.write_bytes(b"x" * 5000)
    caches.tidy(tmp_path, "part-*/*-kept")
    assert {path.name[0] for path in tmp_path.rglob("*-kept")} == {*left}
    assert other.exists()


def test_drafts_stay_as_long_as_they_may_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ages = {"new.tmp": 0.0, "recent.tmp": caches.DRAFT_SECONDS / 2, "old.tmp": caches.DRAFT_SECONDS * 2, "old.txt": DAY}
    monkeypatch.setattr(caches.time, "time", lambda: 10 * DAY)
    for name, age in ages.items():
        (tmp_path / name).write_text("")
        os.utime(tmp_path / name, (10 * DAY - age,) * 2)
    caches.tidy(tmp_path, "*.kept")
    assert {path.name for path in tmp_path.iterdir()} == {"new.tmp", "recent.tmp", "old.txt"}


def sockets(place: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(place.name)


ODD: Mapping[str, Callable[[Path], object]] = {
    "pipe": os.mkfifo,
    "socket": sockets,
    "endless": lambda place: place.symlink_to("/dev/zero"),
    "another": lambda place: place.symlink_to("/etc/hostname"),
    "dangling": lambda place: place.symlink_to("nowhere"),
    "huge": lambda place: os.truncate(os.open(place, os.O_CREAT | os.O_WRONLY), 2000),
}


@pytest.mark.parametrize("kind", ODD)
def test_only_regular_files_are_read_and_any_are_replaced(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caches, "MOST_BYTES", 1000)
    monkeypatch.chdir(tmp_path)  # a socket's path must be short
    path = tmp_path / "one.kept"
    ODD[kind](path)
    with pytest.raises(OSError, match=r"\w"):
        caches.read(path)
    caches.write(path, b"whole")
    assert caches.read(path) == b"whole"
    assert [each.name for each in tmp_path.iterdir()] == ["one.kept"]
    ODD[kind](tmp_path / "two.kept")
    caches.tidy(tmp_path, "*.kept")
    assert not os.path.lexists(tmp_path / "two.kept")


def test_what_is_too_large_is_not_kept_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caches, "MOST_BYTES", 1000)
    with pytest.raises(OSError, match="it has more than"):
        caches.write(tmp_path / "one.kept", bytes(1001))
    assert not [*tmp_path.iterdir()]


def test_why_nothing_is_kept_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        caches.print_why("things of this test", "a reason\x1b")
    assert capsys.readouterr().err == "things of this test are not kept: a reason\\x1b\n"
