"""Analyses of finished runs: a file has the numbers of an analysis and, at its end, its command.

`analysis.load_run(directory)` gives a finished run with its model.
"""

from typing import TYPE_CHECKING, Any

from icl_lab.lab.command_end import is_command
from icl_lab.lab.environment import check_variables  # it ends a process that lacks packages, before they are imported
from icl_lab.src import namespace

if TYPE_CHECKING:
    from icl_lab.analysis.loaded_run import load_run

namespace.check(__name__)

__all__ = ["load_run"]

if is_command():
    check_variables()  # before a module imports JAX, which answers other values with a traceback


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from icl_lab.analysis import loaded_run  # brings JAX, which runners import when their flags are valid

    return getattr(loaded_run, name)
