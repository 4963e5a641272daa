"""Draws the contrasts of a study with their intervals, models side by side.

python -m plots.effects --from contrasts.csv --out DIR
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from icl_lab.lab import cli
from icl_lab.lab.configs.run import RunConfig
from icl_lab.plots import style
from icl_lab.plots.style import draw_from_table
from icl_lab.store import outputs
from icl_lab.store.atomic import csv_bytes
from icl_lab.store.readers import StoreError, read_csv

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TEXT = ("question", "contrast", "kind", "verdict")
NUMBERS = ("n", "treated", "control", "difference", "low", "high", "change", "change_low", "change_high")


class Unit(NamedTuple):
    """How changes of a measure are shown: columns, their factor, the margin that counts as no effect, bounds."""

    columns: tuple[str, str, str]
    scale: float
    margin: float
    label: str
    tasks: int
    within: tuple[float, float]  # what a change can be, in the axis' unit


RELATIVE = ("change_low", "change", "change_high")
ANY = (-math.inf, math.inf)
LOST = (-100.0, math.inf)  # a positive value can fall by at most 100 %
UNITS = {
    "loss": Unit(RELATIVE, 100, 1.0, "change, %", RunConfig.test_tasks, LOST),
    "step": Unit(RELATIVE, 100, 1.0, "change of the step, %", RunConfig.eval_tasks, ANY),
    "auroc": Unit(("low", "difference", "high"), 1, 0.01, "difference of AUROC", RunConfig.eval_tasks, (-1, 1)),
}
FAR = ("linear_mmse", "mask_bayes")  # controls that know the noise: changes from them are of another magnitude
# margins at which a logarithmic axis has its ticks: the most that have room
DECADES, STEPS, FEW = (1, 10, 100), (1, 2, 5, 10), (1, 3, 10)
LINEAR, NEAR = 10, 20  # margins up to which an axis is linear, and up to which it may have ticks between decades
TICK = 0.23  # inches between numbers below an axis
LETTERS, LETTERS_OF_TITLE = 28, 22  # of a contrast's name in one line, and of a panel's where two stand in a row
COLUMNS = 2
WHOLE = ""  # the title of a block's only panel
ROW, LINE = 0.085, 0.1  # inches of a model's effect, of a line of a name


def draw_effects(source: Path, out: Path, pictures: Mapping[str, Path] | None = None) -> list[Path]:
    """A figure for each question, as .png, .pdf and .csv; all are drawn before the first is written.

    The column `unit`, one of `UNITS`, says what a row is of (without it, of losses), and `tasks`, if there is one,
    of how many tasks each of its values is (without it, as many as a run has by default). `n_all` counts the seeds with
    those that have not trained (without it, there are none). `pictures`: the folder of some pictures, by name, where it
    is not that of the tables.
    """
    table = read_contrasts(source)
    files: dict[Path, bytes] = {}
    for question, rows in table.groupby("question", sort=False):
        name = "effects_" + "_".join(word for word in str(question).split() if word.isalnum())
        if "/" in name or name == "effects_":
            raise StoreError(f"{source} has a question without a name: {question!r}")
        figure = draw_question(str(question), rows)
        place = (pictures or {}).get(name, out)
        files |= {place / f"{name}.{suffix}": style.rendered(figure, suffix) for suffix in ("png", "pdf")}
        files[out / f"{name}.csv"] = csv_bytes(
            rows[[*TEXT, "reading_says", "unit", *NUMBERS, "n_all"]].to_dict("records")
        )
    return outputs.write(files, "plots.effects")


def read_contrasts(source: Path) -> pd.DataFrame:
    """The table, each row with its unit, and the model and the rest of its name, "model: rest", apart."""
    table = read_csv(source, NUMBERS, TEXT)
    if "unit" not in table:
        table["unit"] = "loss"
    if not table["unit"].isin(list(UNITS)).all():
        raise StoreError(f"{source} has a unit that is none of {', '.join(UNITS)}")
    if "reading_says" not in table:
        table["reading_says"] = table["verdict"]
    if "n_all" not in table:
        table["n_all"] = table["n"]
    if table["n_all"].dtype.kind not in "iuf":
        raise StoreError(f"{source} has words in n_all, which counts seeds")
    if "tasks" in table and table["tasks"].dtype.kind not in "iuf":
        raise StoreError(f"{source} has words in tasks, which counts tasks")
    shown = [row[UNITS[row["unit"]].columns[1]] for row in table.to_dict("records")]
    if all(math.isnan(change) for change in shown):
        raise StoreError(f"{source} has nothing to draw: no row has a change")
    parts = table["contrast"].str.partition(": ")
    return table.assign(model=parts[0], name=parts[2])


class Block(NamedTuple):
    """Effects that share limits: their rows, these by the titles of panels, and the names of the panels' rows."""

    rows: pd.DataFrame
    panels: dict[str, pd.DataFrame]
    names: list[str]


