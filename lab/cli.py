"""Parses the command line of every command, and turns errors into one sentence and an exit status.

Flags are not abbreviated; dash and underscore are the same; lists take commas or spaces. Wrong input is one sentence on
standard error and exit status 2. Imports nothing heavy.
"""

from __future__ import annotations

import argparse
import codecs
import contextlib
import io
import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

from absl.flags import argparse_flags

from icl_lab.lab import command_end, environment, plugins
from icl_lab.lab.flag_types import of_field
from icl_lab.src.checks import UsageError as UsageError
from icl_lab.src.checks import UserError
from icl_lab.src.words import CONFIG_PREFIX, did_you_mean, printable

CONFIG_HELP = "--config.help"
PLUGIN = "--plugin"
OUT_OF_MEMORY = "not enough memory for arrays of these sizes; use fewer tasks or a smaller model"


SEPARATORS: dict[type, str] = {list: ",", tuple: "/"}  # of default values in a help text
NEGATIVE = re.compile(r"-(\d[\d_]*\.?\d*|\.\d+)(e[-+]?\d+)?$|-inf(inity)?$|-nan$", re.IGNORECASE)  # no flags


class Parser(argparse_flags.ArgumentParser):
    """An argparse parser without abbreviations, which reports errors in one sentence and suggests the nearest flag."""

    def __init__(self, prog: str, description: str):
        super().__init__(  # type: ignore[no-untyped-call]  # absl has no annotations
            prog=command_end.typed(prog),
            description=description,
            allow_abbrev=False,
            inherited_absl_flags=None,
            formatter_class=_Help,
        )
        self._negative_number_matcher = NEGATIVE  # argparse takes -1e-3 for a flag
        self.config_keys: Iterable[str] = ()  # short names of the config's fields, to suggest --config.KEY
        self._needs: list[tuple[str, Callable[[argparse.Namespace], object]]] = []
        self.add_argument(PLUGIN, action=_PluginFlag, metavar="FILE", help="load a plugin; may be given several times")

    def needs(self, package: str, when: Callable[[argparse.Namespace], object] = lambda flags: True) -> None:
        """Declares a package of `environment.EXTRAS` that the command needs, with flags for which `when` is true."""
        self._needs.append((package, when))

    def parse(self, argv: Sequence[str]) -> argparse.Namespace:
        """The values of the flags; `UsageError` if they are invalid."""
        for word in argv:
            if word.startswith("-") and word.endswith("=--"):  # argparse drops such a value
                raise UsageError(f"argument {word[:-3]}: expected one argument")
        arguments: argparse.Namespace
        words = [_underscored(word) for word in argv]
        arguments, rest = self.parse_known_args(words)  # type: ignore[no-untyped-call]  # absl's
        if rest:
            flag = rest[0].split("=")[0]
            known = [option for action in self._actions for option in action.option_strings]
            known += [f"{CONFIG_PREFIX}{key}" for key in self.config_keys]
            raise UsageError(f"unknown argument {flag}{did_you_mean(flag, known)}")
        for package, when in self._needs:
            if when(arguments):
                environment.check_extra(package)
        return arguments

    def error(self, message: str) -> NoReturn:
        """Called by argparse for wrong flags."""
        raise UsageError(message)


class _Help(argparse.HelpFormatter):
    """Adds a flag's default to its help, as it would be typed."""

    def _get_help_string(self, action: argparse.Action) -> str:
        text, default = action.help or "", default_of(action)
        return f"{text} (default: {default.replace('%', '%%')})" if default else text


def default_of(action: argparse.Action) -> str:
    """A flag's default as it would be typed; empty if it has none to show."""
    default = action.default
    if action.nargs == 0 or default is None or default == []:
        return ""
    separator = SEPARATORS.get(type(default))
    return separator.join(map(str, default)) if separator else str(default)


