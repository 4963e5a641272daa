"""Every module has one name: a room that is imported by another says what to write, and `python -m ROOM.X` works."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOMS = sorted(
    link.name for link in (Path(__file__).parents[2] / "icl_lab").iterdir() if link.is_symlink() and link.is_dir()
)


def python(*words: str, root: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *words], cwd=root, capture_output=True, text=True, check=False)


def test_every_room_is_a_relative_link_to_a_folder_of_the_root(root: Path) -> None:
    links = [
        path for path in (root / "icl_lab").iterdir() if path.name not in ("__init__.py", "__main__.py", "__pycache__")
    ]
    assert {path.name: str(path.readlink()) for path in links} == {path.name: f"../{path.name}" for path in links}
    code = {path.parent.name for path in root.glob("*/__init__.py")} - {"icl_lab", "tests"}
    assert {path.name for path in links} == code | {path.name for path in root.glob("*.py")}


def test_a_room_that_is_imported_by_another_name_says_what_to_write(root: Path) -> None:
    """All in one process, of which each import fails alone."""
    script = "\n".join(f"try:\n    import {room}\nexcept ImportError as error:\n    print(error)" for room in ROOMS)
    said = python("-c", script, root=root).stdout.splitlines()
    assert said == [
        f"no module is called {room}, since all are below icl_lab: write `from icl_lab import {room}`" for room in ROOMS
    ]


@pytest.mark.parametrize("line", ["from store.layout import X", "import store.layout", "import baselines.bayes"])
def test_a_door_is_open_for_the_command_alone(line: str, root: Path, tmp_path: Path) -> None:
    """A plugin of a command that `python -m` has found in the same room, and one of another room."""
    plugin = tmp_path / "mine.py"
    plugin.write_text(line)
    done = python("-m", "store.runs", str(tmp_path), "--plugin", str(plugin), root=root)
    assert done.returncode == 2
    assert "no module is called " in done.stderr
    assert "below icl_lab: write `from icl_lab" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("name", ["store.runs", "icl_lab.store.runs"])
def test_a_command_has_both_names(name: str, root: Path) -> None:
    script = f"import runpy, sys; sys.argv = ['{name}', '--help']; runpy.run_module('{name}', run_name='__main__')"
    for words, shown in ((("-m", name, "--help"), name), (("-c", script), "store.runs")):
        done = python(*words, root=root)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith(f"usage: python -m {shown} ")
