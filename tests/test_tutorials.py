"""Tutorials are notebooks of their scripts, short, with a figure in every second cell, and use the public library."""

import ast
import json
import re
import shutil
import sys
from itertools import pairwise
from pathlib import Path

import pytest

import icl_lab
from icl_lab.scripts import notebooks
from tests.doors import ROOT

NAMES = [script.stem for script in notebooks.scripts()]
MOST_CELLS = 25
PACKAGES = {"icl_lab", "matplotlib", "numpy", *sys.stdlib_module_names}  # that a tutorial imports
IN_CODE = re.compile(r"`[^`]*`")


def cells(name: str) -> list[tuple[str, bool, str]]:
    """(title, whether it is text, content) of each cell of a tutorial."""
    return list(notebooks.cells_of(ROOT / "tutorials" / f"{name}.py"))


def code(name: str) -> str:
    return "\n".join(content for _, is_text, content in cells(name) if not is_text)


def test_the_notebooks_are_what_the_scripts_say() -> None:
    assert notebooks.main(["--check"]) == 0
    assert [path.stem for path in sorted((ROOT / "tutorials").glob("*.ipynb"))] == NAMES


def test_the_pages_list_them_all() -> None:
    page, index = ((ROOT / "docs" / name).read_text() for name in ("tutorials.md", "index.md"))
    assert re.findall(r"\]\(\.\./tutorials/(\w+)\.ipynb\)", page) == NAMES
    assert re.findall(r"^\.\./tutorials/(\w+)$", index, re.M) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_tutorial_is_short_and_has_a_figure_in_every_second_cell(name: str) -> None:
    """The first cell, which installs the laboratory, counts too. A cell with a figure has a title, its text for those
    who do not see it.
    """
    made = cells(name)
    assert len(made) + 1 <= MOST_CELLS
    figures = ["plt.show()" in content for _, _, content in made]
    assert all(any(pair) for pair in pairwise(figures))
    assert all(title for (title, _, _), figure in zip(made, figures, strict=True) if figure)


@pytest.mark.parametrize("name", NAMES)
def test_prose_has_no_number_that_a_run_could_change(name: str) -> None:
    """Measured numbers come with the output of a cell: prose has no decimals."""
    for _, is_text, content in cells(name):
        assert not is_text or not re.findall(r"\d*\.\d+", IN_CODE.sub("", content)), content


@pytest.mark.parametrize("name", NAMES)
def test_a_tutorial_uses_the_public_library(name: str) -> None:
    """Besides Python's own modules it imports three packages, and of the library what `icl_lab.__all__` lists."""
    tree = ast.parse(code(name))
    modules = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    modules |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {module.partition(".")[0] for module in modules} <= PACKAGES
    assert not {module for module in modules if module.startswith("icl_lab.")}
    assert set(re.findall(r"\bicl_lab\.(\w+)", code(name))) <= {*icl_lab.__all__}


@pytest.mark.parametrize("name", NAMES)
def test_its_links_lead_somewhere(name: str) -> None:
    for _, is_text, content in cells(name):
        for link in re.findall(r"\]\(([^)\s]+)\)", content) if is_text else ():
            assert link.startswith("https://") or (ROOT / "tutorials" / link.partition("#")[0]).exists(), link


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_tutorial_runs_and_says_nothing_on_standard_error(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a figure where one is drawn."""
    pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    monkeypatch.setattr(notebooks, "KEPT", tmp_path)
    made = json.loads(notebooks.execute(ROOT / "tutorials" / f"{name}.py").read_text())["cells"]
    shutil.rmtree(next(tmp_path.glob("runs-*")))
    for cell in made:
        outputs = cell.get("outputs", [])
        assert not [output for output in outputs if output.get("name") == "stderr"]
        pictures = [output for output in outputs if "image/png" in output.get("data", {})]
        assert len(pictures) == "".join(cell["source"]).count("plt.show()")
