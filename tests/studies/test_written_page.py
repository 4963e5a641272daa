"""Pages written by hand: what is filled in, what is refused, and numbers that are typed."""

from pathlib import Path

import pytest

from icl_lab.src.checks import UserError
from icl_lab.studies import ledger, written_page
from icl_lab.studies.claim import OURS, Claim, Measurement
from icl_lab.studies.dot_figure import Dots
from icl_lab.studies.runs import Runs
from icl_lab.studies.study import Study, all_studies
from tests.runners.tiny import ROOT

CLAIM = Claim("own_ratio", "", "a ratio", 1.0, 0.9, 1.2, "ours", lambda run: 1.0, "linear", about="ours", paper=OURS)
CLAIM = CLAIM._replace(scale="linear")
RUNS = {"linear": Runs("lsa1", {"steps": 1234, "num_pairs": 7}, tuple(range(8)))}
STUDY = Study("mine", RUNS, [CLAIM], [Dots("dots", "Dots", {"linear": "linear"}, lambda run: {})], file=Path("mine.py"))
VALUES = tuple(1 + i / 50 for i in range(8))


def written(tmp_path: Path, text: str) -> Path:
    page = tmp_path / "mine.md"
    page.write_text(text)
    return page


def test_numbers_come_from_the_table_and_the_configs(tmp_path: Path) -> None:
    """The interval by hand: a deviation of .02 sqrt(6) over sqrt(8), times 1.895, the quantile of t with 7 degrees."""
    measurement = Measurement(VALUES, tuple(range(8)), 1.0, "cpu", "", "", control_values=(3.0, 3.1, 3.2))
    rows = [ledger.row(STUDY, CLAIM, measurement)]
    page = written(
        tmp_path,
        '# Mine\n\n{{ setting("linear", "steps") }} steps, {{ setting("linear", "data.num_pairs") }} pairs: '
        '{{ value("own_ratio") }}, {{ mean("own_ratio") }} of {{ n("own_ratio") }}, {{ verdict("own_ratio") }}.\n\n'
        '{{ figure("dots") }}\n',
    )
    written_page.check(STUDY, page)
    text = written_page.render(STUDY, page, "quick", rows, tmp_path)
    first, _, below = text.partition("## Where the numbers come from")
    assert "1234 steps, 7 pairs: 1.070 [1.037, 1.103; n = 8], 1.07 of 8, as predicted." in first
    assert "No figure yet: Dots." in first
    assert "| `own_ratio` | a ratio |" in below
    assert "| as predicted | " in below
    assert "`python -m studies.run mine.py --profile quick`" in below


def test_a_power_is_two_to_the_value_and_a_verdict_leaves_details_to_the_table(tmp_path: Path) -> None:
    """Two to 1.07, and to the ends 1.037 and 1.103, by hand; 1 where the value is 0."""
    smaller = CLAIM._replace(smaller="batches of 64; the paper's have 256")
    page = written(tmp_path, '{{ power("own_ratio") }}, {{ verdict("own_ratio") }}')
    measurement = Measurement(VALUES, tuple(range(8)), 1.0, "cpu", "", "", control_values=(3.0, 3.1, 3.2))
    text = written_page.render(STUDY, page, "quick", [ledger.row(STUDY, smaller, measurement)], tmp_path)
    assert text.startswith("2.10 [2.05, 2.15; n = 8], not at the paper's scale (as predicted at n = 8)\n")
    assert text.count("batches of 64") == 1
    nothing = Measurement((0.0,) * 8, tuple(range(8)), 1.0, "cpu", "", "", control_values=(3.0, 3.1, 3.2))
    text = written_page.render(STUDY, page, "quick", [ledger.row(STUDY, CLAIM, nothing)], tmp_path)
    assert text.startswith("1 [1, 1; n = 8], ")


def test_what_is_not_run_has_no_number(tmp_path: Path) -> None:
    filled_in = (f'{{{{ {does}("own_ratio") }}}}' for does in ("value", "power", "mean", "verdict"))
    page = written(tmp_path, ", ".join(filled_in))
    text = written_page.render(STUDY, page, "quick", [ledger.row(STUDY, CLAIM, None)], tmp_path)
    assert text.startswith("…, …, …, not run\n")


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
        written_page.check(STUDY, written(tmp_path, text))
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
    assert [number for _, number in written_page.numbers_by_hand(text)] == TYPED[text]


@pytest.mark.parametrize("text", NOT_TYPED)
def test_digits_that_are_no_results_are_not(text: str) -> None:
    assert written_page.numbers_by_hand(text) == []


def test_numbers_have_their_lines() -> None:
    assert written_page.numbers_by_hand("```\n7\n```\n\nand 8\n") == [(5, "8")]


def test_every_page_written_by_hand_has_its_numbers_from_the_tables() -> None:
    """Those of the house; studies of today have templates, and those that are added have such pages."""
    templates = {"reproduction", "task_diversity", "order_noise", "stages", "languages", "theory"}
    for study in all_studies():
        if study.written.exists():
            written_page.check(study, study.written)
        else:
            assert study.name in templates
            assert (ROOT / "studies" / study.name / "page.md.j2").exists()
