"""The check of a GPU, here of the CPU: what its file has, that parts are done once, and that failures are said."""

import json
from pathlib import Path

import pytest

from scripts import gpu_check
from src.checks import ConfigError
from store.readers import StoreError
from tests.runners.tiny import Workshop


def check(workshop: Workshop, out: Path, *words: str):
    return workshop.run("scripts.gpu_check", "--quick", "--out", out, *words)


@pytest.mark.slow
def test_it_leaves_tests_benchmark_and_claims_in_one_file(workshop: Workshop, tmp_path: Path) -> None:
    out = tmp_path / "gpu_check.json"
    first = check(workshop, out, "--parts", "tests,ledger")
    assert first.returncode == 0, first.stderr
    found = json.loads(out.read_text())
    assert found["device"].startswith("cpu")
    assert {*found["parts"]} == {"tests", "ledger"}
    assert found["parts"]["tests"]["result"]["tests"] > 10
    assert found["parts"]["tests"]["result"]["failed"] == []
    (claim,) = found["parts"]["ledger"]["result"]
    assert (claim["claim"], claim["verdict"]) == ("gamma", "reproduced")
    again = check(workshop, out)
    assert again.returncode == 0, again.stderr
    assert "tests is done at this commit\nledger is done at this commit\n" not in first.stdout
    assert "tests is done at this commit\n" in again.stdout
    assert [*json.loads(out.read_text())["parts"]] == ["tests", "ledger", "bench"]
    assert json.loads(out.read_text())["parts"]["tests"] == found["parts"]["tests"]


def test_a_part_that_fails_is_said_and_the_others_are_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(gpu_check, "_device", lambda: "cpu")
    good = gpu_check.Part(lambda quick: [["-c", "pass"], ["-c", f"assert {quick}"]], lambda: 7)
    bad = gpu_check.Part(lambda quick: [["-c", "raise SystemExit(3)"]], lambda: json.loads(Path("none").read_text()))
    monkeypatch.setattr(gpu_check, "PARTS", {"bad": bad, "good": good})
    assert gpu_check.main(["--quick"]) == 1
    found = json.loads(Path("gpu_check.json").read_text())["parts"]
    assert [(part["exit_status"], part["result"]) for part in found.values()] == [([3], None), ([0, 0], 7)]
    assert capsys.readouterr().out.splitlines()[-1] == "gpu_check.json: bad, good; failed: bad"


def test_a_part_that_failed_is_done_again_and_what_went_well_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(gpu_check, "_device", lambda: "cpu")
    count = "from pathlib import Path; file = Path('{}'); file.write_text(file.read_text() + 'x')"
    good = gpu_check.Part(lambda quick: [["-c", count.format("good")]], lambda: len(Path("good").read_text()))
    mended = f"{count.format('bad')}; assert file.read_text() == 'xx'"
    bad = gpu_check.Part(lambda quick: [["-c", "pass"], ["-c", mended]], lambda: len(Path("bad").read_text()))
    monkeypatch.setattr(gpu_check, "PARTS", {"bad": bad, "good": good})
    for name in ("good", "bad"):
        Path(name).write_text("")
    assert [gpu_check.main(["--quick"]) for _ in range(3)] == [1, 0, 0]
    found = json.loads(Path("gpu_check.json").read_text())["parts"]
    assert {name: (part["exit_status"], part["result"]) for name, part in found.items()} == {
        "bad": ([0, 0], 2),
        "good": ([0], 1),
    }
    assert capsys.readouterr().out.count("bad is done at this commit") == 1


def test_a_file_of_somebody_elses_is_not_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(gpu_check, "_device", lambda: "cpu")
    monkeypatch.setattr(gpu_check, "PARTS", {"good": gpu_check.Part(lambda quick: [], lambda: None)})
    (tmp_path / "mine.json").write_text('{"mine": 1}')
    with pytest.raises((StoreError, ConfigError), match=r"mine\.json"):
        gpu_check.main(["--out", "mine.json"])
    assert (tmp_path / "mine.json").read_text() == '{"mine": 1}'