class _PluginFlag(argparse.Action):
    """Shows `--plugin` in the help; `launch` removes the flag before the command line is parsed."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        raise UsageError(f"{PLUGIN} is a flag of commands; in Python, call plugins.load({values!r}) first")


class _Extend(argparse.Action):
    """Reads a list separated by commas, spaces or both; an item may stand for a range."""

    def __init__(self, option_strings: Sequence[str], dest: str, item: Callable[[str], Any] = str, **kwargs: Any):
        super().__init__(option_strings, dest, nargs="+", **kwargs)
        self.item = of_field(item)

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        words = [word for value in values for word in re.split(r"[,\s]+", value) if word]
        if not words:
            raise UsageError(f"{option_string} needs at least one value")
        read = [self._read(word, option_string) for word in words]
        setattr(namespace, self.dest, [each for item in read for each in (item if isinstance(item, range) else [item])])

    def _read(self, word: str, flag: str | None) -> Any:
        try:
            return self.item(word)
        except argparse.ArgumentTypeError as error:
            raise UsageError(f"argument {flag}: {error}") from None


def add_list(
    parser: Parser, flag: str | Sequence[str], item: Callable[[str], Any], default: Sequence[Any], text: str
) -> None:
    """Adds a flag, with one or several names, whose value is a list."""
    names = [flag] if isinstance(flag, str) else flag
    parser.add_argument(*names, action=_Extend, item=item, default=list(default), help=text)


def add_word_lists(parser: Parser, flags: Iterable[Any]) -> None:
    """Adds flags whose value is a list of words, one or several to an argument, which `flag.read` parts."""
    for flag in flags:
        parser.add_argument(f"--{flag.name}", nargs="+", help=flag.text)


def add_former_names(parser: argparse._ActionsContainer, flag: str, names: Iterable[str]) -> None:
    """Lets names that a flag had in earlier versions stand for it; no help lists them."""
    action = parser._option_string_actions[f"--{flag}"]
    parser._option_string_actions |= {f"--{name}": action for name in names}


def add_config_help(parser: Parser) -> None:
    """Adds the flag that lists the fields of the config."""
    parser.add_argument(CONFIG_HELP, dest="config_help", action="store_true", help="list the config's fields and exit")


def add_quiet(parser: Parser) -> None:
    """Adds the flag `--quiet`."""
    parser.add_argument("--quiet", action="store_true", help="print only results and errors, no progress or device")


def split_config_flags(argv: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Splits `--config.key=value` and `--config.key value` from a command line: (the rest, values by key)."""
    rest: list[str] = []
    values: dict[str, str] = {}
    words = iter(argv)
    for word in words:
        if not word.startswith(CONFIG_PREFIX) or word == CONFIG_HELP:
            rest.append(word)
            continue
        key, equals, value = word.removeprefix(CONFIG_PREFIX).partition("=")
        if not equals and ((value := next(words, "")) == "" or value.startswith("--")):
            raise UsageError(f"{word} needs a value")
        values[key.replace("-", "_")] = value
    return rest, values


def split_plugin_flags(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """Splits `--plugin FILE` and `--plugin=FILE` from a command line: (the rest, the files in order)."""
    rest: list[str] = []
    files: list[str] = []
    words = iter(argv)
    for word in words:
        flag, equals, file = word.partition("=")
        if flag != PLUGIN:
            rest.append(word)
            continue
        if not equals:
            file = next(words, "")
        if not file or (not equals and file.startswith("--")):
            raise UsageError(f"argument {PLUGIN}: expected one argument")
        files.append(file)
    return rest, files


def plugin_flags(files: Iterable[object]) -> list[str]:
    """The flags that load these files in another process."""
    return [word for file in files for word in (PLUGIN, str(file))]


def load_plugins(files: Sequence[str]) -> None:
    """Loads plugins; `PluginError` for a broken one. Their output goes to standard error, since it is not a result."""
    for file in files:
        with contextlib.redirect_stdout(sys.stderr):
            plugins.load(file)


def launch(main: Callable[[list[str]], int | None]) -> NoReturn:
    """Runs a command with this process's arguments and exits: 0, or 2 with one sentence for a `UserError`."""
    _replace_unprintable()
    expected = (UserError, argparse.ArgumentTypeError, environment.UnusableEnvironment)
    try:
        environment.num_threads()
        environment.check_variables()
        environment.check_matplotlib_backend()
        argv, files = split_plugin_flags(sys.argv[1:])
        load_plugins(files)
        status = main(argv) or 0
        _flush()
    except expected as error:
        status = _print_error(str(error))
    except BrokenPipeError:  # the reader of the output, such as `head`, has ended
        status = command_end.discard_output()
    except OSError as error:
        status = _print_error(f"{error.filename or 'a file'}: {os.strerror(error.errno) if error.errno else error}")
    except MemoryError:
        status = _print_error(OUT_OF_MEMORY)
    except RuntimeError as error:
        if "RESOURCE_EXHAUSTED" not in str(error):  # XLA's error, whose class is not imported here
            raise
        status = _print_error(OUT_OF_MEMORY)
    except KeyboardInterrupt:
        status = command_end.INTERRUPTED
    sys.exit(status)


ASCII_SPELLINGS = {"±": "+-", "‖": "||", "Δ": "Delta ", "∞": "inf", "µ": "u", "√": "sqrt ", "λ": "lambda "}


def _replace_unprintable() -> None:
    """Makes the terminal replace characters that it cannot show, instead of failing on them."""
    codecs.register_error("spelled", _ascii_spelling)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="spelled")


def _ascii_spelling(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    characters = error.object[error.start : error.end]
    return "".join(
        ASCII_SPELLINGS.get(c) or c.encode("ascii", "backslashreplace").decode() for c in characters
    ), error.end


def _flush() -> None:
    """Flushes standard output, so that a write error is reported here and not by Python at its exit."""
    if sys.stdout is None:  # Python was started with it closed
        return
    try:
        sys.stdout.flush()
    except OSError as error:
        command_end.discard_output()
        error.filename = "standard output"
        raise


def _print_error(message: str) -> int:
    if sys.stderr is not None:  # print would use standard output instead
        print(f"error: {printable(' '.join(message.split()))}", file=sys.stderr)
    return 2


def _underscored(word: str) -> str:
    if not word.startswith("--"):
        return word
    flag, equals, value = word.partition("=")
    return "--" + flag[2:].replace("-", "_") + equals + value
