"""Draws a column of a sweep's table over another, means over seeds with intervals.

python -m plots.sweep --from TABLE --x COLUMN --y COLUMN [--hue COLUMN] [--panels COLUMN] [--where COLUMN=VALUE ...]
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icl_lab.lab import cli
from icl_lab.lab.command_end import typed
from icl_lab.plots import choice, style
from icl_lab.plots.choice import Figures, Left, Where, said, short
from icl_lab.plots.over_column import Place, axis_of, draw_line, finish_axes, label_axes
from icl_lab.plots.sweep_columns import Asked, read_columns, scale_of
from icl_lab.plots.sweep_panels import MARKS, Drawn
from icl_lab.plots.sweep_table import T_BARS, Series, counted, points, records, rows_done
from icl_lab.src.words import printable
from icl_lab.store import outputs
from icl_lab.store.atomic import csv_bytes
from icl_lab.store.outputs import in_path, out_folder

if TYPE_CHECKING:
    import pandas as pd

LINES = 9  # of a panel, at most: as many as there are colours
PAGE_WIDTH = 2 * style.COLUMN  # inches: the width of a figure of several panels
HEIGHT, LOW = 1.9, 1.25  # inches of a panel, alone and of several
PROG = "plots.sweep"
FOLDER = Path("figs")
SHARES = "shares of seeds, exact 95 % intervals"


def draw_columns(source: Path, out: Path, asked: Asked, where: Sequence[Where] = ()) -> Figures:
    """Y_over_X as .png, .pdf and .csv: means over seeds with 95 % t intervals; `StoreError` for what is no such table.

    At most `choice.PANELS` panels of `LINES` lines: `Figures.left` names the rest.
    """
    table, asked = read_columns(source, asked, where)
    drawn, left = draw(table, asked)
    name = re.sub(r"[^\w.-]", "-", f"{short(asked.y)}_over_{short(asked.x)}")
    files = {out / f"{name}.{suffix}": style.rendered(drawn.figure, suffix) for suffix in ("png", "pdf")}
    files[out / f"{name}.csv"] = csv_bytes(drawn.rows)
    words = [*typed(PROG).split(), "--from", str(source), *_flags(asked), *_conditions(where)]
    return Figures(outputs.write(files, PROG), list(choice.commands(left, name, words, out)))


def _flags(asked: Asked) -> list[str]:
    return [word for flag, column in asked._asdict().items() if column for word in (f"--{flag}", column)]


def _conditions(where: Sequence[Where]) -> list[str]:
    return [word for each in where for word in ("--where", str(each))]


@style.compact
def draw(table: pd.DataFrame, asked: Asked) -> tuple[Drawn, list[Left]]:
    """The figure of the rows of a table that `read_columns` gave, and what does not fit it."""
    used, left = table[table["drawn"]], []
    values: dict[str, list[Any]] = {}
    for column, most in ((asked.panels, choice.PANELS), (asked.hue, LINES)):
        values[column], more = choice.first(choice.levels(used[column]), most, column) if column else ([None], [])
        used = used[used[column].isin(values[column])] if column else used
        left += more
    panels, hues = values[asked.panels], values[asked.hue] if asked.hue else [None]
    axis = axis_of(used[asked.x])
    looks = _looks(asked, [_name(asked, hue) for hue in hues])
    figure, axes = _panels(len(panels))
    series: list[Series] = []
    for panel, of_panel in zip(axes.flat, panels, strict=False):
        rows = used[used[asked.panels] == of_panel] if asked.panels else used
        for number, hue in enumerate(hues):
            line = _line(rows[rows[asked.hue] == hue] if asked.hue else rows, asked, of_panel, hue)
            if line.points:
                draw_line(panel, axis, line.points, Place(number, len(hues)), looks[line.name])
                series.append(line)
        panel.set_title(style.plain(_named(asked.panels, of_panel)))
    for panel in axes.flat[len(panels) :]:
        panel.set_axis_off()
    shown = list(axes.flat[: len(panels)])
    finish_axes(shown, axis, [point for line in series for point in line.points])
    label_axes(shown, short(asked.x), short(asked.y))
    style.finish(
        figure,
        _handles(looks) if asked.hue else {},
        _caption(used, table, series, asked, shown[0].get_yscale() == "log"),
    )
    return Drawn(figure, records(series)), left


def _panels(number: int) -> tuple[Any, Any]:
    """One panel as wide as a column, or several in a page's width."""
    if number == 1:
        return style.column_figure([HEIGHT])
    columns = 2 if number in (2, 4) else 3
    return style.column_figure([LOW] * -(-number // columns), columns, PAGE_WIDTH, sharex=True, sharey=True)


def _line(rows: pd.DataFrame, asked: Asked, panel: Any, hue: Any) -> Series:
    settings = {column: value for column, value in ((asked.panels, panel), (asked.hue, hue)) if column}
    found = points(rows, rows[asked.x], rows[asked.y], scale_of(asked.y, rows[asked.y]))
    return Series(_name(asked, hue), asked.y, settings, found)


def _name(asked: Asked, hue: Any) -> str:
    return _named(asked.hue, hue) if asked.hue else short(asked.y)


def _named(column: str, value: Any) -> str:
    """A value in a legend or a title: a word says itself, a number with its column."""
    if not column:
        return ""
    return value if isinstance(value, str) else f"{short(column)}={_number(value)}"


def _number(value: Any) -> str:
    return (
        style.INFINITE[0] if value == float("inf") else said(value).lower() if value in (True, False) else f"{value:g}"
    )


def _looks(asked: Asked, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """A colour and a marker for each line by its name: models have their own, other values take turns."""
    colours = style.in_order(names) if asked.hue else dict.fromkeys(names, style.SERIES[0])
    if asked.hue == "model":
        colours = {name: colour for name, (colour, _) in style.model_looks(names).items()}
    looks = {}
    for number, (name, colour) in enumerate(colours.items()):
        marker, filled = MARKS[number % len(MARKS)]
        looks[name] = {"color": colour, "marker": marker, "markerfacecolor": colour if filled else "white"}
    return looks


def _handles(looks: dict[str, dict[str, Any]]) -> dict[str, Any]:
    from matplotlib.lines import Line2D

    return {name: Line2D([], [], **look) for name, look in looks.items()}


def _caption(used: pd.DataFrame, table: pd.DataFrame, series: Sequence[Series], asked: Asked, is_log: bool) -> str:
    """How many seeds and rows, what bars are, which of them cannot be shown whole, and the models."""
    bars = SHARES if scale_of(asked.y, used[asked.y]) == "share" else T_BARS
    text = counted(used, series, bars=bars)
    models = ", ".join(map(str, choice.levels(used["model"]))) if "model" in {*used} - {*asked} else ""
    reaches = is_log and any(point.low <= 0 for line in series for point in line.points)
    rows = rows_done(table, len(used))
    return "; ".join(filter(None, [text, "intervals that reach 0 leave the axis" * reaches, models, rows]))


def main(argv: list[str]) -> None:
    """The command line."""
    parser = cli.Parser(PROG, "Draws a column of a sweep's table over another, means over seeds with intervals.")
    parser.add_argument("--from", dest="source", metavar="FROM", type=in_path, required=True, help="the sweep's CSV")
    parser.add_argument("--x", metavar="COLUMN", required=True, help="column along the x axis, such as a swept field")
    parser.add_argument("--y", metavar="COLUMN", required=True, help="column of numbers along the y axis")
    parser.add_argument("--hue", metavar="COLUMN", default="", help="column with a line for each of its values")
    choice.add_flags(parser, "column with a panel for each of its values")
    parser.add_argument("--out", type=out_folder, help="folder of the figure; figs/TABLE if not given")
    flags = parser.parse(argv)
    asked = Asked(flags.x, flags.y, flags.hue, flags.panels)
    figures = draw_columns(flags.source, flags.out or FOLDER / flags.source.stem, asked, flags.where)
    for line in (*figures.files, *figures.left):
        print(printable(line))


if __name__ == "__main__":
    cli.launch(main)
