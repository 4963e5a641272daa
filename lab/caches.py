"""Folders of what is kept between processes, private to the user: what lies there is believed, or executed.

A cache is a folder in the user's cache folder. Its files have at most `MOST_BYTES` together: the least recently used
are deleted, and with them drafts that killed processes left and what is no regular file. It may be deleted at any time.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
import tempfile
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

from icl_lab.lab import regular_file
from icl_lab.src.checks import UserError
from icl_lab.src.words import printable

MOST_BYTES = 2**29
DRAFT = ".tmp"
DRAFT_SECONDS = 3600.0  # after which a draft's process has ended: each is written in seconds


class UnsafeFolder(UserError):
    """Nothing can be kept there."""


def user_folder(name: str) -> Path:
    """A private folder in the user's cache folder ($XDG_CACHE_HOME if that is an absolute path, else ~/.cache)."""
    chosen = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return private_folder((chosen if chosen.is_absolute() else _home() / ".cache") / name)


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError:
        raise UnsafeFolder("there is no home folder for them; set XDG_CACHE_HOME to a folder") from None


def private_folder(folder: Path) -> Path:
    """Creates the folder if needed; `UnsafeFolder` unless it belongs to the user with mode 700."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    info = folder.lstat()
    if not stat.S_ISDIR(info.st_mode):
        raise UnsafeFolder(f"{folder} is a link, not a folder; files there are trusted, so it must be a real folder")
    if info.st_uid != os.getuid():
        raise UnsafeFolder(f"{folder} belongs to another user; set XDG_CACHE_HOME to a folder of your own")
    if stat.S_IMODE(info.st_mode) != 0o700:
        raise UnsafeFolder(f"{folder} is open to other users; check its contents, then `chmod 700 {folder}`")
    return folder


def read(path: Path) -> bytes:
    """The content of a kept file, which must be a regular one and no link; `OSError` for anything else."""
    return regular_file.read(path, MOST_BYTES, follow_links=False)


def write(path: Path, content: bytes) -> None:
    """Keeps a file, whole or not at all; whatever has its name is replaced."""
    if len(content) > MOST_BYTES:
        raise OSError(errno.EFBIG, f"it has more than {MOST_BYTES >> 20} MiB", str(path))
    with tempfile.NamedTemporaryFile(dir=path.parent, suffix=DRAFT, delete=False) as file:
        draft = Path(file.name)
        try:
            file.write(content)
            file.close()
            os.replace(draft, path)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise


def tidy(folder: Path, files: str, counted: str = "") -> None:
    """Deletes old drafts, what is no regular file, and of the `files`, a pattern, the least recently used.

    Other files stay; those of the pattern `counted` take their part of the bound.
    """
    now = time.time()
    for draft in folder.glob(f"*{DRAFT}"):
        with suppress(FileNotFoundError):  # another process tidies too
            if now - draft.lstat().st_mtime > DRAFT_SECONDS:
                draft.unlink()
    kept = []
    for path in folder.glob(files):
        with suppress(FileNotFoundError):
            info = path.lstat()
            if stat.S_ISREG(info.st_mode):
                kept.append((max(info.st_mtime_ns, info.st_atime_ns), info.st_size, path))
            elif not stat.S_ISDIR(info.st_mode):
                path.unlink()
    left = sum(size for _, size, _ in kept) + sum(map(_size, folder.glob(counted) if counted else ()))
    for _, size, path in sorted(kept):
        if left <= MOST_BYTES:
            return
        path.unlink(missing_ok=True)
        left -= size


def _size(path: Path) -> int:
    try:
        info = path.lstat()
    except FileNotFoundError:
        return 0
    return info.st_size if stat.S_ISREG(info.st_mode) else 0


@cache
def print_why(what: str, why: str) -> None:
    """Says on standard error why nothing is kept, once."""
    print(f"{what} are not kept: {printable(why)}", file=sys.stderr)
