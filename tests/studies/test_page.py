"""Pages: what is filled in, what is refused, numbers that are typed, and what the house's pages have in common."""

import math
import re
from dataclasses import replace
from pathlib import Path

import pytest

from icl_lab.src.checks import UserError
from icl_lab.studies import ledger, main_results, page
from icl_lab.studies.claim import OURS, UNBOUNDED, Claim, Measurement, Rival
from icl_lab.studies.dot_figure import Dots
from icl_lab.studies.drawing import DRAWN
from icl_lab.studies.runs import Runs
from icl_lab.studies.study import Study, all_studies, figures_shown, load
from tests.runners.tiny import ROOT

REPORT = ROOT / "report"

CLAIM = Claim("own_ratio", "", "a ratio", 1.0, 0.9, 1.2, "ours", lambda run: 1.0, "linear", about="ours", paper=OURS)
CLAIM = CLAIM._replace(scale="linear")
RUNS = {"linear": Runs("lsa1", {"steps": 1234, "num_pairs": 7}, tuple(range(8)))}
STUDY = Study("mine", RUNS, [CLAIM], [Dots("dots", "Dots", {"linear": "linear"}, lambda run: {})], file=Path("mine.py"))
VALUES = tuple(1 + i / 50 for i in range(8))


def written(tmp_path: Path, text: str) -> Study:
    """The study with such a page, beside its file."""
    (tmp_path / "mine.md").write_text(text)
    return replace(STUDY, file=tmp_path / "mine.py")


def measured(*values: float, control: tuple[float, ...] = (3.0, 3.1, 3.2)) -> Measurement:
    return Measurement(values, tuple(range(len(values))), 1.0, "cpu", "", "", control_values=control)


def test_numbers_come_from_the_table_and_the_configs(tmp_path: Path) -> None:
    """The interval by hand: a deviation of .02 sqrt(6) over sqrt(8), times 1.895, the quantile of t with 7 degrees."""
    study = written(
        tmp_path,
        '# Mine\n\n{{ setting("linear", "steps") }} steps, {{ setting("linear", "data.num_pairs") }} pairs: '
        '{{ value("own_ratio") }}, {{ mean("own_ratio") }} of {{ n("own_ratio") }}, {{ verdict("own_ratio") }}, '
        '{{ accepted("own_ratio") }}, {{ expected("own_ratio") }}.\n\n{{ figure("dots") }}\n',
    )
    page.check(study)
    text = page.render(study, "quick", [ledger.row(STUDY, CLAIM, measured(*VALUES))], tmp_path)
    first, _, below = text.partition("## Where the numbers come from")
    assert "1234 steps, 7 pairs: 1.070 [1.037, 1.103; n = 8], 1.07 of 8, as predicted, 0.9 to 1.2, 1." in first
    assert "No figure yet: Dots." in first
    assert "| `own_ratio` | a ratio |" in below
    assert "| as predicted | " in below
    assert f"`python -m studies.run {tmp_path}/mine.py --profile quick`" in below


def test_a_table_of_the_study_is_written_from_the_folder_of_its_figures(tmp_path: Path) -> None:
    """And one that it does not have is refused; a study without tables has nothing of the kind."""
    study = replace(written(tmp_path, '{{ table("sizes") }}'), tables={"sizes": lambda folder: f"| {folder.name} |"})
    page.check(study)
    assert page.render(study, "quick", [], tmp_path).startswith("| mine |\n")
    with pytest.raises(UserError, match="line 1: there is no table 'size', did you mean sizes"):
        page.check(replace(written(tmp_path, '{{ table("size") }}'), tables=study.tables))
    with pytest.raises(UserError, match="nothing else"):
        page.check(written(tmp_path, '{{ table("sizes") }}'))


def filled(tmp_path: Path, text: str, claim: Claim, measurement: Measurement | None) -> str:
    """The first line of a page."""
    study = written(tmp_path, text)
    return page.render(study, "quick", [ledger.row(STUDY, claim, measurement)], tmp_path).partition("\n")[0]


def test_a_power_is_two_to_the_value_and_a_verdict_leaves_details_to_the_table(tmp_path: Path) -> None:
    """Two to 1.07, and to the ends 1.037 and 1.103, by hand; 1 where the value is 0."""
    smaller = CLAIM._replace(smaller="batches of 64; the paper's have 256")
    text = '{{ power("own_ratio") }}, {{ verdict("own_ratio") }}'
    said = filled(tmp_path, text, smaller, measured(*VALUES))
    assert said == "2.10 [2.05, 2.15; n = 8], as predicted at a smaller scale"
    assert filled(tmp_path, text, CLAIM, measured(*[0.0] * 8)).startswith("1 [1, 1; n = 8], ")


