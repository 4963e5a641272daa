"""Writes docs/reference.md: every flag, config field, preset, file, column and make target, from the code itself.

python -m scripts.reference [--check]
"""

from __future__ import annotations

from pathlib import Path

from icl_lab.lab import cli
from icl_lab.lab.command_end import typed
from icl_lab.lab.loaded_plugins import LOADED

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reference.md"
HEAD = """# Reference

<!-- Made by python -m scripts.reference, which a test compares with this file: not edited by hand. -->

Every command and its flags, every field of a config, every preset, file, column and make target. What they promise is
in [contract.md](contract.md). Dash and underscore are the same in a flag; lists come with commas or spaces. Every
command also has `--help` and `--plugin FILE`, which may be given several times."""


def parser() -> cli.Parser:
    """The flags."""
    built = cli.Parser("scripts.reference", "Writes docs/reference.md from the code.")
    built.add_argument("--check", action="store_true", help="change nothing; exit with 1 if the page would change")
    return built


def main(argv: list[str]) -> int:
    """The command line; the exit status."""
    flags = parser().parse(argv)
    if LOADED:
        raise cli.UsageError("the reference is of built-in names: leave --plugin out")
    from icl_lab.store.atomic import write_bytes

    made = text()
    same = PAGE.exists() and PAGE.read_text(encoding="utf-8") == made
    if flags.check and not same:
        print(f"docs/reference.md is not what the code says: {typed('scripts.reference')}")
        return 1
    if not same:
        write_bytes(PAGE, made.encode())
    return 0


def text() -> str:
    """The page."""
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
    return "\n\n".join([HEAD, *sections]) + "\n"


if __name__ == "__main__":
    cli.launch(main)
