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
from studies.findings import Told, image, numbered, told
from studies.study import Study
from studies.template import rendered


def name_of(study: Study, profile: str) -> str:
    """The name of the page of a study's results."""
    return f"{study.results(profile)}.md"


def check(study: Study, profile: str, out: Path, figures: Sequence[AnyFigure] = ()) -> None:
    """`StoreError` if what a study writes, with these figures, would replace somebody else's work."""
    names = [ledger.TABLE, ledger.PAGE, ledger.INDEX, name_of(study, profile)]
    names += [f"{study.name}/{figure.name}.{suffix}" for figure in figures for suffix in ("csv", "json")]
    if study.conditions:
        names += [f"{study.results(profile)}/{name}" for name in study.conditions.tables]
    outputs.check([out / name for name in names], ledger.WRITER)
    outputs.check([out / ledger.FIGURES / f"{about}.png" for about in LISTS], style.WRITER)


def write(study: Study, profile: str, out: Path) -> None:
    """Writes the page of a study; of conditions once their tables are there."""
    tables = study.conditions.tables[:1] if study.conditions else ()
    if all((out / study.results(profile) / name).exists() for name in tables):
        outputs.write({out / name_of(study, profile): render(study, profile, out).encode()}, ledger.WRITER)


def render(study: Study, profile: str, out: Path) -> str:
    """The page: claims with their verdicts from the ledger there, findings that rest on them, and the figures there."""
    folder = study.results(profile)
    shown = {finding.figure for finding in study.findings}
    further = [figure for figure in as_drawn(study, out / folder) if figure.name not in shown]
    lines = ledger.counted(ledger.rows_of([study], ledger.known(out)))
    values = {"findings": numbered(findings(study, lines["rows"], out)), "figures": further, **lines}
    values |= study.conditions.values(out / folder) if study.conditions else {}
    template = Path(__file__).parent / study.name / "page.md.j2"
    return rendered(template, folder=folder, profile=profile, **values)


def findings(study: Study, rows: Sequence[ledger.Row], out: Path) -> list[Told]:
    """A study's findings as these lines of the ledger have them, with the figures there."""
    by_name = {row["claim"]: row for row in rows}
    titles = {figure.name: figure.title for figure in (*study.figures, *as_drawn(study, out / study.name))}
    images = {one: image(out, image_of(study.name, one), titles[one]) for one in (f.figure for f in study.findings)}
    return [told(finding, by_name, images[finding.figure]) for finding in study.findings]


def image_of(folder: str, name: str) -> str:
    """The path of a figure's image below the folder of the results."""
    return f"{folder}/{name}.png"