def test_a_control_has_its_interval_unless_it_is_a_constant(tmp_path: Path) -> None:
    rival = CLAIM._replace(control=Rival("another"))
    text = '{{ control("own_ratio") }}'
    assert filled(tmp_path, text, rival, measured(*VALUES, control=(3.0, 3.1, 3.2))).startswith("3.10 [")
    assert filled(tmp_path, text, rival, measured(*VALUES, control=(3.0,) * 8)) == "3"
    assert filled(tmp_path, text, rival, measured(*VALUES, control=())) == "…"


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ((1.0,) * 8, "as predicted"),
        ((1.0, 1.01), "provisionally as predicted"),
        ((3.0, 3.01), "provisionally contradicted"),
        ((0.5, 1.6), "undecided"),
        ((math.nan,) * 8, "undecided"),
    ],
)
def test_a_sentence_says_what_the_verdict_allows(values: tuple[float, ...], said: str, tmp_path: Path) -> None:
    assert filled(tmp_path, '{{ verdict("own_ratio") }}', CLAIM, measured(*values)) == said


def test_of_every_run_it_is_said_in_how_many(tmp_path: Path) -> None:
    every, text = CLAIM._replace(every=True), '{{ value("own_ratio") }}'
    assert filled(tmp_path, text, every, measured(*[1.0] * 8)) == "8 of 8 runs (at least 69 %)"
    assert filled(tmp_path, text, every, measured(*[1.0] * 7, 3.0)) == "7 of 8 runs (at least 53 %)"


def test_a_run_that_diverged_and_one_that_is_not_run_leave_no_number(tmp_path: Path) -> None:
    text = ", ".join(f'{{{{ {does}("own_ratio") }}}}' for does in ("value", "power", "mean", "verdict"))
    assert filled(tmp_path, text, CLAIM, None) == "…, …, …, not run"
    inf = float("inf")
    assert filled(tmp_path, text, CLAIM, measured(1.0, inf, inf)).startswith("infinite (n = 3), ")


