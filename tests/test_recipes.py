"""Every recipe of the pages on use runs as it stands there, each section in an empty folder."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.test_docs import blocks

ROOT = Path(__file__).resolve().parent.parent
# page -> its sections with recipes; all of them, where nothing else is named
SECTIONS = {
    "first_run": ("How do I read metrics and parameters in Python?", "How do I plot two runs in one figure?"),
    "own_data": (),
    "looking_inside": (),
    "llc": ("A run of this laboratory in Python", "Models of Flax, Equinox and PyTorch"),
    "cluster": ("Sweep your own fields", "Plot a sweep"),
    "learn": ("An example",),
    "coming_from": (),
    "training_fails": (
        "The run waits on a plateau",
        "The run finds another minimum",
        "The run diverges",
        "End a run early",
    ),
}
MOST_LINES = 15
OF_EXTRAS = (
    "flax",
    "equinox",
)  # without which a recipe that imports them is not run (tests/analysis/llc/test_libraries.py)
LANGUAGES = ("python", "sh", "text")  # run, or written where a file name stands behind it; run; shown


def text_of(page: str) -> str:
    return (ROOT / "docs" / f"{page}.md").read_text()


ALL = [
    (page, title)
    for page, titles in SECTIONS.items()
    for title in titles or [line.removeprefix("## ") for line in text_of(page).splitlines() if line.startswith("## ")]
]


def recipes(page: str, title: str, to: Path) -> list[tuple[str, str, str]]:
    """The code blocks of a section, (language, file, text)."""
    part = to / "section.md"
    part.write_text(text_of(page).split(f"\n## {title}\n")[1].split("\n## ")[0])
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
    (package / "icl_lab").symlink_to(ROOT / "icl_lab")
    return folder, os.environ | {"PATH": path, "PYTHONPATH": str(package), "PYTHONWARNINGS": "error"}


@pytest.mark.parametrize(("page", "title"), ALL)
def test_recipes_are_short(page: str, title: str, tmp_path: Path) -> None:
    found = recipes(page, title, tmp_path)
    assert found
    for language, _, text in found:
        assert language in LANGUAGES
        assert len(text.splitlines()) <= MOST_LINES or language == "text", text


@pytest.mark.slow
@pytest.mark.parametrize(("page", "title"), ALL)
def test_the_recipes_of_a_section_run_as_they_stand(page: str, title: str, tmp_path: Path) -> None:
    """One after another in one folder; Python without a file's name in a process of its own, as a script."""
    folder, variables = in_a_folder_of_a_user(tmp_path)
    missing = [name for name in OF_EXTRAS if find_spec(name) is None]
    for language, file, text in recipes(page, title, tmp_path):
        if language == "python" and any(f"import {name}" in text or f"from {name}" in text for name in missing):
            continue
        if language == "python" and file:
            (folder / file).write_text(text)
        elif language != "text":
            (folder / "recipe.py").write_text(text)
            line = ["python", "recipe.py"] if language == "python" else ["sh", "-ec", text]
            done = subprocess.run(line, cwd=folder, env=variables, capture_output=True, text=True)
            assert done.returncode == 0, (text, done.stdout, done.stderr)
