"""The findings that a page begins with: a sentence or two with their numbers, each with its figures."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from icl_lab.studies.template import measured, range_in_words
from icl_lab.studies.words import (
    CONTRADICTED,
    HOLDS,
    NO_EFFECT,
    NOT_RUN,
    OTHER_SCALE,
    PROVISIONAL,
    TWO_KINDS,
    UNDECIDED,
    UNINFORMATIVE,
)

Row = Mapping[str, Any]

# verdict -> how a sentence begins whose claim does not hold
OPENINGS = {
    UNDECIDED: "Undecided",
    CONTRADICTED: "Not what the paper finds",
    NO_EFFECT: "No effect is found",
    TWO_KINDS: "Runs of two kinds",
    UNINFORMATIVE: "Uninformative",
    PROVISIONAL: "Provisional",
    OTHER_SCALE: "Not at the paper's scale",
    NOT_RUN: "Not run",
}
OWN_CONTRADICTED = "Not what we expected"  # of a claim that is no paper's
NOT_MEASURED = "…"


class Statement(NamedTuple):
    """What a claim measures, and what it means if the claim is reproduced.

    number: a sentence with {value}, the number with its interval and n; {accepted}, the range; and {also}, the same
    number transformed by `also`, an increasing function. meaning: precedes it where the claim is reproduced.
    """

    claim: str
    number: str
    meaning: str = ""
    also: Callable[[float], float] | None = None


class Finding(NamedTuple):
    """Statements that share a figure of their study."""

    name: str
    figure: str
    statements: tuple[Statement, ...]


class WrittenFinding(NamedTuple):
    """A finding in words, whether the numbers bear out all of it, and its figures as Markdown."""

    says: str
    holds: bool
    figures: tuple[str, ...]


def written(finding: Finding, rows: Mapping[str, Row], figure: str) -> WrittenFinding:
    """A finding as the lines of the ledger have it."""
    finding_rows = [rows[statement.claim] for statement in finding.statements]
    says = " ".join(sentence(statement, row) for statement, row in zip(finding.statements, finding_rows, strict=True))
    holds = bool(finding_rows) and all(row["verdict"] in HOLDS for row in finding_rows)
    return WrittenFinding(says, holds, (figure,))


def sentence(statement: Statement, row: Row) -> str:
    """A statement as its claim's verdict allows: with its meaning if reproduced, else with verdict and range."""
    accepted = range_in_words(row["low"], row["high"])
    number = statement.number.format(value=value(row), also=_also(statement, row), accepted=accepted)
    if row["verdict"] in HOLDS:
        said = f"{statement.meaning}: {number}" if statement.meaning else number
        return f"{said[0].upper()}{said[1:]}."
    own_contradicted = row["verdict"] == CONTRADICTED and row["about"] != "paper"
    opening = OWN_CONTRADICTED if own_contradicted else OPENINGS[row["verdict"]]
    opening += f", {row['reading_says']} at n = {row['n']}" if row["verdict"] in (PROVISIONAL, OTHER_SCALE) else ""
    opening += f", {row['because']}" if row["because"] else ""
    return f"{opening}: {number} (accepted: {'all' if row['share'] is not None and row['cut'] is None else accepted})."


def value(row: Row) -> str:
    """The number of a line with its interval and n; for a claim on every run, how many satisfy it."""
    if row["mean"] is None:
        return NOT_MEASURED
    if row["share"] is not None:
        where = "in the accepted range in " if row["cut"] is not None else ""
        return f"{where}{row['share'] * row['n']:.0f} of {row['n']} runs (at least {100 * row['share_low']:.0f} %)"
    if not math.isfinite(row["mean"]):
        return f"infinite (n = {row['n']})"
    return measured(row).replace("]", f"; n = {row['n']}]")


def _also(statement: Statement, row: Row) -> str:
    if statement.also is None or row["mean"] is None:
        return NOT_MEASURED
    numbers = {name: statement.also(row[name]) for name in ("mean", "mean_low", "mean_high")}
    return measured({**row, **numbers}) if math.isfinite(numbers["mean"]) else "infinite"


def numbered(findings: Sequence[WrittenFinding]) -> str:
    """Findings as a numbered list, each followed by its figures."""
    return "\n\n".join(
        "\n\n".join((f"{number}. {finding.says}", *filter(None, finding.figures)))
        for number, finding in enumerate(findings, 1)
    )


def image(out: Path, path: str, title: str) -> str:
    """A figure below a folder of results as Markdown; where it is not drawn, the sentence that says so."""
    return f"![{title}]({path})" if (out / path).exists() else f"No figure yet: {title}."
