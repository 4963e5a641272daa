"""Writes the reference (docs/reference/) and the tables of docs/contract.md from the code.

python -m scripts.reference [--check]
"""

from __future__ import annotations

import re
from pathlib import Path

from icl_lab.lab import cli
from icl_lab.lab.command_end import typed
from icl_lab.lab.loaded_plugins import LOADED

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
MADE = "<!-- Made by python -m scripts.reference, which a test compares with this file: not edited by hand. -->"
HEAD = f"""# Commands, flags and files

{MADE}

These pages list every command and its flags, every field of a config, every preset, file and column, and every target
of make. [The contract](contract.md) says what they promise.

A flag may be written with dashes or underscores, and a list with commas or spaces. Every command also has `--help`, and
`--plugin FILE`, which may be given several times."""


def parser() -> cli.Parser:
    """The flags."""
    built = cli.Parser(
        "scripts.reference",
        "Writes docs/reference.md, the pages of docs/reference/ and the tables of docs/contract.md from the code.",
    )
    built.add_argument("--check", action="store_true", help="change nothing; exit with 1 if a page would change")
    return built


def main(argv: list[str]) -> int:
    """The command line; the exit status."""
    flags = parser().parse(argv)
    if LOADED:
        raise cli.UsageError("the reference is of built-in names: leave --plugin out")
    from icl_lab.scripts.reference_page import contract
    from icl_lab.store.atomic import write_bytes

    made = {DOCS / name: page for name, page in pages(text()).items()}
    made[DOCS / "contract.md"] = contract.filled((DOCS / "contract.md").read_text(encoding="utf-8"))
    there = set((DOCS / "reference").glob("*.md"))
    other = [path for path, page in made.items() if not path.exists() or path.read_text(encoding="utf-8") != page]
    if flags.check and (other or there - {*made}):
        print(f"the reference, or a table of the contract, is not what the code says: {typed('scripts.reference')}")
        return 1
    for path in other:
        write_bytes(path, made[path].encode())
    for path in there - {*made}:
        path.unlink()
    return 0


def text() -> str:
    """All of it, under headings of the second degree."""
    from icl_lab.scripts.reference_page import artifacts, commands, configs

    sections = [
        commands.section(),
        configs.field_section(),
        configs.preset_section(),
        configs.baseline_section(),
        artifacts.file_section(),
        artifacts.column_section(),
        artifacts.target_section(ROOT / "Makefile"),
    ]
    return "\n\n".join(sections) + "\n"


def pages(whole: str) -> dict[str, str]:
    """A page for each section, by its name below docs/, and one that lists them."""
    titles, bodies = re.findall(r"^## (.+)$", whole, re.M), re.split(r"^## .+\n", whole, flags=re.M)[1:]
    made = {
        f"reference/{slug(title)}.md": f"# {title}\n\n{MADE}\n\n{re.sub('^#(?=#+ )', '', body.strip(), flags=re.M)}\n"
        for title, body in zip(titles, bodies, strict=True)
    }
    links = "\n".join(f"- [{title}]({name})" for name, title in zip(made, titles, strict=True))
    return {"reference.md": f"{HEAD}\n\n{links}\n"} | made


def slug(title: str) -> str:
    """A file name from a title."""
    return re.sub(r"[^a-z]+", "_", title.lower().replace("'s", "")).strip("_")


if __name__ == "__main__":
    cli.launch(main)
