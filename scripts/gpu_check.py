"""Checks a GPU in one command, and leaves one file to send back.

python -m scripts.gpu_check

Each part is a command of its own, killed and resumed as it is by itself. The file is written after every part; a part
that is in it at this commit, with a result and without an error, is not done again. Claims are measured on runs that
the check trains itself, on this device. Without a GPU the same parts run on the CPU, and the file says so.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from icl_lab.lab import cli
from icl_lab.lab.environment import check_devices
from icl_lab.lab.flag_types import shown
from icl_lab.src.words import printable
from icl_lab.store import outputs
from icl_lab.store.atomic import json_bytes
from icl_lab.store.outputs import out_file
from icl_lab.store.provenance import git_commit, versions
from icl_lab.store.readers import StoreError, expecting, read_json
from icl_lab.store.rundir import now
from icl_lab.studies.ledger import TABLE
from icl_lab.studies.study import all_studies

WORK = Path("runs/gpu_check")  # what the parts write besides their results, in a folder for each device
NUMERICAL = ("src", "baselines", "families")  # folders of tests that compute
QUICK_CLAIMS = ("one_step_size", "size_5_ratio")  # one without runs, and one of a minute's training
WRITER = "gpu_check"
HIGHEST = {"JAX_DEFAULT_MATMUL_PRECISION": "highest"}  # of the tests; whatever trains or measures asks for it itself

Words = list[str]


class Part(NamedTuple):
    """A part of the check: its commands in a folder, in full or in short, and what of their files there is kept."""

    commands: Callable[[Path, bool], list[Words]]
    result: Callable[[Path], Any]


def _tests(work: Path, quick: bool) -> list[Words]:
    folders = ["tests/src/test_attn.py"] if quick else [f"tests/{folder}" for folder in NUMERICAL]
    return [
        [
            "-m",
            "pytest",
            "-q",
            "-m",
            "not slow",
            "-p",
            "no:cacheprovider",
            "--junitxml",
            str(work / "tests.xml"),
            *folders,
        ]
    ]


def _test_results(work: Path) -> dict[str, Any]:
    """How many tests there were, and the names of those that failed; nothing where none ran."""
    (suite,) = ElementTree.parse(work / "tests.xml").getroot().iter("testsuite")
    failed = [
        f"{case.get('classname')}::{case.get('name')}"
        for case in suite.iter("testcase")
        if case.find("failure") is not None or case.find("error") is not None
    ]
    tests, skipped = int(suite.get("tests", 0)), int(suite.get("skipped", 0))
    return {"tests": tests, "skipped": skipped, "failed": failed} if tests > skipped else {}


def _bench(work: Path, quick: bool) -> list[Words]:
    short = ["--quick", "--only", "lsa1_1", "evaluation"] if quick else []
    return [["-m", "benchmarks.bench", "--out", str(work / "bench.json"), *short]]


def _claims(work: Path, quick: bool) -> list[Words]:
    def measured(study: str, *chosen: str) -> Words:
        places = ["--report", str(work / "report"), "--runs_dir", str(work / study), "--quiet"]
        return ["-m", "studies.run", study, *chosen, *places]

    if quick:
        return [measured("reproduction", "--claims", *QUICK_CLAIMS)]
    return [measured(study.name, "--profile", study.profiles[-1]) for study in all_studies()]


def _measured(work: Path) -> list[dict[str, Any]]:
    """The rows of the table of claims that were measured here."""
    import pandas as pd

    table = pd.read_csv(work / "report" / TABLE)
    return list(
        table[table["verdict"] != "not run"].astype(object).where(lambda value: value.notna(), None).to_dict("records")
    )


PARTS = {
    "tests": Part(_tests, _test_results),
    "bench": Part(_bench, lambda work: read_json(work / "bench.json")),
    "claims": Part(_claims, _measured),
}

EARLIER = {"ledger": "claims"}  # names of parts


def parser() -> cli.Parser:
    """The flags."""
    built = cli.Parser("scripts.gpu_check", "Checks a GPU, and leaves one file to send back.")
    built.add_argument("--out", type=out_file, default="gpu_check.json", help="the file")
    cli.add_list(built, "--parts", _part, tuple(PARTS), f"what is done: {', '.join(PARTS)}")
    for package, part in {"pytest": "tests", "blackjax": "claims", "jinja2": "claims"}.items():
        built.needs(package, when=partial(_has_part, part))
    built.add_argument("--quick", action="store_true", help="a little of each part, to check that it works")
    return built


def _has_part(part: str, flags: argparse.Namespace) -> bool:
    return part in flags.parts


def _part(text: str) -> str:
    text = EARLIER.get(text, text)
    if text not in PARTS:
        raise argparse.ArgumentTypeError(f"{shown(text)} is none of {', '.join(PARTS)}")
    return text


def main(argv: list[str]) -> int:
    """The command line."""
    flags = parser().parse(argv)
    outputs.check([flags.out], WRITER)
    check_devices()
    results = _so_far(flags.out, flags.quick)
    work = _folder(results)
    work.mkdir(parents=True, exist_ok=True)
    parts = results["parts"]
    for name in flags.parts:
        if name in parts and not _failed(parts[name]):
            print(f"{name} is done at this commit", flush=True)
            continue
        parts[name] = _done(PARTS[name], work, flags.quick)
        outputs.write({flags.out: json_bytes(results)}, WRITER)
    failed = [name for name, part in parts.items() if _failed(part)]
    print(f"{printable(flags.out)}: {', '.join(parts)}{'; failed: ' if failed else ''}{', '.join(failed)}")
    return 1 if failed else 0


def _so_far(out: Path, quick: bool) -> dict[str, Any]:
    """The content of the file if it was made at this commit, on this device and as quick; else what it begins with.

    `StoreError` if its parts are none of such a check.
    """
    begun = {"git_hash": git_commit(), "device": _device(), "versions": versions(), "quick": quick}
    if out.exists():
        before = read_json(out)
        if {name: before.get(name) for name in begun} == begun:
            with expecting(out, "the file of such a check"):
                for part in before["parts"].values():
                    _failed(part)  # an error where it is no part
            return before
    return {**begun, "begun": now(), "parts": {}}


def _failed(part: dict[str, Any]) -> bool:
    """Whether a command of a part ended with an error, or a part had no command or left no result."""
    statuses, result = part["exit_status"], part["result"]
    return not statuses or any(status != 0 for status in statuses) or result is None or result in ({}, [])


def _folder(results: dict[str, Any]) -> Path:
    """Where the parts of a check write: by device, versions and whether it is quick."""
    of = [results[name] for name in ("device", "versions", "quick")]
    return WORK / hashlib.sha256(json_bytes(of)).hexdigest()[:8]


def _device() -> str:
    """The devices in words, asked in a process of its own: one that holds a GPU keeps its memory from the parts."""
    line = [sys.executable, "-c", "from icl_lab.runners.conditions import device_text; print(device_text())"]
    return subprocess.run(line, capture_output=True, text=True, check=True).stdout.strip().splitlines()[-1]


def _done(part: Part, work: Path, quick: bool) -> dict[str, Any]:
    """Carries out a part; its result is null if its commands left none."""
    began, statuses = time.monotonic(), []
    commands = part.commands(work, quick)
    for words in commands:
        print(" ".join(["python", *words]), flush=True)
        statuses.append(subprocess.run([sys.executable, *words], env=os.environ | HIGHEST, check=False).returncode)
    try:
        result = part.result(work)
    except (OSError, StoreError, ElementTree.ParseError):
        result = None
    seconds = round(time.monotonic() - began, 1)
    return {
        "commands": [" ".join(words) for words in commands],
        "exit_status": statuses,
        "seconds": seconds,
        "result": result,
    }


if __name__ == "__main__":
    cli.launch(main)
