"""Which sources made a run: a hash of every file that numbers come from, compared when the run is shown."""

import ast
import subprocess
from pathlib import Path

import pytest

from icl_lab.families.regression.config import RegressionConfig
from icl_lab.store import provenance
from icl_lab.store.provenance import changed_files, provenance_of, sources_notice
from tests.test_imports import imported

HERE = {"src/a.py": "1", "src/b.py": "2", "store/c.py": "3", "runners/d.py": "4"}


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sources of these tests, but where a root is given."""
    real = provenance.sources
    monkeypatch.setattr(provenance, "sources", lambda *root: real(*root) if root else dict(HERE))


def test_hashes_are_those_of_sha256sum(root: Path) -> None:
    found = provenance.sources(root)
    for name in (
        "src/train.py",
        "store/atomic.py",
        "families/regression/task.py",
        "src/context.py",
    ):
        said = subprocess.run(["sha256sum", root / name], capture_output=True, text=True, check=True).stdout
        assert found[name] == said[:16]
    assert {folder for folder in provenance.FOLDERS for name in found if name.startswith(f"{folder}/")} == {
        *provenance.FOLDERS
    }
    assert not any(name.startswith(("plots", "tests", "studies", "report")) for name in found)


# What the folders import and no number comes from: figures; flags, which end in the config; threads, devices and
# variables, which meta.json has beside the sources; kept programs, which change no bit; signals, at which a
# training stops; what identifies a plugin, and which are loaded; how a command ends.
NO_RESULTS = {
    "plots",
    *(
        f"lab/{name}"
        for name in ("cli", "caches", "compile_cache", "environment", "environment_variables", "executors")
    ),
    *(
        f"lab/{name}"
        for name in (
            "command_end",
            "flag_types",
            "guest",
            "loaded_plugins",
            "native",  # whose hash is in the name of the kernel
            "plugin_digest",
            "plugin_files",
            "progress",
            "registries",
            "regular_file",
        )
    ),
}


def folder_and_module(target: str) -> tuple[str, str]:
    """The folder below the root that an imported name lies in, below the room of many things its own; and its file."""
    room, *rest = target.removeprefix("icl_lab.").split(".")
    if room == "lab" and rest:
        room, rest = f"lab/{rest[0]}", rest[1:]
    return room, "".join(rest[:1])


def test_whatever_the_folders_import_is_hashed_or_makes_no_results(root: Path) -> None:
    """Imports are followed file by file, to whatever room of the repository they lead."""
    queue = [path for folder in provenance.FOLDERS for path in sorted((root / folder).rglob("*.py"))]
    folders, seen = set(), set(queue)
    while queue:
        path = queue.pop()
        name = path.relative_to(root).with_suffix("").parts
        package = path.name == "__init__.py"
        for _, target in imported(ast.parse(path.read_text()), name[:-1] if package else name, package):
            if not target.startswith("icl_lab."):
                continue
            folder, module = folder_and_module(target)
            if folder in NO_RESULTS:
                continue
            folders.add(folder)
            file = next((f for f in (root / folder / f"{module}.py", root / f"{folder}.py") if f.is_file()), None)
            if file and file not in seen:
                seen.add(file)
                queue.append(file)
    assert folders == {*provenance.FOLDERS}


def test_files_in_folders_within_count_and_others_do_not(tmp_path: Path) -> None:
    for name in ("src/deep/er.py", "src/notes.txt", "plots/curves.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    assert list(provenance.sources(tmp_path)) == ["src/deep/er.py"]


def test_a_run_records_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("icl_lab.store.provenance.sources", lambda: dict(HERE))
    assert provenance_of(RegressionConfig(), "")["sources"] == HERE


def test_what_differs_is_edited_or_gone_and_not_what_is_new() -> None:
    assert changed_files({"sources": HERE}) == []
    assert changed_files({"sources": HERE | {"src/a.py": "0", "src/gone.py": "5"}}) == ["src/a.py", "src/gone.py"]
    assert changed_files({"sources": {"src/a.py": "1"}}) == []
    assert changed_files({"sources": HERE, "sources_changed": ["src/b.py"]}) == ["src/b.py"]
    assert changed_files({}) is None


@pytest.mark.parametrize("foreign", [{"sources": 3}, {"sources": ["src/a.py"]}, {"sources": None}])
def test_a_record_of_another_form_is_none(foreign: dict) -> None:
    assert changed_files(foreign) is None


EDITED = {"sources": HERE | {"src/a.py": "0"}}
TWO = {"sources": HERE | {"src/a.py": "0", "src/b.py": "0"}}
FOUR = {"sources": dict.fromkeys(HERE, "0")}


@pytest.mark.parametrize(
    ("metas", "line"),
    [
        ([], ""),
        ([{"sources": HERE}], ""),
        ([EDITED], "src/a.py has changed since this run began; --overwrite retrains it"),
        ([TWO], "src/a.py and src/b.py have changed since this run began; --overwrite retrains it"),
        ([FOUR], "runners/d.py, src/a.py and 2 more have changed since this run began; --overwrite retrains it"),
        ([{}], "the sources that made this run are not recorded; --overwrite retrains it"),
        (
            [EDITED, {"sources": HERE}, TWO],
            "src/a.py and src/b.py have changed since 2 of 3 finished runs began; --overwrite retrains them",
        ),
        (
            [EDITED, {}],
            "src/a.py has changed since 1 of 2 finished runs began; the sources that made 1 of 2 finished runs are not "
            "recorded; --overwrite retrains them",
        ),
    ],
)
def test_the_line_names_two_files_and_says_how_to_go_on(metas: list[dict], line: str) -> None:
    assert sources_notice(metas) == line


def test_names_from_a_file_cannot_move_the_cursor() -> None:
    assert "\x1b" not in sources_notice([{"sources": {"\x1b[2J.py": "0"}}])
