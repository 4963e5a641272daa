"""The check of a GPU, here of the CPU: what its file has, that parts are done once, and that failures are said."""

import json
from pathlib import Path

import pytest

from icl_lab.scripts import gpu_check
from icl_lab.scripts.gpu_check import QUICK_CLAIMS
from icl_lab.src.checks import ConfigError
from icl_lab.store.readers import StoreError
from icl_lab.studies.study import load
from tests.runners.tiny import ROOT, Workshop


def check(workshop: Workshop, out: Path, *words: str):
    return workshop.run("scripts.gpu_check", "--quick", "--out", out, *words)


@pytest.mark.slow
def test_it_leaves_tests_benchmark_and_claims_in_one_file(workshop: Workshop, tmp_path: Path) -> None:
    out = tmp_path / "gpu_check.json"
    first = check(workshop, out, "--parts", "tests,ledger")
    assert first.returncode == 0, first.stderr
    found = json.loads(out.read_text())
    assert found["device"].startswith("cpu")
    assert {*found["parts"]} == {"tests", "claims"}
    assert found["parts"]["tests"]["result"]["tests"] > 10
    assert found["parts"]["tests"]["result"]["failed"] == []
    claims = {claim["claim"]: claim for claim in found["parts"]["claims"]["result"]}
    assert {name: claim["verdict"] for name, claim in claims.items()} == dict.fromkeys(QUICK_CLAIMS, "reproduced")
    assert len(claims["size_5_ratio"]["cells"].split()) == 11  # eight trainings, and three networks untrained
    again = check(workshop, out)
    assert again.returncode == 0, again.stderr
    assert "tests is done at this commit\nclaims is done at this commit\n" not in first.stdout
    assert "tests is done at this commit\n" in again.stdout
    assert [*json.loads(out.read_text())["parts"]] == ["tests", "claims", "bench"]
    assert json.loads(out.read_text())["parts"]["tests"] == found["parts"]["tests"]


def test_a_part_that_fails_is_said_and_the_others_are_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(gpu_check, "_device", lambda: "cpu")
    good = gpu_check.Part(lambda work, quick: [["-c", "pass"], ["-c", f"assert {quick}"]], lambda work: 7)
    bad = gpu_check.Part(lambda *_: [["-c", "raise SystemExit(3)"]], lambda work: json.loads((work / "no").read_text()))
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
    good = gpu_check.Part(lambda *_: [["-c", count.format("good")]], lambda work: len(Path("good").read_text()))
    mended = f"{count.format('bad')}; assert file.read_text() == 'xx'"
    bad = gpu_check.Part(lambda *_: [["-c", "pass"], ["-c", mended]], lambda work: len(Path("bad").read_text()))
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


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("name", gpu_check.PARTS)
def test_all_is_written_into_the_checks_own_folder(name: str, quick: bool, tmp_path: Path) -> None:
    """Finished runs in runs/ may have been trained on another device, and would be measured as this one's."""
    places = {"tests": ["--junitxml"], "bench": ["--out"], "claims": ["--report", "--runs_dir"]}[name]
    for words in gpu_check.PARTS[name].commands(tmp_path, quick):
        assert all(Path(words[words.index(flag) + 1]).parent == tmp_path for flag in places)


@pytest.mark.parametrize("quick", [False, True])
def test_the_numerical_tests_are_there(quick: bool, tmp_path: Path) -> None:
    (words,) = gpu_check.PARTS["tests"].commands(tmp_path, quick)
    assert all((ROOT / word).exists() for word in words if word.startswith("tests/"))


def test_the_part_of_the_claims_has_its_earlier_name_too() -> None:
    assert gpu_check.parser().parse(["--parts", "ledger"]).parts == ["claims"]


def test_the_quick_claims_are_one_without_runs_and_one_that_trains() -> None:
    claims = {claim.name: claim for claim in load("reproduction").claims}
    assert [bool(claims[name].runs) for name in QUICK_CLAIMS] == [False, True]


def test_another_device_has_runs_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    leave = gpu_check.Part(lambda work, quick: [["-c", f"open({str(work / 'run')!r}, 'x')"]], lambda work: 1)
    monkeypatch.setattr(gpu_check, "PARTS", {"leave": leave})
    for device in ("cpu", "gpu"):
        monkeypatch.setattr(gpu_check, "_device", lambda device=device: device)
        assert gpu_check.main(["--out", f"{device}.json"]) == 0
    assert len(list(tmp_path.glob("runs/gpu_check/*/run"))) == 2


def test_a_damaged_file_of_the_check_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_check, "_device", lambda: "cpu")
    out = tmp_path / "gpu_check.json"
    for parts in (None, [], {"tests": None}, {"tests": {}}, {"tests": {"exit_status": 0}}):
        out.write_text(json.dumps(gpu_check._so_far(tmp_path / "none", True) | {"parts": parts}))
        with pytest.raises(StoreError, match=r"gpu_check\.json is not the file of such a check"):
            gpu_check._so_far(out, True)


def test_a_file_of_somebody_elses_is_not_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(gpu_check, "_device", lambda: "cpu")
    done: list[Path] = []
    part = gpu_check.Part(lambda work, quick: done.append(work) or [], lambda work: None)
    monkeypatch.setattr(gpu_check, "PARTS", {"good": part})
    (tmp_path / "mine.json").write_text('{"mine": 1}')
    with pytest.raises((StoreError, ConfigError), match=r"mine\.json"):
        gpu_check.main(["--out", "mine.json"])
    assert (tmp_path / "mine.json").read_text() == '{"mine": 1}'
    assert done == []  # before an hour's work, not after
