"""Ends commands of the repository without a traceback, from their first import on.

`lab.environment` imports this before anything else, and this only what Python has loaded already.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sys import UnraisableHookArgs
    from types import FrameType, TracebackType
    from typing import NoReturn

CONSOLE_SCRIPT = "icl-lab"  # of an installation, which runs any command
INTERRUPTED = 128 + 2  # the exit status after Ctrl-C


class UnusableEnvironment(Exception):
    """The environment must be changed before anything can run; the message is one sentence for the user."""


def end(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """In place of `sys.excepthook`: ends a command as `lab.cli.launch` does; shows other errors as Python does."""
    if issubclass(kind, KeyboardInterrupt):
        sys.exit(INTERRUPTED)
    if issubclass(kind, UnusableEnvironment):
        exit_with(str(error))
    sys.__excepthook__(kind, error, trace)


def end_after_ignored(ignored: UnraisableHookArgs) -> None:
    """In place of `sys.unraisablehook`: Ctrl-C in a callback, as in JAX's at garbage collections, raises nothing there.

    The command would go on; it ends as if it were killed, which loses nothing on disk.
    """
    if issubclass(ignored.exc_type, KeyboardInterrupt):
        os._exit(INTERRUPTED)
    sys.__unraisablehook__(ignored)


def exit_with(sentence: str) -> NoReturn:
    """Ends the process with exit status 2 and one sentence on standard error."""
    if sys.stderr is not None:
        sys.stderr.write(f"error: {sentence}\n")
    sys.exit(2)


def is_command() -> bool:
    """Whether this process runs a module of the repository; "-m" stands for it while its package is imported."""
    path, folder = "".join(sys.argv[:1]), os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    is_inside = path.endswith(".py") and not os.path.relpath(path, folder).startswith(".")  # nor in .venv
    return path == "-m" or os.path.basename(path) == CONSOLE_SCRIPT or is_inside


def typed(module: str) -> str:
    """How a command is called: as this process was, by `icl-lab` in any folder or by `python -m` from the root."""
    words = getattr(sys, "orig_argv", [])[1:3]
    is_script = "".join(words[:1]).endswith(os.sep + CONSOLE_SCRIPT) or words == ["-m", "icl_lab"]
    return f"{CONSOLE_SCRIPT} {module}" if is_script else f"python -m {module}"


def interrupt(number: int, frame: FrameType | None) -> None:
    """The handler of Ctrl-C: as Python's own, but in an import the process ends at once.

    An exception there may arise where a package's C++ code calls Python, as JAX's does, and then the process aborts.
    """
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            os._exit(INTERRUPTED)
        frame = frame.f_back
    raise KeyboardInterrupt


def _install() -> None:
    sys.excepthook = end
    sys.unraisablehook = end_after_ignored
    import signal  # only now: it imports much

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else it is ignored, as in the background
        signal.signal(signal.SIGINT, interrupt)


if is_command():
    _install()
