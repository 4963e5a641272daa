"""The pictures that are committed: few, small, each shown by a page, and no more of them when claims are added."""

import re
import subprocess
from pathlib import Path

import pandas as pd
import pytest

from icl_lab.studies.drawing import DRAWN
from icl_lab.studies.ledger import TABLE
from icl_lab.studies.study import all_studies
from tests.runners.tiny import ROOT

MOST, LARGEST = 70, 80_000  # pictures in the whole tree; bytes of one
MOVING, LARGEST_MOVING = "docs/figures/training.gif", 1_000_000  # the one that moves
KINDS = ("png", "jpg", "jpeg", "gif", "svg", "pdf", "webp")
RUN = "demos_ref/lsa1"  # a finished run, committed with the figures that it drew


@pytest.fixture(scope="module")
def committed() -> list[str]:
    if not (ROOT / ".git").exists():
        pytest.skip("this is no checkout")
    found = git("ls-files", *(f"*.{kind}" for kind in KINDS)).stdout.splitlines()
    assert found
    return found


def git(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)


def test_there_are_few_pictures_and_none_is_large(committed: list[str]) -> None:
    assert len(committed) <= MOST
    assert [name for name in committed if (ROOT / name).stat().st_size > LARGEST] == [MOVING]
    assert (ROOT / MOVING).stat().st_size <= LARGEST_MOVING


def test_each_is_shown_by_a_page_and_every_picture_of_a_page_is_there(committed: list[str]) -> None:
    pages = [ROOT / name for name in git("ls-files", "*.md").stdout.splitlines()]
    links = {
        (page.parent / link).resolve().relative_to(ROOT.resolve()).as_posix()
        for page in pages
        for link in re.findall(rf"!\[[^]]*\]\(([^)]+\.(?:{'|'.join(KINDS)}))\)", page.read_text())
    }
    own = {name for name in committed if name.startswith(f"{RUN}/figs/")}
    assert {*committed} - own <= links
    assert links <= {*committed}


def test_a_study_keeps_the_pictures_that_its_pages_show_and_no_other(committed: list[str]) -> None:
    """All of them, but for those of runs that are not trained yet."""
    measured = set(pd.read_csv(ROOT / "report" / TABLE).query("n > 0")["claim"])
    for study in (study for study in all_studies() if not study.conditions):
        kept = {Path(name).stem for name in committed if Path(name).parent == Path("report", study.name)}
        waiting = {claim.figure for claim in study.claims if claim.name not in measured}
        assert kept <= study.shown
        assert study.shown - waiting <= kept


def test_what_no_page_shows_is_drawn_where_git_does_not_look() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("this is no checkout")
    for study in all_studies():
        assert git("check-ignore", f"report/{study.name}/{DRAWN}/one.png").returncode == 0
        assert git("check-ignore", f"report/{study.name}/one.png").returncode == 1
