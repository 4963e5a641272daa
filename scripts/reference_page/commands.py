"""The flags of every command, from its own parser: no command knows of this page."""

from __future__ import annotations

import argparse
import ast
import re
import runpy
import sys
from collections.abc import Container, Iterator, Sequence
from typing import NamedTuple, NoReturn

from icl_lab.lab import cli
from icl_lab.lab.commands import GROUPS, file_of, of_group
from icl_lab.lab.configs.registry import family_of_model
from icl_lab.lab.registries import FAMILIES
from icl_lab.scripts.reference_page.markdown import code, codes, of_family, table

OF_A_MODEL = ("runners.run", "sweeps.run")  # their first word is a model, on whose family their flags depend
HEAD = ("flag", "default", "meaning")
PRESET = re.compile(r" \(preset: .*\)$")


class Row(NamedTuple):
    """A flag: its names, its default, what it means."""

    names: str
    default: str
    meaning: str


class _ParserBuilt(Exception):
    def __init__(self, parser: cli.Parser):
        self.parser = parser


def parser_of(command: str, *words: str) -> cli.Parser:
    """The parser that a command makes: its file runs up to where it parses its flags."""

    def hand_out(parser: cli.Parser, argv: Sequence[str]) -> NoReturn:
        raise _ParserBuilt(parser)

    parse, argv = cli.Parser.parse, sys.argv
    try:
        cli.Parser.parse, sys.argv = hand_out, [command, *words]  # type: ignore[method-assign, assignment]
        runpy.run_path(str(file_of(command)), run_name="__main__")
    except _ParserBuilt as built:
        return built.parser
    finally:
        cli.Parser.parse, sys.argv = parse, argv  # type: ignore[method-assign]
    raise ValueError(f"{command} has no cli.Parser")


def rows_of(parser: cli.Parser) -> list[Row]:
    """A parser's flags, less those that every command has."""
    of_all = ("--help", cli.PLUGIN)
    return [_row(action) for action in parser._actions if not "".join(action.option_strings[-1:]).startswith(of_all)]


def _row(action: argparse.Action) -> Row:
    text = (action.help or "") % vars(action)
    meaning = PRESET.sub("", text)
    default = "required" if action.required else "the preset's" if meaning != text else code(cli.default_of(action))
    choices = f": {', '.join(map(str, action.choices))}" if action.choices else ""
    names = action.option_strings or [str(action.metavar or action.dest).upper()]
    return Row(codes(names), "off" if action.nargs == 0 else default, f"{meaning}{choices}".replace("<", "\\<"))


def section() -> str:
    """All commands, by group."""
    parts = []
    for group, places in GROUPS.items():
        names = sorted(of_group(places), key=lambda name: name not in OF_A_MODEL)
        parts += [f"## {group}", *(part for name in names for part in _command(name))]
    return "\n\n".join(parts)


def _command(name: str) -> Iterator[str]:
    if name in OF_A_MODEL:
        yield from _of_families(name)
        return
    parser = parser_of(name)
    yield f"### `python -m {name}`"
    if parser.prog != f"python -m {name}":
        yield f"Another name of `{parser.prog}`."
        return
    yield " ".join(str(parser.description).split())
    base, like = _like(name, parser)
    rows = [row for row in rows_of(parser) if row not in base]
    if like:
        yield f"It has the flags of `{like}`" + (", with these differences:" if rows else ".")
    if rows:
        yield table(HEAD, rows)


def _of_families(name: str) -> Iterator[str]:
    tables = {family: _of_model(name, next(iter(FAMILIES[family].models))) for family in FAMILIES.built_in}
    first, *others = tables.values()
    common = [row for row in first if all(row in other for other in others)]
    said = ast.get_docstring(ast.parse(file_of(name).read_text(encoding="utf-8"))) or ""
    yield f"### `python -m {name} MODEL`"
    yield f"{said.partition(':')[0]}. Flags of all families:"
    yield table(HEAD, common)
    for family, rows in tables.items():
        yield "#" + of_family(family, FAMILIES[family].models)
        further_rows = [row for row in rows if row not in common]
        yield table(HEAD, further_rows) if further_rows else "No further flags."


def _of_model(name: str, model: str) -> list[Row]:
    """The flags of a model's family, with MODEL for its name in what follows from it."""
    named = re.compile(rf"(?<=[`_]){re.escape(model)}(?=[`.])")
    return [row._replace(default=named.sub("MODEL", row.default)) for row in rows_of(parser_of(name, model))]


def _like(name: str, parser: cli.Parser) -> tuple[Container[Row], str]:
    """The flags of the command that another is a short form of, and that command; nothing for others."""
    room = name.split(".")[0]
    if room == "runners":
        model = parser.get_default("model")
        return _of_model("runners.run", model), f"runners.run {model}"
    if room.startswith("eval_"):
        model = parser.get_default("models")[0]
        family = family_of_model(model)
        return _of_model("sweeps.run", model), f"sweeps.run MODEL` of the family `{family.name}"
    return (), ""
