"""What is kept beside a run is the run's by its content; anything else there is left alone, be it where it may."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from icl_lab.store import StoreError, aside, layout
from tests.trust.damage import limited

pytestmark = pytest.mark.robust

NAME, OTHER = "0123abcd_step_00000030.npz", "0123abcd_step_00000060.npz"
CONTENT = b"traces \x00\n of a checkpoint"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return tmp_path / "run"


def kept(run: Path) -> bytes:
    """The bytes of the file that is kept beside the run."""
    return (layout.llc_aside(run) / NAME).read_bytes()


def test_it_is_read_as_it_was_written_by_its_run_alone(run: Path) -> None:
    aside.write(run, NAME, CONTENT, "a")
    aside.write(run, OTHER, b"", "a")
    assert aside.read(run, NAME, "a") == CONTENT
    assert aside.read(run, OTHER, "a") == b""
    assert aside.read(run, NAME, "b") is None
    assert aside.others(run, "a") == []
    assert aside.others(run, "b") == [layout.llc_aside(run) / name for name in (NAME, OTHER)]
    aside.write(run, NAME, b"of the next run", "b")  # ours to replace, by whatever run of this name
    assert aside.read(run, NAME, "b") == b"of the next run"
    aside.remove(run, NAME)
    assert aside.clear(run) == []
    assert not layout.llc_aside(run).exists()


def link(path: Path) -> None:
    path.rename(path.parent.parent / "target")
    path.symlink_to(path.parent.parent / "target")


def in_place(make: Callable[[Path], object]) -> Callable[[Path], None]:
    def put(path: Path) -> None:
        path.unlink()
        make(path)

    return put


# what is put in the place of a file that is kept
FOREIGN: dict[str, Callable[[Path], object]] = {
    "link": link,
    "dangling link": in_place(lambda path: path.symlink_to("nowhere")),
    "endless": in_place(lambda path: path.symlink_to("/dev/zero")),
    "pipe": in_place(os.mkfifo),
    "folder": in_place(Path.mkdir),
    "empty": lambda path: path.write_bytes(b""),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "longer": lambda path: path.write_bytes(path.read_bytes() + b"\n"),
    "flipped": lambda path: path.write_bytes(path.read_bytes().replace(b"traces", b"tracez")),
    "of another name": lambda path: path.write_bytes(path.read_bytes().replace(b"00000030", b"00000060")),
    "bare": lambda path: path.write_bytes(CONTENT),
    "text": lambda path: path.write_bytes(b"[" * 10**5),
    "null": lambda path: path.write_bytes(b'{"run": null}\n' + CONTENT),
}


def state(path: Path) -> tuple[object, ...]:
    """What is there, unread if it is no file."""
    status = os.lstat(path)
    content = path.read_bytes() if path.is_file() and not path.is_symlink() else None
    return status.st_ino, status.st_mode, status.st_mtime_ns, content


@pytest.mark.parametrize("what", FOREIGN)
def test_what_is_foreign_is_neither_read_nor_replaced_nor_removed(what: str, run: Path) -> None:
    aside.write(run, NAME, CONTENT, "a")
    place = layout.llc_aside(run) / NAME
    FOREIGN[what](place)
    before = state(place)
    with limited():
        assert aside.read(run, NAME, "a") is None
        assert aside.others(run, "a") == [place]
        for refused in (lambda: aside.write(run, NAME, b"", "a"), lambda: aside.check(run, [NAME])):
            with pytest.raises(StoreError, match=f"{NAME} was not written by the laboratory"):
                refused()
        aside.check(run, [OTHER])
        assert aside.clear(run) == [place]
    assert state(place) == before


@pytest.mark.parametrize("what", ["link", "file", "pipe"])
def test_a_folder_that_is_none_or_a_link_is_left_alone(what: str, run: Path, tmp_path: Path) -> None:
    folder = layout.llc_aside(run)
    aside.write(run, NAME, CONTENT, "a")
    folder.rename(tmp_path / "target")
    {"link": lambda: folder.symlink_to("target"), "file": folder.touch, "pipe": lambda: os.mkfifo(folder)}[what]()
    with limited():
        assert aside.read(run, NAME, "a") is None
        assert aside.others(run, "a") == aside.clear(run) == [folder]
        with pytest.raises(StoreError, match=r"\.run\.llc was not written by the laboratory"):
            aside.write(run, OTHER, b"", "a")
    assert os.listdir(tmp_path / "target") == [NAME]
    assert os.path.lexists(folder)


def test_drafts_of_processes_that_have_ended_go_too(run: Path) -> None:
    aside.write(run, NAME, CONTENT, "a")
    folder = layout.llc_aside(run)
    writer = aside.ownership.this_process().writer()
    dead = writer.rsplit("-", 1)[0] + "-1"
    theirs = [layout.draft(folder / NAME, writer), layout.draft(folder / "mine.txt", dead)]
    for path in (layout.draft(folder / NAME, dead), *theirs):
        path.touch()
    aside.clear(run)
    assert sorted(folder.iterdir()) == sorted(theirs)
