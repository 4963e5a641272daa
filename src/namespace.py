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
FORMER = {  # modules and rooms that stood at the root in earlier versions -> where they are below the package
    **{name: "lab." + name for name in ("caches", "cli", "command_end", "compile_cache", "configs", "cpu_quota")},
    **{name: "lab." + name for name in ("environment", "environment_variables", "executors", "flag_types")},
    **{name: "lab." + name for name in ("plugin_digest", "plugin_files", "plugins", "regular_file")},
    "curricula": "src",
    "languages": "families.languages",
}
FOLDER = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # which holds the package


class Misnamed(ImportError):
    """A module is imported by another name than its own; the message is one sentence, which says what to write."""


def check(name: str) -> None:
    """`Misnamed` if a room is imported as `name` from outside of `icl_lab`; `python -m ROOM.X` is a door to it."""
    if name.startswith(f"{PACKAGE}."):
        return
    if not _is_run():
        raise Misnamed(sentence(name), name=name)
    sys.meta_path.insert(0, _Door(name))


def sentence(name: str) -> str:
    """What to write in place of `import NAME`."""
    first, dot, inside = name.partition(".")
    room, _, rest = (FORMER.get(first, first) + dot + inside).rpartition(".")
    instead = f"from {PACKAGE}.{room} import {rest}" if room else f"from {PACKAGE} import {rest}"
    return f"no module is called {name}, since all are below {PACKAGE}: write `{instead}`"


class _Door(MetaPathFinder):
    """Refuses imports from a room that stands open for `python -m ROOM.X` alone."""

    def __init__(self, room: str):
        self.room = room

    def find_spec(self, name: str, path: Sequence[str] | None, target: object = None) -> ModuleSpec | None:
        """`Misnamed` for a module of the room, unless it is the one to be run."""
        if name.startswith(f"{self.room}.") and not _is_run():
            raise Misnamed(sentence(name), name=name)
        return None


def is_of_ours(name: str) -> bool:
    """Whether this is the name of a room, or was that of a module or a room in an earlier version."""
    first = name.partition(".")[0]
    return first in FORMER or os.path.exists(os.path.join(FOLDER, PACKAGE, first, "__init__.py"))


def _is_run() -> bool:
    """Whether Python is looking for the module that `python -m` or `runpy` is to run."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "_get_module_details" and frame.f_globals.get("__name__") == "runpy":
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False
