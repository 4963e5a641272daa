"""Files of JSON lines that only grow: an added line is on disk, and one that a kill cut off says nothing."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from store.readers import reading


def append(path: Path, values: Iterable[Mapping[str, Any]], begin: bool = False) -> None:
    """Adds lines, all at once, to the journal or to a new one; not through a link."""
    lines = b"".join(json.dumps(value).encode() + b"\n" for value in values)
    how = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | (os.O_TRUNC if begin else os.O_APPEND)
    descriptor = os.open(path, how, 0o666)
    try:
        size = os.fstat(descriptor).st_size
        if size and os.pread(descriptor, 1, size - 1) != b"\n":
            lines = b"\n" + lines  # ends the line that was cut off
        if os.write(descriptor, lines) < len(lines):
            os.ftruncate(descriptor, size)  # half of the lines would say something else
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(descriptor)
    except OSError as error:
        error.filename = str(path)
        raise
    finally:
        os.close(descriptor)


def entries(path: Path) -> Iterator[Mapping[str, Any]]:
    """The objects in a journal's lines; there are none where there is no journal."""
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
