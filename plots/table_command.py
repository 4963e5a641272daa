"""The command line of figures that are drawn from a table: `--from TABLE --out DIR`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from icl_lab.lab import cli
from icl_lab.src.words import printable
from icl_lab.store.outputs import in_path, out_folder


def draw_from_table(
    argv: Sequence[str], prog: str, description: str, table: str, draw: Callable[[Path, Path], Sequence[Path]]
) -> None:
    """Draws into a folder from a table, `table` in words, and prints the files' names."""
    parser = cli.Parser(prog, description)
    parser.add_argument("--from", dest="source", metavar="FROM", type=in_path, required=True, help=table)
    parser.add_argument("--out", type=out_folder, required=True, help="folder of the figures")
    flags = parser.parse(argv)
    for path in draw(flags.source, flags.out):
        print(printable(path))
