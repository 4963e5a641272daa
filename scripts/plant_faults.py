"""Plants faults in a copy of the tree, one at a time, and says which of them the tests of CI catch.

python -m scripts.plant_faults [--list] [--only NAME ...] [--from NAME] [--all]

tests/faults.toml lists them. A fault is caught if a test fails with it that passes without it. Nothing is planted in
the tree itself.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from icl_lab.lab import cli
from icl_lab.lab.flag_types import Number
from icl_lab.src.checks import require
from icl_lab.src.words import did_you_mean
from icl_lab.store import layout

ROOT = Path(__file__).resolve().parent.parent
FAULTS = ROOT / "tests/faults.toml"
OF_THE_LIST = "tests/scripts/test_plant_faults.py"  # it fails with any fault planted, whatever that breaks
LEFT_OUT = {".git", ".venv", ".pytest_cache", "runs", "figs"}  # of the copy
SELECTION = ("-m", "not slow")  # those of `make test` and `make test-robust`
PASSED, FAILED = 0, 1  # exit statuses of pytest


class Fault(NamedTuple):
    """A text that stands in a file exactly once, what replaces it, and the test files of which one must fail."""

    name: str
    breaks: str
    file: str
    text: str
    replacement: str
    tests: tuple[str, ...]


class Outcome(NamedTuple):
    """What became of a fault: "caught" or what else, and the test that failed first."""

    status: str
    test: str = ""


def read_faults(path: Path = FAULTS) -> list[Fault]:
    """The faults of the list."""
    listed = tomllib.loads(path.read_text(encoding="utf-8"))
    return [Fault(name=name, **{**entry, "tests": tuple(entry["tests"])}) for name, entry in listed.items()]


def planted(fault: Fault, root: Path) -> str:
    """The fault's file with the fault in it; `ConfigError` unless its text stands there exactly once."""
    path = root / fault.file
    require(path.is_file(), f"the fault {fault.name}: there is no {fault.file}")
    content = path.read_text(encoding="utf-8")
    count = content.count(fault.text)
    require(count == 1, f"the fault {fault.name}: its text stands {count} times in {fault.file}, not once")
    return content.replace(fault.text, fault.replacement)


def tried(fault: Fault, everywhere: bool, seconds: float) -> Outcome:
    """Plants a fault in a fresh copy of the tree and runs its test files there, or all tests."""
    with tempfile.TemporaryDirectory(prefix="fault-") as folder:
        copy = Path(folder, "tree")
        shutil.copytree(ROOT, copy, symlinks=True, ignore=_left_out)
        (copy / ".venv").symlink_to((ROOT / ".venv").resolve())
        (copy / fault.file).write_text(planted(fault, ROOT), encoding="utf-8")
        try:
            status, test = _pytest(copy, [f"--ignore={OF_THE_LIST}"] if everywhere else fault.tests, seconds)
            if status == PASSED:
                return Outcome("missed")
            if status != FAILED:
                return Outcome(f"pytest ended with {status}", test)
            shutil.copy2(ROOT / fault.file, copy / fault.file)  # with its date, so that nothing compiled is stale
            without, _ = _pytest(copy, [test], seconds)
        except subprocess.TimeoutExpired:
            return Outcome(f"not done in {seconds:g} s")
    return Outcome("caught" if without == PASSED else "fails without it", test)


def _left_out(folder: str, names: list[str]) -> set[str]:
    return layout.not_copied(folder, names) | (LEFT_OUT & {*names} if folder == str(ROOT) else set())


def _pytest(tree: Path, words: Sequence[str], seconds: float) -> tuple[int, str]:
    """pytest's exit status, and the test function that failed first."""
    command = [sys.executable, "-m", "pytest", *SELECTION, "-x", "-q", "-n", "0", *words]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    # compiled files are known by the second and the size of their source, which a fault may leave as they are
    pipes["env"] = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    with subprocess.Popen(command, cwd=tree, start_new_session=True, **pipes) as process:
        try:
            said, _ = process.communicate(timeout=seconds)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)  # what its tests began, too
            raise
    failed = re.search(r"^(?:FAILED|ERROR) ([^\s\[]+)", said, re.M)
    return process.returncode, failed[1] if failed else ""


def chosen(faults: Sequence[Fault], only: Sequence[str], first: str | None) -> list[Fault]:
    """The faults of these names, or all from one on; `ConfigError` for a name that none has."""
    names = [fault.name for fault in faults]
    for name in (*only, *([first] if first else [])):
        require(name in names, f"there is no fault {name!r}{did_you_mean(name, names)}")
    return [fault for fault in faults[names.index(first) if first else 0 :] if not only or fault.name in only]


def parser() -> cli.Parser:
    """The flags."""
    built = cli.Parser("scripts.plant_faults", "Plants faults in a copy of the tree: the tests of CI must catch each.")
    built.needs("pytest", when=lambda flags: not flags.list)
    built.add_argument("--list", action="store_true", help="list the faults, and plant none")
    cli.add_list(built, "--only", str, [], "the faults to plant, all if not given")
    built.add_argument(
        "--from", dest="first", metavar="NAME", help="first fault to plant, to continue where a stopped run was"
    )
    built.add_argument("--all", action="store_true", help="run all tests, not only the files that a fault names")
    built.add_argument(
        "--seconds", type=Number(1.0), default=900.0, help="time limit for the tests of one fault, in seconds"
    )
    return built


def main(argv: list[str]) -> int:
    """The command line; 1 if a fault was not caught."""
    flags = parser().parse(argv)
    faults = chosen(read_faults(), flags.only, flags.first)
    for fault in faults:
        planted(fault, ROOT)  # before the first is tried
    if flags.list:
        for fault in faults:
            print(f"{fault.name:34} {fault.file:36} {fault.breaks}")
        return 0
    caught = 0
    for fault in faults:
        began = time.monotonic()
        status, test = tried(fault, flags.all, flags.seconds)
        caught += status == "caught"
        print(f"{status:8} {fault.name:34} {time.monotonic() - began:5.0f} s  {test or fault.breaks}", flush=True)
    print(f"{caught} of {len(faults)} faults are caught")
    return 0 if caught == len(faults) else 1


if __name__ == "__main__":
    cli.launch(main)
