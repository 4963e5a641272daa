"""Ends commands of the repository without a traceback, from their first import on.

`lab.environment` imports this before anything else, and this only what Python has loaded already.
"""

from __future__ import annotations

import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sys import UnraisableHookArgs
    from types import FrameType, TracebackType
    from typing import NoReturn

CONSOLE_SCRIPT = "icl-lab"  # of an installation, which runs any command
PACKAGE = "icl_lab"
ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))  # of a checkout, or of the installed package
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


def discard_output() -> int:
    """Nobody reads on, as behind `| head`: what is still printed goes nowhere. The exit status of such an end."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 128 + signal.SIGPIPE


def exit_with(sentence: str) -> NoReturn:
    """Ends the process with exit status 2 and one sentence on standard error."""
    if sys.stderr is not None:
        sys.stderr.write(f"error: {sentence}\n")
    sys.exit(2)


def is_command() -> bool:
    """Whether this process runs a module of the repository; "-m" stands for it while its package is imported."""
    path = "".join(sys.argv[:1])
    is_inside = path.endswith(".py") and not os.path.relpath(path, ROOT).startswith(".")  # nor in .venv
    return path == "-m" or os.path.basename(path) == CONSOLE_SCRIPT or is_inside


def typed(module: str) -> str:
    """How a reader calls a command: as this process was called, `icl-lab X`, `python -m icl_lab.X` or `python -m X`.

    Where Python calls the library: `python -m X` in the root of a checkout, else `icl-lab X` where that is installed.
    Advice is spelled so; what is written to files is spelled `python -m X`, whoever writes it.
    """
    words = getattr(sys, "orig_argv", [])[1:]
    package, _, inside = (words[words.index("-m") + 1] if "-m" in words[:-1] else "").partition(".")
    if "".join(words[:1]).endswith(os.sep + CONSOLE_SCRIPT):
        return f"{CONSOLE_SCRIPT} {module}"
    if package != PACKAGE and (is_command() or os.path.samefile(os.curdir, ROOT)):
        return f"python -m {module}"
    if package != PACKAGE and os.path.exists(os.path.join(os.path.dirname(sys.executable), CONSOLE_SCRIPT)):
        return f"{CONSOLE_SCRIPT} {module}"
    return f"python -m {PACKAGE}.{module}" if inside else f"python -m {PACKAGE} {module}"


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
