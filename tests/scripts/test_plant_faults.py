"""The list of faults is kept with the tree, and what is called caught is caught by the tests that CI runs."""

import ast
from pathlib import Path

import pytest

from icl_lab.scripts import plant_faults
from icl_lab.scripts.plant_faults import SELECTION, Fault, main, planted, read_faults
from icl_lab.src.checks import ConfigError
from tests.doors import ROOT, Refused, snapshot

FLOORS = {"src", "lab", "store", "baselines", "families", "analysis", "runners", "sweeps"}
FAULTS = read_faults()


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_its_text_is_found_once_and_leaves_a_program(fault: Fault) -> None:
    changed = planted(fault, ROOT)
    assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse((ROOT / fault.file).read_text()))
    assert fault.tests
    assert [name for name in fault.tests if not (ROOT / name).is_file()] == []


def test_every_floor_has_one() -> None:
    assert {Path(fault.file).parts[0] for fault in FAULTS} >= FLOORS


def test_they_are_tried_on_the_tests_of_ci(root: Path) -> None:
    option, marker = SELECTION
    lines = (root / ".ci/run").read_text().splitlines()
    for target, tests in (("test", f"{marker} and not robust"), ("test-robust", f"robust and {marker}")):
        recipe = (root / "Makefile").read_text().partition(f"\n{target}: ")[2].splitlines()[1]
        assert f'-m pytest {option} "{tests}" ' in recipe
        assert f"make {target}" in lines


SEES = "def test_it():\n    assert twice(3) == 6\n"
TESTS = {
    "test_sees.py": SEES,
    "test_looks_away.py": "def test_it():\n    assert twice(2) == 4\n",
    "test_is_slow.py": f"@pytest.mark.slow\n{SEES}",
    "test_is_broken.py": "def test_it():\n    assert not twice(0) == 0\n",
    "test_hangs.py": "def test_it():\n    while twice(3) != 6:\n        pass\n",
}


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tree of one function and tests of it that see more or less."""
    files = {"rule.py": "def twice(x):\n    return x + x\n", "pytest.ini": "[pytest]\nmarkers =\n    slow\n"}
    files |= {name: f"import pytest\nfrom rule import twice\n\n\n{test}" for name, test in TESTS.items()}
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    monkeypatch.setattr(plant_faults, "ROOT", tmp_path)
    return tmp_path


def fault(*tests: str, text: str = "x + x") -> Fault:
    return Fault("square", "twice is the square", "rule.py", text, "x * x", tests)


@pytest.mark.parametrize(
    ("tests", "said", "status"),
    [
        (("test_looks_away.py", "test_sees.py"), "caught   square", 0),
        (("test_looks_away.py",), "missed   square", 1),
        (("test_is_slow.py",), "pytest ended with 5 square", 1),  # no test of these files is one that CI runs
        (("test_is_broken.py",), "fails without it square", 1),
        (("test_hangs.py",), "not done in 2 s square", 1),
    ],
)
def test_what_becomes_of_a_fault(
    tests: tuple[str, ...],
    said: str,
    status: int,
    tree: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(plant_faults, "read_faults", lambda: [fault(*tests)])
    before = snapshot(tree)
    assert main(["--seconds", "2" if "test_hangs.py" in tests else "300"]) == status
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(said)
    assert lines[1] == f"{1 - status} of 1 faults are caught"
    if status == 0:
        assert lines[0].endswith("test_sees.py::test_it")
    assert snapshot(tree) == before


@pytest.mark.parametrize(("text", "count"), [("x - x", 0), ("x", 3)])
def test_a_text_that_does_not_stand_there_once_is_refused_before_any_is_planted(
    text: str, count: int, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plant_faults, "read_faults", lambda: [fault("test_sees.py"), fault(text=text)])
    monkeypatch.setattr(plant_faults, "tried", lambda *_: pytest.fail("a fault was planted"))
    with pytest.raises(ConfigError, match=f"its text stands {count} times in rule.py, not once"):
        main([])


@pytest.mark.parametrize(("words", "names"), [("--only b,c", "bc"), ("--from c", "cd"), ("--from c --only b,d", "d")])
def test_some_are_chosen(
    words: str, names: str, tree: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(plant_faults, "read_faults", lambda: [fault()._replace(name=name) for name in "abcd"])
    assert main([*words.split(), "--list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [*names]


def test_a_misspelt_name_is_one_sentence(refused: Refused) -> None:
    said = refused("scripts.plant_faults", "--only", "read_out_sing")
    assert "there is no fault 'read_out_sing', did you mean read_out_sign?" in said
