"""A user's own study through `studies.run FILE`: its page and table, and files that are refused."""

import csv
import re
from pathlib import Path

import pytest

from icl_lab.studies import ledger
from tests import processes
from tests.runners.tiny import ROOT

# a claim that needs no training, so that a command takes seconds: the mean of 10^5 squares of normal numbers is 1
TEXT = """import numpy as np

from icl_lab.studies.claim import OURS, Claim, Rival
from icl_lab.studies.runs import Runs
from icl_lab.studies.study import Study


def second_moment(seed):
    return float(np.mean(np.random.default_rng(seed).standard_normal(100_000) ** 2))


def fourth_moment(seed):
    return float(np.mean(np.random.default_rng(seed).standard_normal(100_000) ** 4))


RIVAL = Rival("the fourth moment", fourth_moment)
CLAIM = Claim("own_moment", "", "the second moment", 1.0, 0.98, 1.02, "theory", second_moment, paper=OURS, about="ours")
CLAIMS = [CLAIM._replace(control=RIVAL, tier="main")]
RUNS = {"linear": Runs("lsa1", {"steps": 40}, tuple(range(8)))}
STUDY = Study("mine", RUNS, CLAIMS)
"""
PAGE = '# Moments\n\nIt is {{ value("own_moment") }}: {{ verdict("own_moment") }}.\n'


def run(folder: Path, *words: str, text: str = TEXT, page: str | None = PAGE) -> processes.Done:
    """The command on mine.py in a folder, with results and runs beside it."""
    (folder / "mine.py").write_text(text)
    if page is not None:
        (folder / "mine.md").write_text(page)
    where = ["--runs_dir", str(folder / "runs"), "--report", str(folder / "out"), "--out", str(folder / "runs.csv")]
    return processes.command("studies.run", str(folder / "mine.py"), *where, "--quiet", *words)


def test_it_is_measured_judged_and_written_in_a_folder_of_its_own(tmp_path: Path) -> None:
    """The squares' mean is 1 within .0045, a standard error of sqrt(2 / 10^5), and the fourth power's is 3."""
    report = {path: path.stat().st_mtime_ns for path in (ROOT / "report").rglob("*")}
    done = run(tmp_path)
    assert done.returncode == 0, done.stderr
    assert "1 of 1, own_moment: as predicted" in done.stdout
    out = tmp_path / "out/mine"
    (row,) = csv.DictReader((out / ledger.TABLE).read_text().splitlines())
    assert (row["claim"], row["verdict"], row["n"], row["tier"]) == ("own_moment", "as predicted", "8", "main")
    assert float(row["mean"]) == pytest.approx(1, abs=0.01)
    assert float(row["control_mean"]) == pytest.approx(3, abs=0.1)
    assert row["command"] == f"python -m studies.run {tmp_path / 'mine.py'} --claims own_moment"
    text = (out / "mine.md").read_text()
    assert re.search(r"^It is 1\.0\d* \[[\d., ]*; n = 8\]: as predicted\.$|^It is \.?0?\.99\d* \[", text, re.M)
    assert "| `own_moment` |" in text
    assert not (out / ledger.PAGE).exists()
    assert report == {path: path.stat().st_mtime_ns for path in (ROOT / "report").rglob("*")}
    again = run(tmp_path, "--claims", "own_moment")
    assert again.returncode == 0, again.stderr


WRONG = {
    "no rival": (TEXT.replace("control=RIVAL, ", ""), PAGE, "claim own_moment is a main result and names no rival"),
    "runs": (TEXT.replace("tier=", "runs='lineer', tier="), PAGE, "the runs 'lineer'.*, did you mean linear"),
    "no study": (TEXT.replace("STUDY = Study", "OTHER = Study"), PAGE, "states no conjecture and no study"),
    "another thing": (TEXT + "STUDY = 3\n", PAGE, "STUDY is a int; it must be a studies.study.Study"),
    "a name of ours": (TEXT.replace("own_moment", "one_layer_loss"), PAGE, "the name of a claim of the laboratory"),
    "the page's claim": (
        TEXT,
        PAGE.replace("own_m", "own_w"),
        "there is no claim 'own_woment', did you mean own_moment",
    ),
    "a typed number": (TEXT, PAGE + "It is 1.00.\n", r"mine\.md, line 4: 1\.00 is typed by hand"),
    "measure": (
        TEXT.replace("return float(np.mean", "return float(1 / 0 + np.mean"),
        PAGE,
        "line 9: ZeroDivisionError",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_file_is_one_sentence_and_leaves_no_result(name: str, tmp_path: Path) -> None:
    text, page, said = WRONG[name]
    done = run(tmp_path, text=text, page=page)
    assert done.returncode == 2
    assert re.search(rf"^error: [^\n]*{said}[^\n]*\n\Z", done.stderr, re.M)
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()


def test_an_unknown_claim_names_the_nearest_and_controls_are_measured_with_their_claims(tmp_path: Path) -> None:
    done = run(tmp_path, "--claims", "own_momen")
    assert (done.returncode, done.stderr) == (2, "error: unknown claim 'own_momen', did you mean own_moment?\n")
    done = run(tmp_path, "--controls")
    assert done.returncode == 2
    assert "--controls and --seeds are only for the built-in studies" in done.stderr


def test_other_seeds_than_those_that_were_read_are_refused(tmp_path: Path) -> None:
    """As if the file had named three seeds when its claim was read."""
    assert run(tmp_path, page=None).returncode == 0
    assert not list(tmp_path.rglob("*.md"))  # a page is written where there is one to fill in
    table = tmp_path / "out/mine" / ledger.TABLE
    fewer = table.read_text().replace("[1360, 1361, 1362, 1363, 1364, 1365, 1366, 1367]", "[1360, 1361, 1362]")
    assert fewer != table.read_text()
    table.write_text(fewer)
    done = run(tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(
        "error: own_moment was read on seeds 1360 to 1362, and its runs have seeds 1360 to 13"
    )
    assert done.stderr.endswith(
        "to measure it again, use a new reading on fresh seeds: state it as a claim of another name\n"
    )
