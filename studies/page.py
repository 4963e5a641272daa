"""The page of a study: what holds, figures and tables, from its template and what lies in report/."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from plots import style
from store import outputs
from studies import ledger
from studies.claim import LISTS
from studies.drawing import as_drawn
from studies.figure import AnyFigure
from studies.study import Study
from studies.template import rendered


def name_of(study: Study, profile: str) -> str:
    """The name of the page of a study's results."""
    return f"{study.results(profile)}.md"


def check(study: Study, profile: str, out: Path, figures: Sequence[AnyFigure] = ()) -> None:
    """`StoreError` if what a study writes, with these figures, would replace somebody else's work."""
    names = [ledger.TABLE, ledger.PAGE, ledger.INDEX, *([name_of(study, profile)] if study.has_page else [])]
    names += [f"{study.name}/{figure.name}.{suffix}" for figure in figures for suffix in ("csv", "json")]
    if study.conditions:
        names += [f"{study.results(profile)}/{name}" for name in study.conditions.tables]
    outputs.check([out / name for name in names], ledger.WRITER)
    outputs.check([out / ledger.FIGURES / f"{about}.png" for about in LISTS], style.WRITER)


def write(study: Study, profile: str, out: Path) -> None:
    """Writes the page of a study that has one; of conditions once their tables are there."""
    tables = study.conditions.tables[:1] if study.conditions else ()
    if study.has_page and all((out / study.results(profile) / name).exists() for name in tables):
        outputs.write({out / name_of(study, profile): render(study, profile, out).encode()}, ledger.WRITER)


def render(study: Study, profile: str, out: Path) -> str:
    """The page: claims with their verdicts from the ledger there, and the figures that are there."""
    folder = study.results(profile)
    lines = ledger.counted(ledger.rows_of([study], ledger.known(out)))
    values = study.conditions.values(out / folder) if study.conditions else {}
    template = Path(__file__).parent / study.name / "page.md.j2"
    return rendered(template, figures=as_drawn(study, out / folder), folder=folder, profile=profile, **lines, **values)
