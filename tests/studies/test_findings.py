"""The findings that pages begin with: said as found where their claims are reproduced, and plainly not elsewhere."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from icl_lab.store.atomic import csv_bytes, write_bytes
from icl_lab.studies import ledger, page
from icl_lab.studies.claim import OURS, UNBOUNDED, Claim, Measurement, Rival
from icl_lab.studies.findings import OPENINGS, OWN_CONTRADICTED, Finding, Statement, image, numbered, sentence, written
from icl_lab.studies.reproduction.findings import without_the_next
from icl_lab.studies.study import Study, load
from icl_lab.studies.verdict import holds, judge
from icl_lab.studies.words import HIGHER, HOLDS, LOWER, VERDICTS
from tests.runners.tiny import ROOT

REPORT = ROOT / "report"
STUDIES = ("reproduction", "task_diversity")
A_STUDY = Study("a_study")
STATEMENT = Statement("c", "the ratio is {value}", "They are equal", also=lambda value: 2 * value)
RATIO = Claim("c", "1", "ratio", 1.0, 0.9, 1.1, "text", float, scale="linear", no_effect=(1.9, 2.1))


def measured(*values: float, control: tuple[float, ...] = ()) -> Measurement:
    seeds = tuple(range(len(values)))
    return Measurement(values, seeds, 0.5, "cpu", "2026-01-01", "abc", control_values=control)


def said(claim: Claim, measurement: Measurement | None, statement: Statement = STATEMENT) -> str:
    return sentence(statement, ledger.row(A_STUDY, claim, measurement))


TWO = (*[1.0] * 5, *[5.0] * 3)  # runs of two kinds


@pytest.mark.parametrize(
    ("values", "control", "expected"),
    [
        ([1.0] * 8, (), "They are equal: the ratio is 1 [1, 1; n = 8]."),
        ([0.9, 1.0, 1.1], (), "Undecided: the ratio is 1.00 [0.83, 1.17; n = 3] (accepted: 0.9 to 1.1)."),
        ([3.0] * 8, (), "Not what the paper finds: the ratio is 3 [3, 3; n = 8] (accepted: 0.9 to 1.1)."),
        ([2.0] * 8, (), "No effect is found: the ratio is 2 [2, 2; n = 8] (accepted: 0.9 to 1.1)."),
        (
            [1.0] * 2,
            (),
            "Provisional, reproduced at n = 2: the ratio is 1 [1, 1; n = 2] (accepted: 0.9 to 1.1).",
        ),
        (
            [3.0] * 7,
            (),
            "Provisional, contradicted at n = 7: the ratio is 3 [3, 3; n = 7] (accepted: 0.9 to 1.1).",
        ),
        (
            [1.0] * 8,
            (1.0,),
            "Uninformative, untrained networks are in the range: the ratio is 1 [1, 1; n = 8] (accepted: 0.9 to 1.1).",
        ),
        ([1.0], (), "Undecided: the ratio is 1, one run (accepted: 0.9 to 1.1)."),
        ([1.0, float("nan")], (), "Undecided, it is not computed for a run: the ratio is … (accepted: 0.9 to 1.1)."),
    ],
)
def test_a_sentence_is_what_the_verdict_allows(values: list[float], control: tuple[float, ...], expected: str) -> None:
    assert said(RATIO, measured(*values, control=control)) == expected


def test_a_sentence_of_a_rival_of_two_kinds_and_of_another_scale() -> None:
    reached = said(RATIO._replace(control=Rival("another")), measured(*[1.0] * 8, control=(1.05, 1.06, 1.07)))
    assert reached.startswith("Uninformative, its rival reaches the range: the ratio is 1 [1, 1; n = 8]")
    smaller = said(RATIO._replace(smaller="shorter"), measured(*[1.0] * 8))
    assert smaller.startswith("Not at the paper's scale, reproduced at n = 8: the ratio is 1 [1, 1; n = 8]")
    assert said(RATIO._replace(cut=3.0), measured(*TWO)) == (
        "Runs of two kinds: the ratio is in the accepted range in 5 of 8 runs (at least 29 %) (accepted: 0.9 to 1.1)."
    )


def test_there_is_a_beginning_for_every_verdict() -> None:
    assert {*OPENINGS, *HOLDS} == {*VERDICTS} - {HIGHER, LOWER}  # which contrasts alone have


def test_a_sentence_of_what_was_not_trained_has_no_number() -> None:
    assert said(RATIO, None) == "Not run: the ratio is … (accepted: 0.9 to 1.1)."


def test_what_a_paper_does_not_say_does_not_contradict_it() -> None:
    own = said(RATIO._replace(about="ours", paper=OURS), measured(*[3.0] * 8))
    assert own == "Not what we expected: the ratio is 3 [3, 3; n = 8] (accepted: 0.9 to 1.1)."


def test_of_every_run_it_is_said_in_how_many() -> None:
    every, statement = RATIO._replace(every=True), STATEMENT._replace(number="it is {accepted} in {value}")
    assert (
        said(every, measured(*[1.0] * 8), statement)
        == "They are equal: it is 0.9 to 1.1 in 8 of 8 runs (at least 69 %)."
    )
    missed = said(every, measured(*[1.0] * 7, 3.0), statement)
    assert missed == "Not what the paper finds: it is 0.9 to 1.1 in 7 of 8 runs (at least 53 %) (accepted: all)."


def test_a_run_that_diverged_leaves_no_number() -> None:
    inf = float("inf")
    assert "the ratio is infinite (n = 3) (accepted" in said(RATIO, measured(1.0, inf, inf))


def test_the_same_number_is_put_otherwise_with_its_interval() -> None:
    statement = STATEMENT._replace(number="{value}, twice that {also}")
    assert ", twice that 2.00 [1.87, 2.13] (accepted" in said(RATIO, measured(0.99, 1.01), statement)


def test_a_finding_holds_where_all_its_claims_do() -> None:
    finding = Finding("both", "f", (STATEMENT, STATEMENT._replace(claim="d", number="so is this, {value}", meaning="")))
    good, bad = (ledger.row(A_STUDY, RATIO, measured(*[value] * 8)) for value in (1.0, 3.0))
    assert written(finding, {"c": good, "d": good}, "x").holds
    mixed = written(finding, {"c": good, "d": bad}, "x")
    assert not mixed.holds
    assert mixed.says == (
        "They are equal: the ratio is 1 [1, 1; n = 8]. "
        "Not what the paper finds: so is this, 3 [3, 3; n = 8] (accepted: 0.9 to 1.1)."
    )
    assert numbered([mixed, mixed._replace(figures=("y", ""))]) == f"1. {mixed.says}\n\nx\n\n2. {mixed.says}\n\ny"


def test_a_figure_that_is_not_drawn_is_said(tmp_path: Path) -> None:
    assert image(tmp_path, "s/f.png", "Losses") == "No figure yet: Losses."
    (tmp_path / "s").mkdir()
    (tmp_path / "s/f.png").write_bytes(b"")
    assert image(tmp_path, "s/f.png", "Losses") == "![Losses](s/f.png)"


def made(claim: Claim, verdict: str) -> Measurement | None:
    """A measurement that gives this verdict: eight seeds well inside the range or outside, or two that differ."""
    if verdict == "not run":
        return None
    bounded = claim.high < UNBOUNDED
    inside = (claim.low + claim.high) / 2 if bounded else claim.low + max(claim.low, 1)
    if claim.scale == "linear" and not bounded:
        outside = claim.low - 1
    else:
        outside = claim.low / 2 if claim.low > 0 else 2 * claim.high
    if verdict == "undecided":
        return measured(inside, outside)
    spread = np.linspace(1, 1 + 1e-5, 2 if verdict == "provisional" else 8)
    if verdict == "provisional" and claim.every:
        spread = np.linspace(1, 1 + 1e-5, 5)  # fewer say nothing of every run
    values = (outside if verdict == "contradicted" else inside) * spread
    control = inside if verdict == "uninformative" else outside
    return measured(*map(float, values), control=(control, control))


@pytest.mark.parametrize("name", STUDIES)
@pytest.mark.parametrize(
    "verdict", ["reproduced", "contradicted", "undecided", "uninformative", "provisional", "not run"]
)
def test_a_page_says_of_each_claim_what_a_made_up_ledger_has(verdict: str, name: str, tmp_path: Path) -> None:
    study = load(name)  # whatever falls short of a paper's scale has a test of its own
    study = replace(study, claims=[claim._replace(smaller="") for claim in study.claims])
    claims = {claim.name: claim for claim in study.claims}
    own = [statement for finding in study.findings for statement in finding.statements]
    rows = []
    for claim in (claims[statement.claim] for statement in own):
        measurement = made(claim, verdict)
        found = judge(claim, measurement).verdict
        # one run outside contradicts what is said of every run, of too few
        word = holds(claim) if verdict == "reproduced" else verdict
        assert found == (word if not (claim.every and verdict == "undecided") else "provisional"), claim.name
        rows.append(ledger.row(study, claim, measurement))
    write_bytes(tmp_path / ledger.TABLE, csv_bytes(rows))
    text = page.render(study, study.profiles[-1], tmp_path).partition("## Five findings")[2].partition("\n## ")[0]
    assert re.findall(r"^(\d)\. ", text, re.M) == list("12345")
    for statement in own:
        assert not statement.meaning or (statement.meaning in text) == (verdict == "reproduced"), statement.claim
        said = sentence(statement, next(row for row in rows if row["claim"] == statement.claim))
        assert said in text
        assert bool(re.search(r"; n = \d\]|\d of \d runs", said)) == (verdict != "not run"), said
    opening = {*OPENINGS.values(), OWN_CONTRADICTED}
    assert any(re.search(rf"{words}(, [^:]*)?: ", text) for words in opening) == (verdict != "reproduced")


@pytest.mark.parametrize("name", STUDIES)
def test_five_findings_rest_on_claims_and_figures_of_the_study(name: str) -> None:
    study = load(name)
    assert len(study.findings) == 5
    figures = [finding.figure for finding in study.findings]
    assert len(set(figures)) == 5
    assert set(figures) <= {figure.name for figure in study.figures}
    own = [statement.claim for finding in study.findings for statement in finding.statements]
    assert len(set(own)) == len(own)
    assert set(own) <= {claim.name for claim in study.claims}


@pytest.mark.parametrize("name", STUDIES)
def test_a_page_shows_each_figure_once_and_those_of_findings_first(name: str) -> None:
    study = load(name)
    text = (REPORT / f"{name}.md").read_text()
    shown = re.findall(rf"\]\({name}/(\w+)\.png\)", text)
    assert shown[:5] == [finding.figure for finding in study.findings]
    assert len(set(shown)) == len(shown)
    assert set(shown) == {path.stem for path in (REPORT / name).glob("*.png")}


@pytest.mark.parametrize("ratio", [0.5, 1.0, 15.0, 68.5])
def test_the_two_ratios_of_copying_are_one_number(ratio: float) -> None:
    """Of norms 1 to the 18 others and r to the next token, the published mean over the others is (r + 18) / 19."""
    published = ratio / ((ratio + 18) / 19)
    assert without_the_next(published) == pytest.approx(ratio)
    assert without_the_next(19.0) == float("inf")


@pytest.mark.parametrize("name", ["claims", "order_noise", *STUDIES])
def test_what_a_page_lists_is_short_and_ends_without_blanks(name: str) -> None:
    text = (REPORT / f"{name}.md").read_text()
    assert [line for line in text.splitlines() if line != line.rstrip()] == []
    assert "\n\n\n" not in text
    bullets = re.findall(r"^- .*(?:\n  .*)*", text, re.M)
    assert [bullet for bullet in bullets if len(bullet.split()) > 48] == []
    assert (len(bullets) > 3) == (name != "reproduction")
