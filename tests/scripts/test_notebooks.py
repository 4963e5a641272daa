"""Notebooks are what their scripts say, and are executed once for each content; a cell that fails is named."""

import json
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from icl_lab.scripts import notebooks
from icl_lab.src.checks import ConfigError

SCRIPT = """# %% [markdown]
# # A title
#
# Text, and {braces}.

# %% Two numbers
number = 1 + 1
print(number)

# %%
print(3)
"""
needs_kernel = pytest.mark.skipif(
    None in map(find_spec, ("nbclient", "ipykernel")), reason="what requirements-notebook.txt lists is not here"
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of tutorials with one script, and an empty cache."""
    monkeypatch.setattr(notebooks, "FOLDER", tmp_path / "tutorials")
    monkeypatch.setattr(notebooks, "KEPT", tmp_path / "kept")
    (tmp_path / "tutorials").mkdir()
    (tmp_path / "tutorials" / "one.py").write_text(SCRIPT)
    return tmp_path / "tutorials"


def read(path: Path) -> list[dict[str, Any]]:
    """The cells of a notebook."""
    cells: list[dict[str, Any]] = json.loads(path.read_text())["cells"]
    return cells


def code_of(cells: list[dict[str, Any]]) -> str:
    return "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")


def test_a_notebook_has_the_cells_of_its_script(folder: Path) -> None:
    assert notebooks.main([]) == 0
    first, *cells = read(folder / "one.ipynb")
    assert [(cell["cell_type"], "".join(cell["source"])) for cell in cells] == [
        ("markdown", "# A title\n\nText, and {braces}."),
        ("code", "number = 1 + 1\nprint(number)"),
        ("code", "print(3)"),
    ]
    assert [cell["metadata"].get("mystnb", {}).get("image") for cell in cells] == [None, {"alt": "Two numbers"}, None]
    assert len({cell["id"] for cell in (first, *cells)}) == 4
    assert first["metadata"]["tags"] == ["remove-cell"]
    if find_spec("nbformat"):
        import nbformat

        nbformat.validate(nbformat.read(folder / "one.ipynb", as_version=4))


def test_check_finds_what_differs_and_leaves_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (notebooks.main(["--check"]), list(folder.glob("*.ipynb"))) == (1, [])
    assert "tutorials/one.ipynb is not what its script says" in capsys.readouterr().out
    assert [notebooks.main([]), notebooks.main(["--check"])] == [0, 0]


def test_the_first_cell_does_nothing_elsewhere_and_on_colab_asks_for_an_address(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The address stands in one place; without it the cell says so, before it installs anything."""
    first = code_of(notebooks.notebook(folder / "one.py")["cells"][:1])
    exec(first, {})
    monkeypatch.setitem(sys.modules, "google.colab", notebooks)
    with pytest.raises(AssertionError, match="does not say where the laboratory is"):
        exec(first, {})
    monkeypatch.setattr(notebooks, "REPOSITORY", "https://example.org/icl-lab")
    assert 'address = "https://example.org/icl-lab"' in code_of(notebooks.notebook(folder / "one.py")["cells"])


def test_bad_input_is_one_sentence(folder: Path) -> None:
    with pytest.raises(ConfigError, match="there is no tutorial two; there are one"):
        notebooks.main(["--only", "two"])
    (folder / "one.py").write_text("import os\n")
    with pytest.raises(ConfigError, match=r"one\.py does not begin with a line # %%"):
        notebooks.main([])
    (folder / "one.py").write_text("# %% [markdown]\n# text\nnumber = 1\n")
    with pytest.raises(ConfigError, match=r"one\.py has text that is no comment: number = 1"):
        notebooks.main([])


@needs_kernel
def test_an_executed_notebook_is_kept_until_its_script_changes(folder: Path) -> None:
    assert notebooks.main(["--execute"]) == 0
    kept = notebooks.executed(folder / "one.py")
    printed = ["".join(output["text"]) for cell in read(kept) for output in cell.get("outputs", [])]
    assert printed == ["2\n", "3\n"]
    kept.write_text(kept.read_text().replace('"2\\n"', '"4\\n"'))
    notebooks.main(["--execute"])
    assert '"4\\n"' in kept.read_text()  # it was not executed again
    (folder / "one.py").write_text(SCRIPT.replace("1 + 1", "2 + 3"))
    notebooks.main(["--execute"])
    assert not kept.exists()
    assert '"5\\n"' in notebooks.executed(folder / "one.py").read_text()


@needs_kernel
def test_a_cell_that_fails_is_one_sentence(folder: Path) -> None:
    (folder / "one.py").write_text("# %%\nraise ValueError('no number')\n")
    with pytest.raises(ConfigError, match=r"a cell of tutorials/one\.py fails with ValueError: no number"):
        notebooks.main(["--execute"])
    (folder / "one.py").write_text("# %%\nimport os\nos._exit(1)\n")
    with pytest.raises(ConfigError, match=r"the process of tutorials/one\.py was killed"):
        notebooks.main(["--execute"])
    assert not list(notebooks.KEPT.glob("*.ipynb"))
