"""The page of a study: what holds, figures and tables, from its template and what lies in report/."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from icl_lab.plots import style
from icl_lab.store import outputs
from icl_lab.studies import ledger, written_page
from icl_lab.studies.drawing import as_drawn, place_of
from icl_lab.studies.figure import AnyFigure
from icl_lab.studies.findings import Statement, WrittenFinding, image, numbered, value, written
from icl_lab.studies.question import Question
from icl_lab.studies.study import Study
from icl_lab.studies.template import rendered


def name_of(study: Study, profile: str) -> str:
    """The name of the page of a study's results."""
    return f"{study.results(profile)}.md"


def check(study: Study, profile: str, out: Path, figures: Sequence[AnyFigure] = ()) -> None:
    """`StoreError` if what a study writes, with these figures, would replace somebody else's work."""
    names = [ledger.TABLE, ledger.PAGE, ledger.INDEX, name_of(study, profile)]
    names += [page_of(study, question) for question in study.questions]
    names += [f"{study.name}/{figure.name}.{suffix}" for figure in figures for suffix in ("csv", "json")]
    if study.conditions:
        names += [f"{study.results(profile)}/{name}" for name in study.conditions.tables]
    outputs.check([out / name for name in names], ledger.WRITER)
    places = [place_of(study, out / study.name / f"{figure.name}.csv") for figure in figures]
    outputs.check([place.with_suffix(f".{kind}") for place in places for kind in ("png", "pdf")], style.WRITER)


def write(study: Study, profile: str, out: Path) -> None:
    """Writes the page of a study; of conditions once their tables are there. A user's may have none."""
    if study.file and not study.written.exists():
        return
    tables = study.conditions.tables[:1] if study.conditions else ()
    if all((out / study.results(profile) / name).exists() for name in tables):
        pages = {name_of(study, profile): render(study, profile, out)}
        pages |= {page_of(study, asked.question): _render_question(study, asked, out) for asked in answers(study, out)}
        outputs.write({out / name: text.encode() for name, text in pages.items()}, ledger.WRITER)


def render(study: Study, profile: str, out: Path) -> str:
    """The page: claims with their verdicts from the ledger there, findings that rest on them, and the figures there."""
    if study.written.exists():
        return written_page.render(study, study.written, profile, ledger.rows_in(out, [study]), out)
    folder = study.results(profile)
    drawn = as_drawn(study, out / folder)
    of_findings = {finding.figure for finding in study.findings}
    also = [image(out, image_of(folder, one.name), one.title) for one in drawn if one.name in study.shown - of_findings]
    further = [figure for figure in drawn if figure.name not in study.shown]
    lines = ledger.counted(ledger.rows_in(out, [study]))
    values = {"findings": numbered(findings(study, lines["rows"], out)), "also": also, "further": further, **lines}
    values |= study.conditions.values(out / folder) if study.conditions else {}
    values |= {"answers": answers(study, out)} if study.questions else {}
    template = Path(__file__).parent / study.name / "page.md.j2"
    return rendered(template, folder=folder, profile=profile, **values)


class Answer(NamedTuple):
    """A question as the ledger has it: what each of its statements predicts, what is measured, the claim's line."""

    question: Question
    measured: list[tuple[Statement, str, ledger.Row]]
    rows: list[ledger.Row]


def answers(study: Study, out: Path) -> list[Answer]:
    """What is measured of a study's questions."""
    by_name = {row["claim"]: row for row in ledger.rows_in(out, [study])} if study.questions else {}
    return [
        Answer(
            question,
            [
                (one, one.number.format(value=value(by_name[one.claim])), by_name[one.claim])
                for one in question.statements
            ],
            [by_name[name] for name in question.claims],
        )
        for question in study.questions
    ]


def page_of(study: Study, question: Question) -> str:
    """The name of a question's page."""
    return f"{study.name}/{question.name}.md"


def _render_question(study: Study, asked: Answer, out: Path) -> str:
    titles = {figure.name: figure.title for figure in study.figures}
    images = [image(out / study.name, f"{name}.png", titles[name]) for name in asked.question.figures]
    template = Path(__file__).with_name("question.md.j2")
    return rendered(template, images=images, study=study.name, **asked._asdict())


def findings(study: Study, rows: Sequence[ledger.Row], out: Path) -> list[WrittenFinding]:
    """A study's findings as these lines of the ledger have them, with the figures there."""
    by_name = {row["claim"]: row for row in rows}
    titles = {figure.name: figure.title for figure in (*study.figures, *as_drawn(study, out / study.name))}
    images = {one: image(out, image_of(study.name, one), titles[one]) for one in (f.figure for f in study.findings)}
    return [written(finding, by_name, images[finding.figure]) for finding in study.findings]


def image_of(folder: str, name: str) -> str:
    """The path of a figure's image below the folder of the results."""
    return f"{folder}/{name}.png"
