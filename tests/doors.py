"""Every command, run in this process through its own file."""

import re
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from icl_lab.store import layout

ROOT = Path(__file__).resolve().parent.parent
RUNNERS = ("runners.run_concat_inputs_targets", "runners.run_softmax_copy")
ANALYSES = (
    *(
        "analysis.alignment",
        "analysis.ood_eval",
        "analysis.attention_stats",
        "analysis.copying",
        "analysis.over_training",
        "analysis.algorithm_distance",
    ),
)
PLOTS = ("plots.attention_quick", "plots.run_figures")
DRIVERS = ("eval_order", "eval_noise", "eval_diversity")
SWEEPS = (*DRIVERS, "sweeps.status", "sweeps.collect")
COMMANDS = (*RUNNERS, *ANALYSES, "analysis.compare", *PLOTS, "scripts.demo_seeds")


class CommandResult(NamedTuple):
    """How a command ended and what it said."""

    status: int
    out: str
    err: str


Ran = Callable[..., CommandResult]
Refused = Callable[..., str]


def snapshot(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Every file's content and time of writing, every folder, and locks, whose owners beat and which trying touches."""

    def state(path: Path) -> tuple[bytes, int]:
        if path.is_dir():
            return b"", 0
        content = path.read_bytes()
        owner = re.fullmatch(rb'(\["\w+", .*\])\d{12}', content)
        if owner or path.name == layout.LOCK:
            return owner[1] if owner else content, 0
        return content, path.stat().st_mtime_ns

    return {str(path.relative_to(folder)): state(path) for path in folder.rglob("*")}


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ran:
    """Runs a command's own file in this process and a fresh folder; an exception is the test's."""
    monkeypatch.chdir(tmp_path)

    def run(command: str, *words: object) -> CommandResult:
        monkeypatch.setattr(sys, "argv", [command, *map(str, words)])
        place = ROOT / command.replace(".", "/")
        file = place / "__main__.py" if place.is_dir() else place.with_suffix(".py")
        with pytest.raises(SystemExit) as exited:
            runpy.run_path(str(file), run_name="__main__")
        said = capsys.readouterr()
        return CommandResult(int(exited.value.code or 0), said.out, said.err)

    return run


@pytest.fixture
def refused(ran: Ran, tmp_path: Path) -> Refused:
    """The sentence of a command that exits with 2: one line on standard error, and no file touched."""

    def run(command: str, *words: object) -> str:
        before = snapshot(tmp_path)
        done = ran(command, *words)
        assert (done.status, done.out) == (2, "")
        assert done.err.startswith("error: ")
        assert done.err.count("\n") == 1
        assert snapshot(tmp_path) == before
        return done.err

    return run
