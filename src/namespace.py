"""Every module has one name, which begins with `icl_lab`; a room that is imported by another name says so.

Two names would be two modules, each with registries and classes of its own. Uses only the standard library, as old
Pythons have it: every room checks its name first.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec

PACKAGE = "icl_lab"
FOLDER = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # which holds the package


def check(name: str) -> None:
    """`ImportError` if a room is imported as `name` from outside of `icl_lab`; `python -m ROOM.X` is a door to it."""
    if name.startswith(f"{PACKAGE}."):
        return
    if not _is_run():
        raise ImportError(sentence(name), name=name)
    sys.meta_path.insert(0, _Door(name))


def sentence(name: str) -> str:
    """What to write in place of `import NAME`."""
    room, _, rest = name.rpartition(".")
    instead = f"from {PACKAGE}.{room} import {rest}" if room else f"from {PACKAGE} import {name}"
    return f"no module is called {name}, since all are below {PACKAGE}: write `{instead}`"


class _Door(MetaPathFinder):
    """Refuses imports from a room that stands open for `python -m ROOM.X` alone."""

    def __init__(self, room: str):
        self.room = room

    def find_spec(self, name: str, path: Sequence[str] | None, target: object = None) -> ModuleSpec | None:
        """`ImportError` for a module of the room, unless it is the one to be run."""
        if name.startswith(f"{self.room}.") and not _is_run():
            raise ImportError(sentence(name), name=name)
        return None


def _is_run() -> bool:
    """Whether Python is looking for the module that `python -m` or `runpy` is to run."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "_get_module_details" and frame.f_globals.get("__name__") == "runpy":
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False
