"""Every command under one name: icl-lab COMMAND [flags], in any folder.

    icl-lab run lsa1            python -m runners.run lsa1, from the root of a checkout
    icl-lab llc --run DIR       python -m analysis.llc --run DIR
    icl-lab sweeps.run lsa1     of rooms that share a name, all but the first carry their room

A command is a module that runs, which its file's last statement says; the list of them imports none.
"""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from icl_lab.lab.command_end import CONSOLE_SCRIPT, discard_output, exit_with
from icl_lab.lab.environment import ROOT
from icl_lab.src.words import did_you_mean, printable

COMMAND = 'if __name__ == "__main__":'
STARTED_BY_OTHERS = (
    "lab.executors.worker",
    "runners.check_native",
    "benchmarks.compiling",
    "benchmarks.plain_loop",
    "benchmarks.processes",
)
# heading -> the folders, or files, whose commands stand below it
GROUPS = {
    "Training": ("runners",),
    "Sweeps": (
        *("sweeps", "eval_order", "eval_noise", "eval_diversity", "eval_languages", "eval_tokens"),
        "eval_functions",
    ),
    "Studies": ("studies",),
    "Analyses": ("analysis", "baselines"),
    "Figures": ("plots",),
    "Run directories": ("store",),
    "Tools": ("scripts", "benchmarks"),
}


def commands() -> list[str]:
    """The modules that users type, in the order of their groups."""
    return [name for places in GROUPS.values() for name in of_group(places)]


def of_group(places: Iterable[str]) -> Iterator[str]:
    """The commands in these folders or files."""
    for place in places:
        path = Path(ROOT, place)
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path.with_suffix(".py")]:
            name = ".".join(file.relative_to(ROOT).with_suffix("").parts)
            if name not in STARTED_BY_OTHERS and COMMAND in file.read_text(encoding="utf-8").splitlines():
                yield name.removesuffix(".__main__")


def file_of(name: str) -> Path:
    """The file of a command."""
    place = Path(ROOT, *name.split("."))
    return place / "__main__.py" if place.is_dir() else place.with_suffix(".py")


def short_names(names: Iterable[str]) -> dict[str, str]:
    """What is typed -> the command: its last word where no command before it has that, else with its room."""
    typed: dict[str, str] = {}
    for name in names:
        room, _, last = name.rpartition(".")
        free = "." not in room and last not in typed
        typed[last if free else name] = name
    return typed


def listing() -> str:
    """The commands by group, with a line each."""
    typed = {name: word for word, name in short_names(commands()).items()}
    width = max(map(len, typed.values()))
    lines = [f"usage: {CONSOLE_SCRIPT} COMMAND [flags]", "", f"{CONSOLE_SCRIPT} COMMAND --help lists its flags."]
    for group, places in GROUPS.items():
        lines += ["", f"{group}:"]
        lines += [f"  {typed[name]:{width}}  {_first_line(file_of(name))}" for name in of_group(places)]
    return "\n".join(lines)


def _first_line(file: Path) -> str:
    """What a module says of itself first, without the command that follows."""
    text = file.read_text(encoding="utf-8")
    first = text.partition('"""')[2].partition("\n")[0].partition('"""')[0]
    return first.partition(": python -m")[0].removesuffix(".")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command as `python -m` does, with the words behind its name; lists all without one."""
    name, *words = (sys.argv[1:] if argv is None else argv) or ["--help"]
    if name in ("-h", "--help"):
        try:
            print(listing(), flush=True)
        except BrokenPipeError:
            return discard_output()
        return 0
    names = commands()
    typed = short_names(names) | {each: each for each in names}
    module = typed.get(name.replace("-", "_"))
    if module is None:
        near = did_you_mean(name, typed)
        exit_with(
            f"{CONSOLE_SCRIPT} has no command {printable(name)!r}{near or ''}; {CONSOLE_SCRIPT} --help lists them"
        )
    sys.argv = [os.fspath(file_of(str(module))), *words]
    runpy.run_module(f"icl_lab.{module}", run_name="__main__", alter_sys=True)
    return 0