@style.compact
def draw_question(question: str, rows: pd.DataFrame) -> Figure:
    """Panels for units, for controls that know the noise, and, two in a row, for what rows of a table would repeat."""
    far = rows["name"].str.rpartition(" / ")[2].isin(FAR)
    blocks = [_block(group) for _, group in rows.groupby([rows["unit"], far], sort=False)]
    several = any(len(block.panels) > 1 for block in blocks) and all(WHOLE not in block.panels for block in blocks)
    columns = COLUMNS if several else 1
    if not several:
        blocks = [Block(block.rows, {WHOLE: block.rows}, list(dict.fromkeys(block.rows["name"]))) for block in blocks]
    looks = style.model_looks(rows["model"])
    heights = [_height(block, looks) for block in blocks for _ in range(math.ceil(len(block.panels) / columns))]
    figure, axes = style.column_figure(heights, columns, sharey="row")
    start = 0
    for block in blocks:
        used = math.ceil(len(block.panels) / columns)
        _draw_block(axes[start : start + used], block, looks)
        start += used
    style.finish(figure, _legend(looks), _caption(question, rows, axes.flat))
    return figure


def _block(rows: pd.DataFrame) -> Block:
    """Rows by panel where their names are a whole grid, "row / panel" or "row, panel"; else they are one panel.

    What has more values is a row.
    """
    parts = rows["name"].str.extract(r"^(.*?)(?: (/ )|, )(.*)$")
    row, panel = parts[0], parts[1].fillna("") + parts[2]
    if panel.nunique() > row.nunique():
        row, panel = panel, row
    names, whole = list(dict.fromkeys(row)), rows.assign(name=row, panel=panel)
    if row.isna().any() or len(names) * panel.nunique() != rows["name"].nunique():
        return Block(rows, {WHOLE: rows}, list(dict.fromkeys(rows["name"])))
    return Block(whole, {str(title): part for title, part in whole.groupby("panel", sort=False)}, names)


def _height(block: Block, looks: dict[str, tuple[str, str]]) -> float:
    lines = 1 + max(_folded(style.plain(name)).count("\n") for name in block.names)
    return (max(ROW * len(looks), LINE * lines) + 0.03) * (len(block.names) + 0.1)


def _draw_block(axes: np.ndarray, block: Block, looks: dict[str, tuple[str, str]]) -> None:
    """Draws a block's panels, with the same limits; only those that have none below them say what numbers are of."""
    count, columns = len(block.panels), axes.shape[1]
    for number, (panel, (title, rows)) in enumerate(zip(axes.flat, block.panels.items(), strict=False)):
        _draw_panel(panel, block, rows, looks)
        panel.set_title(textwrap.fill(style.plain(title), LETTERS_OF_TITLE))
        lowest = number + columns >= count
        panel.set_xlabel(UNITS[rows["unit"].iloc[0]].label if lowest else "")
    for panel in axes.flat[count:]:
        panel.set_axis_off()
    for panel in axes[:, 0]:
        panel.set_yticks(range(len(block.names)), [_folded(style.plain(name)) for name in block.names])
        panel.set_ylim(len(block.names) - 0.45, -0.55)


def _folded(name: str) -> str:
    """A contrast's name in as few lines as it needs, broken where its parts end if they are short enough."""
    lines = [""]
    for part in re.split(r"(?<=[,/]) ", name):
        joined = f"{lines[-1]} {part}".strip()
        lines = [*lines[:-1], joined] if len(joined) <= LETTERS else [*lines, part]
    return "\n".join(textwrap.fill(line, LETTERS) for line in lines if line)


def _draw_panel(panel: Axes, block: Block, rows: pd.DataFrame, looks: dict[str, tuple[str, str]]) -> None:
    """Effects of one unit, around a grey band: what is called no effect. Hollow ones are not of all seeds."""
    unit = UNITS[rows["unit"].iloc[0]]
    panel.axvspan(-unit.margin, unit.margin, color=style.PALE, zorder=0)
    panel.axvline(0.0, color=style.GREY, linewidth=0.7, zorder=1)
    for model, group in rows.groupby("model", sort=False):
        colour, marker = looks[str(model)]
        shift = 0.7 * ((list(looks).index(str(model)) + 0.5) / len(looks) - 0.5)
        places = np.array([block.names.index(name) + shift for name in group["name"]])
        low, middle, high = (unit.scale * group[column].to_numpy() for column in unit.columns)
        panel.hlines(places, *np.clip([low, high], *unit.within), color=colour, linewidth=1.2)
        style.mark_cut(panel, list(places), np.array([low, high]), unit.within, colour, across=True)
        whole = (group["n"] >= group["n_all"]).to_numpy()
        how: dict[str, Any] = {"color": colour, "markersize": 3, "linestyle": ""}
        panel.plot(middle[whole], places[whole], marker, **how)
        if not whole.all():
            panel.plot(middle[~whole], places[~whole], marker, markerfacecolor="white", **how)
    ends = (unit.scale * block.rows[list(unit.columns)]).clip(*unit.within)
    _scale(panel, unit.margin, float(ends.min(axis=None)), float(ends.max(axis=None)), _width(block))


