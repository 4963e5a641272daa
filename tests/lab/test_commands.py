"""`icl-lab COMMAND`: every command has one name, a line of its own, and the words behind it."""

import os
import shlex
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

from icl_lab.lab import commands
from tests.runners.tiny import INTERRUPTED, SIZES, lsa1_run, results, workshop
from tests.test_recipes import in_a_folder_of_a_user

__all__ = ["lsa1_run", "workshop"]


def test_rooms_that_share_a_name_carry_it_but_the_first() -> None:
    typed = commands.short_names(commands.commands())
    assert {"run": "runners.run", "sweeps.run": "sweeps.run", "studies.run": "studies.run"}.items() <= typed.items()
    assert {"llc": "analysis.llc", "runs": "store.runs", "eval_order": "eval_order"}.items() <= typed.items()
    assert sorted(typed.values()) == sorted(commands.commands())
    assert commands.short_names(["a.x", "b.x", "b.c.y", "y"]) == {"x": "a.x", "b.x": "b.x", "b.c.y": "b.c.y", "y": "y"}


def test_the_list_has_a_line_for_each(capsys: pytest.CaptureFixture[str]) -> None:
    for argv in ([], ["--help"], ["-h"]):
        assert commands.main(argv) == 0
        lines = capsys.readouterr().out.splitlines()
        listed = {words[0]: words[1] for line in lines if line.startswith("  ") for words in [line.split(maxsplit=1)]}
        assert {*listed} == {*commands.short_names(commands.commands())}
        assert listed["llc"] == "Estimates the local learning coefficient (LLC) at the checkpoints of a run"
        assert listed["run"] == "Trains any model"
        assert max(map(len, listed.values())) <= 100  # a terminal shows whole sentences


def test_the_list_imports_no_command(root: Path) -> None:
    """And nothing that takes time."""
    text = "import sys; from icl_lab.lab.commands import main; main([]); "
    text += "sys.exit(any(name in sys.modules for name in ('numpy', 'jax', 'pandas', 'absl', 'icl_lab.lab.cli')))"
    done = subprocess.run([sys.executable, "-c", text], cwd=root, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_an_unknown_command_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    for wrong, near in {"sweep.run": "sweeps.run", "llcc": "llc", "runners.rum": "runners.run"}.items():
        with pytest.raises(SystemExit) as ended:
            commands.main([wrong])
        assert ended.value.code == 2
        said = f"error: icl-lab has no command '{wrong}', did you mean {near}?; icl-lab --help lists them\n"
        assert capsys.readouterr() == ("", said)


def test_the_console_script_is_this_function(root: Path) -> None:
    scripts = tomllib.loads((root / "pyproject.toml").read_text())["project"]["scripts"]
    module, _, name = scripts["icl-lab"].partition(":")
    assert getattr(import_module(module), name) is commands.main


def icl_lab(folder: Path, variables: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["icl-lab", *words], cwd=folder, env=variables, capture_output=True, text=True, timeout=300)


def test_a_command_has_its_words_in_any_folder(tmp_path: Path) -> None:
    """By short name and in full, with dashes too; what it says of itself can be typed there."""
    folder, variables = in_a_folder_of_a_user(tmp_path)
    for name in ("alignment", "analysis.alignment"):
        done = icl_lab(folder, variables, name, "--run", "nowhere")
        assert (done.returncode, done.stderr) == (2, "error: nowhere is not a run directory: it has no config.json\n")
    assert "usage: icl-lab eval_order " in icl_lab(folder, variables, "eval-order", "--help").stdout
    assert icl_lab(folder, variables, "run").stderr.startswith("error: which model? icl-lab runners.run MODEL")


@pytest.mark.robust
def test_an_interrupted_run_says_a_command_that_resumes_it(tmp_path: Path, lsa1_run: Path) -> None:
    folder, variables = in_a_folder_of_a_user(tmp_path)
    path = f"{INTERRUPTED}{os.pathsep}{variables['PYTHONPATH']}"
    interrupted = variables | {"INTERRUPT": "after:step_*.safetensors:SIGINT:2", "PYTHONPATH": path}
    words = ["run", "lsa1", *SIZES, "--save_attention", "--checkpoint_seconds", "0", "--out", "mine"]
    stopped = icl_lab(folder, interrupted, *words)
    assert stopped.returncode == 130, stopped.stderr
    line = stopped.stdout.splitlines()[-1].partition("resumes it: ")[2]
    resumed = subprocess.run(shlex.split(line), cwd=folder, env=variables, capture_output=True, text=True)
    assert resumed.returncode == 0, resumed.stderr
    assert results(folder / "mine") == results(lsa1_run)


def test_a_reader_who_stops_reading_the_list_ends_it_without_a_word(root: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([sys.executable, "-m", "icl_lab"], cwd=root, stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")
