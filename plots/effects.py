"""Effects with their intervals, from a study's table of contrasts: a row for each, the models side by side in it.

python -m plots.effects --from contrasts.csv --out DIR
"""

from __future__ import annotations

import math
import re
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import cli
from configs.regression import RegressionConfig
from plots import style
from plots.table_command import draw_from_table
from store import outputs
from store.atomic import csv_bytes
from store.readers import StoreError, read_csv

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
LOST = (-100.0, math.inf)  # what is positive can lose no more than all of itself
UNITS = {
    "loss": Unit(RELATIVE, 100, 1.0, "change, %", RegressionConfig.test_tasks, LOST),
    "step": Unit(RELATIVE, 100, 1.0, "change of the step, %", RegressionConfig.eval_tasks, ANY),
    "auroc": Unit(("low", "difference", "high"), 1, 0.01, "difference of AUROC", RegressionConfig.eval_tasks, (-1, 1)),
}
FAR = ("linear_mmse", "mask_bayes")  # controls that know the noise: changes from them are of another magnitude
DECADES = (1, 10, 100)  # margins at which a logarithmic axis has its ticks
LINEAR = 10  # margins up to which an axis is linear
LETTERS = 28  # of a contrast's name in one line
ROW, LINE = 0.085, 0.1  # inches of a model's effect, of a line of a name


def draw_effects(source: Path, out: Path) -> list[Path]:
    """A figure for each question, as .png, .pdf and .csv; all are drawn before the first is written.

    The column `unit`, one of `UNITS`, says what a row is of (without it, of losses), and `tasks`, if there is one,
    of how many tasks each of its values is (without it, as many as a run has by default).
    """
    table = read_contrasts(source)
    files: dict[Path, bytes] = {}
    for question, rows in table.groupby("question", sort=False):
        name = "effects_" + "_".join(word for word in str(question).split() if word.isalnum())
        if "/" in name or name == "effects_":
            raise StoreError(f"{source} has a question without a name: {question!r}")
        figure = draw_question(str(question), rows)
        files |= {out / f"{name}.{suffix}": style.rendered(figure, suffix) for suffix in ("png", "pdf")}
        files[out / f"{name}.csv"] = csv_bytes(rows[[*TEXT, "unit", *NUMBERS]].to_dict("records"))
    return outputs.write(files, "plots.effects")


def read_contrasts(source: Path) -> pd.DataFrame:
    """The table, each row with its unit, and the model and the rest of its name, "model: rest", apart."""
    table = read_csv(source, NUMBERS, TEXT)
    if "unit" not in table:
        table["unit"] = "loss"
    if not table["unit"].isin(list(UNITS)).all():
        raise StoreError(f"{source} has a unit that is none of {', '.join(UNITS)}")
    if "tasks" in table and table["tasks"].dtype.kind not in "iuf":
        raise StoreError(f"{source} has words in tasks, which counts tasks")
    parts = table["contrast"].str.partition(": ")
    return table.assign(model=parts[0], name=parts[2])


@style.compact
def draw_question(question: str, rows: pd.DataFrame) -> Figure:
    """Panels for units, and for controls that know the noise; each with limits of its own."""
    far = rows["name"].str.rpartition(" / ")[2].isin(FAR)
    groups = [group for _, group in rows.groupby([rows["unit"], far], sort=False)]
    names = [list(dict.fromkeys(group["name"])) for group in groups]
    looks = style.model_looks(rows["model"])
    folded = [[_folded(style.plain(name)) for name in those] for those in names]
    deep = max(ROW * len(looks), *(LINE * (name.count("\n") + 1) for those in folded for name in those)) + 0.03
    figure, axes = style.column_figure([deep * (len(those) + 0.1) for those in names])
    for panel, group, those, shown in zip(axes[:, 0], groups, names, folded, strict=True):
        _draw_panel(panel, group, those, looks)
        panel.set_yticks(range(len(shown)), shown)
        panel.set_ylim(len(shown) - 0.45, -0.55)
    text = _caption(question, rows)
    if any(panel.get_xscale() == "symlog" for panel in axes.flat):
        text += ", beyond which wide axes are logarithmic"
    text += f"; {style.CUT}" * _any_cut(rows)
    style.finish(figure, _legend(looks), text)
    return figure