WRONG = {
    "claim": ('\n{{ value("own_rato") }}', "line 2: there is no claim 'own_rato', did you mean own_ratio"),
    "figure": ('{{ figure("dot") }}', "line 1: there is no figure 'dot', did you mean dots"),
    "runs": ('{{ setting("lineer", "steps") }}', "line 1: there is no runs 'lineer', did you mean linear"),
    "key": ('{{ setting("linear", "step") }}', "config key 'step'.* did you mean steps"),
    "function": (
        '{{ valu("own_ratio") }}',
        "line 1: a page fills in value.claim.,.* and nothing else, did you mean value",
    ),
    "arguments": ('{{ value("own_ratio", "n") }}', "line 1: a page fills in .* and nothing else$"),
    "statement": ("{% if 1 %}{% endif %}", "line 1: a page fills in .* and nothing else$"),
    "expression": ("{{ 1 + 1 }}", "line 1: a page fills in .* and nothing else$"),
    "filter": ('{{ value("own_ratio") | upper }}', "line 1: a page fills in .* and nothing else$"),
    "syntax": ('\n\n{{ value("own_ratio" }}', "line 3: "),
    "number": ("The loss is\nabout 1.05 of it.", r"line 2: 1\.05 is typed by hand"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_a_page_cannot_fill_in_is_one_sentence(name: str, tmp_path: Path) -> None:
    text, said = WRONG[name]
    with pytest.raises(UserError, match=said) as raised:
        page.check(written(tmp_path, text))
    assert "\n" not in str(raised.value)


TYPED = {
    "It is 1.05 times, or .5, of 8.": ["1.05", ".5", "8"],
    "## After 5000 steps": ["5000"],
    "Steps 2000 and 12 %": ["2000", "12"],
    "from 0.99-1.01": ["0.99", "1.01"],
    "1,000 tasks": ["1,000"],
}
NOT_TYPED = (
    "`lsa1` at `lr=0.01`, W2 and lsa1",
    "```sh\npython --steps 40\n```",
    'it is {{ setting("linear", "steps") }}',
    "Ahn et al. 2023, arXiv 2306.00297, Th. 1, Fig. 2a and App. A.2",
    "Zhang, Frei and Bartlett 2023; Raventos (2023)",
    "1. first\n2. second",
    "[the ledger](claims.md#2), measured on 2026-11-27",
)


@pytest.mark.parametrize("text", TYPED)
def test_a_number_in_the_prose_is_found(text: str) -> None:
    assert [number for _, number in page.numbers_by_hand(text)] == TYPED[text]


@pytest.mark.parametrize("text", NOT_TYPED)
def test_digits_that_are_no_results_are_not(text: str) -> None:
    assert page.numbers_by_hand(text) == []


def test_numbers_have_their_lines() -> None:
    assert page.numbers_by_hand("```\n7\n```\n\nand 8\n") == [(5, "8")]


# --- the house's pages ---

HOUSE = [study.name for study in all_studies()]
CALL = re.compile(r'\{\{ *(\w+)\("([^"]+)"[^}]*\}\}')


def called(study: Study, does: str) -> list[str]:
    """The first arguments of what a page fills in."""
    return [word for name, word in CALL.findall(study.written.read_text()) if name == does]


@pytest.mark.parametrize("name", HOUSE)
def test_a_page_can_be_filled_in_and_is_short(name: str) -> None:
    """At most 1200 words and five figures, each once; the first screen has the answer in bold and a figure."""
    study = load(name)
    page.check(study)
    text = (REPORT / f"{name}.md").read_text().partition("## Where the numbers come from")[0]
    assert len(text.split()) <= 1200
    figures = called(study, "figure")
    assert 1 <= len(figures) <= 5
    assert len({*figures}) == len(figures)
    first = text.partition("\n## ")[0]
    assert text.startswith("# ")
    assert "?" in first.partition("\n")[0]
    assert "\n**" in first
    assert study.written.read_text().rstrip() == study.written.read_text()[:-1]
    assert {"what we found", "how sure is this?", "see for yourself"} <= {
        heading.lower() for heading in re.findall(r"^## (.*)$", text, re.M)
    } or name in ("solutions", "language_model")


@pytest.mark.parametrize("name", HOUSE)
def test_a_number_on_a_page_has_its_verdict_beside_it(name: str) -> None:
    study = load(name)
    numbers = {word for does in ("value", "power", "mean") for word in called(study, does)}
    assert numbers - {*called(study, "verdict")} == set()


@pytest.mark.parametrize("name", HOUSE)
def test_main_results_are_on_the_page(name: str) -> None:
    study = load(name)
    main = {claim.name for claim in study.claims if claim.tier == "main"}
    assert main <= {*called(study, "value")}


@pytest.mark.parametrize("name", HOUSE)
def test_pictures_are_kept_where_a_page_shows_them_and_nowhere_else(name: str) -> None:
    kept = {path.stem for path in (REPORT / name).glob("*.png")}
    text = (REPORT / f"{name}.md").read_text()
    assert kept == {*re.findall(rf"\]\({name}/(\w+)\.png\)", text)}
    assert kept <= figures_shown(load(name).written)
    assert all(path.stat().st_size <= 80_000 for path in (REPORT / name).glob("*.png"))
    assert all((REPORT / name / f"{stem}.csv").exists() for stem in kept)


def test_at_most_seventy_pictures_are_kept() -> None:
    assert len([path for path in REPORT.rglob("*.png") if path.parent.name != DRAWN]) <= 70


@pytest.mark.parametrize("name", ["claims", *HOUSE])
def test_what_a_page_lists_is_short_and_ends_without_blanks(name: str) -> None:
    text = (REPORT / f"{name}.md").read_text()
    assert [line for line in text.splitlines() if line != line.rstrip()] == []
    assert "\n\n\n" not in text
    bullets = re.findall(r"^- .*(?:\n  .*)*", text, re.M)
    assert [bullet for bullet in bullets if len(bullet.split()) > 48] == []


def test_main_results_are_drawn_with_a_row_for_each_seed(tmp_path: Path) -> None:
    """Of those that are measured."""
    claims = [CLAIM._replace(name=name, tier="main", high=high) for name, high in (("a", 1.2), ("b", UNBOUNDED))]
    study = replace(written(tmp_path, '{{ figure("main_results") }}'), claims=claims)
    page.check(study)
    rows = [ledger.row(study, claims[0], measured(*VALUES)), ledger.row(study, claims[1], None)]
    shown = main_results.rows_of(study, rows)
    assert [(row["claim"], row["low"], row["high"]) for row in shown] == [("a", 0.9, 1.2)]
    assert shown[0]["values"] == list(VALUES)
    ledger.write(tmp_path, {"a": measured(*VALUES)}, [study])
    main_results.draw(study, tmp_path)
    lines = (tmp_path / "mine" / "main_results.csv").read_text().splitlines()
    assert len(lines) == 1 + len(VALUES)
    assert (tmp_path / "mine" / "main_results.png").stat().st_size > 2000
