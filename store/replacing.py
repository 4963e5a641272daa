"""Replaces a file by a complete one: a draft in the same folder is written, synced, and then renamed."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from icl_lab.store import layout, ownership

BLOCK = 2**24  # bytes of a file in memory while it is copied


def replace(path: Path, blocks: Iterable[bytes]) -> None:
    """Replaces a file by these bytes, or creates it with its folder; `StoreError` if its run was taken over.

    The content is synced before the rename, the folder is not: after a power cut the complete older file may be there.
    Syncing the folder costs 2 ms a file and gains nothing, since a run can resume from an older checkpoint.
    """
    ownership.check(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = layout.draft(path, ownership.this_process().writer())
    with naming_file(path):
        _remove_drafts(path)
        try:
            with open(draft, "xb") as file:
                file.writelines(blocks)
                file.flush()
                os.fsync(file.fileno())
            ownership.check(path)
            _rename(draft, path)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise


def unshare(path: Path) -> None:
    """Before a file is changed in place: one with hard links, as `cp -al` makes them, becomes a file of its own.

    The others, which may be a backup of the run, keep their content.
    """
    with suppress(FileNotFoundError):
        status = os.lstat(path)
        if stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
            replace(path, _blocks(path))


def _blocks(path: Path) -> Iterator[bytes]:
    with open(path, "rb") as file:
        while block := file.read(BLOCK):
            yield block


def _rename(draft: Path, path: Path) -> None:
    """Gives a draft its name. Who takes a lock over removes the drafts, so that a late rename changes nothing."""
    try:
        os.replace(draft, path)
    except FileNotFoundError:
        ownership.check(path)
        raise


def _remove_drafts(path: Path) -> None:
    """Removes drafts of a file that killed processes of this host left."""
    for name in os.listdir(path.parent):
        target, writer = layout.draft_parts(name)
        if target == path.name and (not writer or ownership.has_ended(writer)):
            path.with_name(name).unlink(missing_ok=True)


@contextmanager
def naming_file(path: Path) -> Iterator[None]:
    """Makes every `OSError` name this file: errors from writing and syncing name none."""
    try:
        yield
    except OSError as error:
        error.filename, error.filename2 = str(path), None
        raise