def _folded(name: str) -> str:
    """A contrast's name in as few lines as it needs, broken where its parts end if they are short enough."""
    lines = [""]
    for part in re.split(r"(?<=[,/]) ", name):
        joined = f"{lines[-1]} {part}".strip()
        lines = [*lines[:-1], joined] if len(joined) <= LETTERS else [*lines, part]
    return "\n".join(textwrap.fill(line, LETTERS) for line in lines if line)


def _draw_panel(panel: Axes, rows: pd.DataFrame, names: list[str], looks: dict[str, tuple[str, str]]) -> None:
    """Effects of one unit, around a grey band: what is called no effect."""
    unit = UNITS[rows["unit"].iloc[0]]
    panel.axvspan(-unit.margin, unit.margin, color="#eeeeee", zorder=0)
    panel.axvline(0.0, color=style.GREY, linewidth=0.7, zorder=1)
    for model, group in rows.groupby("model", sort=False):
        colour, marker = looks[str(model)]
        shift = 0.7 * ((list(looks).index(str(model)) + 0.5) / len(looks) - 0.5)
        places = [names.index(name) + shift for name in group["name"]]
        low, middle, high = (unit.scale * group[column].to_numpy() for column in unit.columns)
        panel.hlines(places, *np.clip([low, high], *unit.within), color=colour, linewidth=1.2)
        style.mark_cut(panel, places, np.array([low, high]), unit.within, colour, across=True)
        panel.plot(middle, places, marker, color=colour, markersize=3, linestyle="")
    ends = (unit.scale * rows[list(unit.columns)]).clip(*unit.within)
    _scale(panel, unit.margin, float(ends.min(axis=None)), float(ends.max(axis=None)))
    panel.set_xlabel(unit.label)


def _any_cut(rows: pd.DataFrame) -> bool:
    """Whether an interval leaves what its measure can be."""
    parts = [(UNITS[str(unit)], part) for unit, part in rows.groupby("unit")]
    return any(
        bool((unit.scale * part[unit.columns[0]] < unit.within[0]).any())
        or bool((unit.scale * part[unit.columns[2]] > unit.within[1]).any())
        for unit, part in parts
    )


def _scale(panel: Axes, margin: float, low: float, high: float) -> None:
    """An axis of what is there, 0 and the margin: linear, or where it reaches far logarithmic beyond the margin."""
    low, high = min(low, -margin), max(high, margin)
    if max(-low, high) <= LINEAR * margin:
        room = 0.05 * (high - low)
        panel.set_xlim(low - room, high + room)
        panel.locator_params(axis="x", nbins=5)
        return
    panel.set_xscale("symlog", linthresh=margin, linscale=0.7)
    panel.set_xlim(1.3 * low, 1.3 * high)
    ticks = [sign * margin * decade for sign in (-1, 1) for decade in DECADES]
    ticks = sorted([0.0, *(tick for tick in ticks if low <= tick <= high)])
    panel.set_xticks(ticks, [f"{tick:g}".replace("-", "\N{MINUS SIGN}") for tick in ticks])
    panel.minorticks_off()


def _legend(looks: dict[str, tuple[str, str]]) -> dict[str, Any]:
    from matplotlib.lines import Line2D

    return {name: Line2D([], [], color=colour, marker=marker) for name, (colour, marker) in looks.items()}


def _caption(question: str, rows: pd.DataFrame) -> str:
    counts = sorted({int(n) for n in rows["n"]})
    seeds = "-".join(str(n) for n in dict.fromkeys((counts[0], counts[-1])))
    margins = [{"auroc": ".01 of AUROC"}.get(unit, "1 %") for unit in dict.fromkeys(rows["unit"])]
    text = f"{question}: mean change from the control, 95 % t interval over n = {seeds} seeds, paired; {_tasks(rows)}"
    return f"{text}; grey: within {' and '.join(margins)}"


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
    cli.launch(main, StoreError)
