"""Append-only files of JSON lines: appended lines are synced to disk, and an incomplete line is ignored."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from icl_lab.store.readers import reading
from icl_lab.store.replacing import unshare


def append(path: Path, values: Iterable[Mapping[str, Any]], begin: bool = False) -> None:
    """Appends lines in one write, after emptying the file if `begin`; never writes through a link."""
    unshare(path)
    lines = b"".join(json.dumps(value).encode() + b"\n" for value in values)
    how = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | (os.O_TRUNC if begin else os.O_APPEND)
    descriptor = os.open(path, how, 0o666)
    try:
        size = os.fstat(descriptor).st_size
        if size and os.pread(descriptor, 1, size - 1) != b"\n":
            lines = b"\n" + lines  # ends an incomplete line
        if os.write(descriptor, lines) < len(lines):
            os.ftruncate(descriptor, size)  # some of the lines alone would mean something else
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(descriptor)
    except OSError as error:
        error.filename = str(path)
        raise
    finally:
        os.close(descriptor)


def entries(path: Path) -> Iterator[Mapping[str, Any]]:
    """The objects in a journal, none if the file does not exist."""
    if not path.exists():
        return
    with reading(path):
        lines = path.read_bytes().split(b"\n")[:-1]
    for line in lines:
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            yield value
