"""What commands and the library advise can be typed by whoever reads it: it is spelled as they were called."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from icl_lab.lab.command_end import typed
from tests.processes import ROOT
from tests.test_recipes import in_a_folder_of_a_user

MODULE = str(ROOT / "analysis/llc/__main__.py")
KERNEL = ["-m", "ipykernel_launcher", "-f", "kernel.json"]
# how a process was called: its words, what stands first in sys.argv, whether in the root -> how `store.runs` is
CALLED = {
    "console script": (["/env/bin/icl-lab", "llc"], MODULE, True, "icl-lab store.runs"),
    "package": (["-m", "icl_lab", "llc"], MODULE, False, "python -m icl_lab store.runs"),
    "module of the package": (["-m", "icl_lab.analysis.llc"], MODULE, False, "python -m icl_lab.store.runs"),
    "module": (["-W", "error", "-m", "analysis.llc"], MODULE, True, "python -m store.runs"),
    "module, by PYTHONPATH": (["-m", "analysis.llc"], MODULE, False, "python -m store.runs"),
    "notebook in a checkout": (KERNEL, "/env/ipykernel_launcher.py", True, "python -m store.runs"),
    "notebook": (KERNEL, "/env/ipykernel_launcher.py", False, "icl-lab store.runs"),
    "script": (["mine.py", "-m"], "mine.py", False, "icl-lab store.runs"),
    "interpreter": ([], "", False, "icl-lab store.runs"),
}


@pytest.mark.parametrize("door", CALLED)
def test_a_command_is_spelled_as_the_process_was_called(
    door: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words, first, is_root, spelled = CALLED[door]
    monkeypatch.setattr(sys, "orig_argv", [sys.executable, *words])
    monkeypatch.setattr(sys, "argv", [first])
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.chdir(ROOT if is_root else tmp_path)
    without_script = spelled if door == "console script" else spelled.replace("icl-lab", "python -m icl_lab")
    assert typed("store.runs") == without_script
    (tmp_path / "icl-lab").touch()  # of an installation
    assert typed("store.runs") == spelled


RUN = ROOT / "demos_ref/lsa1"  # a finished run without estimates of an LLC
DOORS = {
    "icl-lab": ("icl-lab {}", False),
    "package": ("python -m icl_lab {}", False),
    "module of the package": ("python -m icl_lab.{}", False),
    "module": ("python -m {}", True),
}
LIBRARY = "icl-lab {}" if Path(sys.executable).with_name("icl-lab").exists() else "python -m icl_lab {}"
ADVISING = (f"analysis.stages --run {RUN}", "plots.run_figures", "runners.run", "runners.run --help")
FROM_PYTHON = f"import icl_lab; print(icl_lab.load_run({str(RUN)!r}))"
ADVICE = re.compile(r"(?:icl-lab|python -m icl_lab|python -m) [\w.]+")


def said(line: list[str], folder: Path, variables: dict[str, str]) -> str:
    done = subprocess.run(line, cwd=folder, env=variables, capture_output=True, text=True, timeout=300)
    assert done.returncode in (0, 2), done.stderr
    return done.stdout + done.stderr


@pytest.mark.robust
@pytest.mark.parametrize("door", [*DOORS, "library"])
def test_what_is_advised_runs_where_it_is_read(door: str, tmp_path: Path) -> None:
    """Each command in a sentence answers with its usage, which is spelled through the same door."""
    folder, variables = in_a_folder_of_a_user(tmp_path)
    spelled, is_root = DOORS.get(door, (LIBRARY, False))
    at = ROOT if is_root else folder
    lines = [["python", "-c", FROM_PYTHON]] if door == "library" else [spelled.format(w).split() for w in ADVISING]
    advice = {found for line in lines for found in ADVICE.findall(said(line, at, variables))}
    assert spelled.format("runners.run") in advice
    assert door == "library" or spelled.format("analysis.llc") in advice
    for command in advice:
        assert said([*shlex.split(command), "--help"], at, variables).startswith(f"usage: {command} ")
