"""docs/library.md: every recipe runs as it stands on the page, each section in an empty folder."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.test_docs import blocks

PAGE = Path(__file__).resolve().parent.parent / "docs/library.md"
SECTIONS = (
    "Train on arrays of your own",
    "Text of your own",
    "Your own model",
    "Your own baseline",
    "Sweep your own fields",
    "Choose a decoder",
    "Go on from a run",
    "Plot a sweep",
    "Probe what layers know",
    "Estimate an LLC",
    "Look inside a model",
)
MOST_LINES = 15
OF_EXTRAS = (
    "flax",
    "equinox",
)  # without which a recipe that imports them is not run (tests/analysis/llc/test_libraries.py)
LANGUAGES = ("python", "sh", "text")  # run, or written where a file name stands behind it; run; shown


def recipes(title: str, to: Path) -> list[tuple[str, str, str]]:
    """The code blocks of a section, (language, file, text)."""
    part = to / "section.md"
    part.write_text(PAGE.read_text().split(f"\n## {title}\n")[1].split("\n## ")[0])
    found = blocks(part)
    part.unlink()
    return found


def in_a_folder_of_a_user(tmp_path: Path) -> tuple[Path, dict[str, str]]:
    """An empty folder, and the variables of a process that has the laboratory installed, which is on no path of it."""
    bin_folder, folder = tmp_path / "bin", tmp_path / "mine"
    bin_folder.mkdir()
    folder.mkdir()
    python = f'#!/bin/sh\nexec {sys.executable} "$@"\n'
    script = f"#!{sys.executable}\nfrom icl_lab.lab.commands import main\n\nraise SystemExit(main())\n"  # as pip's
    for name, text in {"python": python, "icl-lab": script}.items():
        (bin_folder / name).write_text(text)
        (bin_folder / name).chmod(0o755)
    path = f"{bin_folder}{os.pathsep}{os.environ['PATH']}"
    package = tmp_path / "installed"
    package.mkdir()
    (package / "icl_lab").symlink_to(PAGE.parent.parent / "icl_lab")
    return folder, os.environ | {"PATH": path, "PYTHONPATH": str(package), "PYTHONWARNINGS": "error"}


def test_the_page_has_these_sections_and_short_recipes(tmp_path: Path) -> None:
    titles = [line.removeprefix("## ") for line in PAGE.read_text().splitlines() if line.startswith("## ")]
    assert titles == [*SECTIONS]
    assert all(recipes(title, tmp_path) for title in SECTIONS)
    found = [block for title in SECTIONS for block in recipes(title, tmp_path)]
    for language, _, text in found:
        assert language in LANGUAGES
        assert len(text.splitlines()) <= MOST_LINES or language == "text", text


@pytest.mark.slow
@pytest.mark.parametrize("title", SECTIONS)
def test_the_recipes_of_a_section_run_as_they_stand(title: str, tmp_path: Path) -> None:
    """One after another in one folder; Python without a file's name in a process of its own, as a script."""
    folder, variables = in_a_folder_of_a_user(tmp_path)
    missing = [name for name in OF_EXTRAS if find_spec(name) is None]
    for language, file, text in recipes(title, tmp_path):
        if language == "python" and any(f"import {name}" in text or f"from {name}" in text for name in missing):
            continue
        if language == "python" and file:
            (folder / file).write_text(text)
        elif language != "text":
            (folder / "recipe.py").write_text(text)
            line = ["python", "recipe.py"] if language == "python" else ["sh", "-ec", text]
            done = subprocess.run(line, cwd=folder, env=variables, capture_output=True, text=True)
            assert done.returncode == 0, (text, done.stdout, done.stderr)
