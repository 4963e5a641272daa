"""The files of a study's results, without the minutes, date and commits of a claim that was measured."""

import csv
import re
from pathlib import Path

from icl_lab.store import outputs
from icl_lab.studies import ledger


def without_clock(report: Path, claim: str) -> dict[str, bytes]:
    """Every file below the folder of results, but for records and locks."""
    with (report / ledger.TABLE).open(encoding="utf-8") as file:
        row = next(row for row in csv.DictReader(file) if row["claim"] == claim)
    in_tables = [f",{row['minutes']},", f",{row['git_hash']},{row['trained_at']},", row["date"]]
    in_pages = re.compile(rf"^(\| `{claim}` \|.*\|) [\d.]+ \|$".encode(), re.MULTILINE)
    files = {}
    for path in report.rglob("*"):
        if path.is_file() and path.name != outputs.RECORD and path.suffix != ".lock":
            content = in_pages.sub(rb"\1 |", path.read_bytes())
            for text in in_tables:
                content = content.replace(text.encode(), b"")
            files[str(path.relative_to(report))] = content
    return files