def _width(block: Block) -> float:
    """About how wide a block's panels are, in inches: what the names of its rows leave."""
    letters = max(len(line) for name in block.names for line in _folded(style.plain(name)).split("\n"))
    return (style.COLUMN - letters * style.INCHES_A_LETTER) / (1 if WHOLE in block.panels else COLUMNS) - 0.1


def _any_cut(rows: pd.DataFrame) -> bool:
    """Whether an interval exceeds the possible values of its measure."""
    parts = [(UNITS[str(unit)], part) for unit, part in rows.groupby("unit")]
    return any(
        bool((unit.scale * part[unit.columns[0]] < unit.within[0]).any())
        or bool((unit.scale * part[unit.columns[2]] > unit.within[1]).any())
        for unit, part in parts
    )


def _scale(panel: Axes, margin: float, low: float, high: float, width: float) -> None:
    """An axis of what is there, 0 and the margin: linear, or where it reaches far logarithmic beyond the margin."""
    low, high = min(low, -margin), max(high, margin)
    if max(-low, high) <= LINEAR * margin:
        room = 0.05 * (high - low)
        panel.set_xlim(low - room, high + room)
        panel.locator_params(axis="x", nbins=5 if width > style.COLUMN / COLUMNS else 4, steps=[1, 2, 5, 10])
        panel.xaxis.set_major_formatter(lambda tick, _: _number(tick))
        return
    panel.set_xscale("symlog", linthresh=margin, linscale=0.4)
    low, high = 1.3 * low, 1.3 * high
    panel.set_xlim(low, high)
    choices = (STEPS, FEW, DECADES) if max(-low, high) <= NEAR * margin else (DECADES,)
    ticks = next(
        (candidate for steps in choices if _fit(panel, candidate := _ticks(steps, margin, low, high), width)), []
    )
    ticks = ticks or _ticks(DECADES, margin, low, high)
    panel.set_xticks(ticks, [_number(tick) for tick in ticks])
    panel.minorticks_off()


def _ticks(steps: Iterable[float], margin: float, low: float, high: float) -> list[float]:
    ticks = [sign * margin * step for sign in (-1, 1) for step in steps]
    return sorted([0.0, *(tick for tick in ticks if low <= tick <= high)])


def _fit(panel: Axes, ticks: Iterable[float], width: float) -> bool:
    """Whether the numbers of these ticks have room on an axis of so many inches."""
    scale = panel.xaxis.get_transform()
    (low, high), places = scale.transform(panel.get_xlim()), scale.transform(list(ticks))
    return bool(np.diff(places).min() / (high - low) * width >= TICK)


def _number(tick: float) -> str:
    return f"{tick:g}".replace("-", "\N{MINUS SIGN}")


def _legend(looks: dict[str, tuple[str, str]]) -> dict[str, Any]:
    from matplotlib.lines import Line2D

    return {name: Line2D([], [], color=colour, marker=marker) for name, (colour, marker) in looks.items()}


def _caption(question: str, rows: pd.DataFrame, axes: Iterable[Axes]) -> str:
    counts = sorted({int(n) for n in rows["n"]})
    seeds = "-".join(str(n) for n in dict.fromkeys((counts[0], counts[-1])))
    margins = [{"auroc": ".01 of AUROC"}.get(unit, "1 %") for unit in dict.fromkeys(rows["unit"])]
    text = f"{question}: mean change from the control, n = {seeds} paired seeds, 95 % intervals"
    text += f"; grey: within {' and '.join(margins)}"
    text += "; hollow: without seeds that have not trained" * bool((rows["n"] < rows["n_all"]).any())
    if any(panel.get_xscale() == "symlog" for panel in axes):
        text += "; beyond the grey wide axes are logarithmic"
    return text + f"; {style.CUT}" * _any_cut(rows) + f"; {_tasks(rows)}"


def _tasks(rows: pd.DataFrame) -> str:
    counts = sorted({int(count) for count in rows["tasks"].dropna()}) if "tasks" in rows else []
    default = "" if counts else " (the default)"
    counts = counts or sorted({UNITS[unit].tasks for unit in rows["unit"]})
    return f"{' or '.join(map(str, counts))} tasks each{default}"


def main(argv: list[str]) -> None:
    """The command line."""
    text = "Draws the contrasts of a study, a figure for each question."
    draw_from_table(argv, "plots.effects", text, "the table of contrasts", draw_effects)


if __name__ == "__main__":
    cli.launch(main)
