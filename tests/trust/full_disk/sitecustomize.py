"""Python imports this at its start when the folder is on PYTHONPATH: the disk is full at a chosen file.

FULL is `NAME:COUNT`: from the COUNT-th time on that a file of that name (or what is written beside it) is synced to
disk, there is no space left, for any file.
"""

import errno
import os

name, count = os.environ["FULL"].split(":")
left = int(count)
fsync = os.fsync


def failing(descriptor: int) -> None:
    """`os.fsync` on a disk that gets full."""
    global left
    target = os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}"))
    is_draft = target.startswith(f".{name}.") and target.endswith(".icl-lab.tmp")
    left -= target == name or is_draft
    if left <= 0:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    fsync(descriptor)


os.fsync = failing
