"""A question that theory answers: what is asked, predicted and measured, on a page of its own."""

from __future__ import annotations

from typing import NamedTuple

from icl_lab.studies.findings import Statement


class Question(NamedTuple):
    """A question, its page, and its rows in the table of its study.

    `predicts` and `how` are Markdown. Each statement is of a claim, and a row: `meaning` is what is predicted, `number`
    what is measured. claims: the names of all its claims. figures: the names of those on its page.
    """

    name: str
    title: str
    asks: str
    papers: str
    predicts: str
    statements: tuple[Statement, ...]
    how: str
    claims: tuple[str, ...]
    figures: tuple[str, ...]
