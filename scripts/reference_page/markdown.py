"""Text as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; bars within cells are escaped, and their line ends are spaces."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", r"\|")


def code(text: object) -> str:
    """Words as they are typed; nothing of nothing."""
    return f"`{text}`" if str(text) else ""


def codes(names: Iterable[object]) -> str:
    """Several of them, with commas."""
    return ", ".join(map(code, names))


def of_family(name: str, models: Iterable[str]) -> str:
    """A heading: a family and its models."""
    return f"### Family {name}: {', '.join(models)}"
