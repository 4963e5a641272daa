"""The ledger as a figure: of each claim its seeds, its interval and its control, against the accepted range.

python -m plots.ledger --from report/claims.csv --out report/ledger

Claims have units of their own, so each is drawn on an axis of its own: the accepted range is the band.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from icl_lab.lab import cli
from icl_lab.plots import style
from icl_lab.plots.table_command import draw_from_table
from icl_lab.store.readers import StoreError, expecting, read_csv

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NUMBERS = ("low", "high", "mean", "mean_low", "mean_high", "control_mean")
TEXT = ("claim", "about", "scale", "verdict", "values")
COLOURS = {
    "reproduced": "#0072B2",
    "contradicted": "#D55E00",
    "no effect": "#000000",
    "undecided": "#8a8a8a",
    "not counted": "#CC79A7",
}
MOVED = {  # scales of `src.intervals` that are not straight
    "log": lambda values: np.log(np.maximum(values, 0)),
    "fisher": lambda values: np.arctanh(np.clip(values, -1 + 1e-6, 1 - 1e-6)),
}
LARGEST = 1e5  # an end of a range beyond it is none
ROW, ROWS, COLUMNS = 0.17, 44, 2  # inches of a claim; claims in a column, unless they need more columns than a page has
CONTROL: dict[str, Any] = {"marker": "D", "color": "white", "markeredgecolor": "#444444", "markersize": 3}
CAPTION = (
    "dots: seeds; bars: 90 % intervals; diamonds: controls, measured alike; bands: accepted ranges, open where they "
    "have one end; triangles: beyond what is drawn, hollow of controls; each claim on an axis of its own"
)
SPACE = 0.08  # of a column, between one's controls and the next one's names
WIDTH, EDGE = 3.7, 0.8  # inches of a column; how far beyond the range, in its widths, is drawn


def draw_ledger(source: Path, out: Path) -> list[Path]:
    """A figure for each list of claims, as .png: NAME in the column `about`."""
    table = read_csv(source, NUMBERS, TEXT, infinite=NUMBERS)
    measured = table[table["verdict"].isin(list(COLOURS))]
    if measured.empty:
        raise StoreError(f"{source} has nothing to draw: no claim is measured")
    drawn = []
    for about, rows in measured.groupby("about", sort=False):
        drawn.append(_draw_list(rows.to_dict("records"), source, out / f"{about}.png"))
    return drawn


@style.compact
def _draw_list(rows: Sequence[Mapping[str, Any]], source: Path, path: Path) -> Path:
    columns = min(-(-len(rows) // ROWS), COLUMNS)
    per_column = -(-len(rows) // columns)
    figure, axes = style.new_figure(1, columns, WIDTH, ROW * per_column + 0.9, gridspec_kw={"wspace": SPACE})
    for column in range(columns):
        _draw_column(axes[0, column], rows[column * per_column : (column + 1) * per_column], per_column, source)
    style.finish(figure, _handles({row["verdict"] for row in rows}), CAPTION)
    return style.save(figure, path)


def _draw_column(axes: Axes, rows: Sequence[Mapping[str, Any]], height: int, source: Path) -> None:
    for place, row in enumerate(rows):
        with expecting(source, "a ledger of claims"):
            values = np.array(json.loads(row["values"]), float)
        _draw_row(axes, place, row, values)
    axes.set_yticks(range(len(rows)), [row["claim"].replace("_", " ") for row in rows])
    axes.set_ylim(height - 0.4, -0.6)
    axes.set_xlim(-EDGE - 0.05, 1 + EDGE + 0.05)
    axes.set_xticks([])
    axes.grid(False)
    axes.tick_params(length=0)
    axes.spines[["left", "bottom"]].set_visible(False)


def _draw_row(axes: Axes, place: int, row: Mapping[str, Any], values: np.ndarray) -> None:
    at = _Axis(row, values)
    colour = COLOURS[row["verdict"]]
    axes.fill_between(at.band, place - 0.36, place + 0.36, color="#e8eef4", linewidth=0)
    low, middle, high = at(np.array([row["mean_low"], row["mean"], row["mean_high"]], float))
    axes.plot([low, high], [place, place], color=colour, linewidth=1.6, solid_capstyle="butt")
    axes.plot([middle], [place], "|", color=colour, markersize=7)
    _dots(axes, at(values[~np.isnan(values)]), place, colour)
    if not np.isnan(row["control_mean"]):
        x = float(at(np.array([row["control_mean"]]))[0])
        beyond = "<" if x <= -EDGE else ">" if x >= 1 + EDGE else CONTROL["marker"]
        axes.plot([x], [place], **CONTROL | {"marker": beyond})


def _dots(axes: Axes, x: np.ndarray, place: int, colour: str) -> None:
    """The seeds, spread a little in height; those beyond what is drawn are triangles at its edge."""
    y = place + np.linspace(-0.2, 0.2, len(x))
    for mask, marker in ((x <= -EDGE, "<"), (x >= 1 + EDGE, ">"), ((x > -EDGE) & (x < 1 + EDGE), "o")):
        axes.plot(x[mask], y[mask], marker, color=colour, markersize=2.2, markeredgewidth=0, alpha=0.8)


class _Axis:
    """Where values of a claim are drawn: 0 and 1 at the ends of its range, on its scale, cut at the edges."""

    def __init__(self, row: Mapping[str, Any], values: np.ndarray):
        self.scale = row["scale"]
        low, high = self._moved(np.array([row["low"], row["high"]]))
        low, high = -np.inf if row["low"] < -LARGEST else low, np.inf if row["high"] > LARGEST else high
        finite = self._moved(values[np.isfinite(values)])
        open_ends = [not np.isfinite(low), not np.isfinite(high)]
        near = low if open_ends[1] else high
        width = 2 * np.max(np.abs(finite - near), initial=0.05) if any(open_ends) else high - low
        self.start = high - width if open_ends[0] else low
        self.width = width
        self.band = (-EDGE if open_ends[0] else 0.0, 1 + EDGE if open_ends[1] else 1.0)

    def _moved(self, values: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return np.asarray(MOVED.get(self.scale, np.positive)(values), float)

    def __call__(self, values: np.ndarray) -> np.ndarray:
        return np.asarray(np.clip((self._moved(values) - self.start) / self.width, -EDGE, 1 + EDGE))


def _handles(verdicts: set[str]) -> dict[str, Any]:
    from matplotlib.lines import Line2D

    marks = {name: Line2D([], [], color=colour, marker="o") for name, colour in COLOURS.items() if name in verdicts}
    return marks | {"control": Line2D([], [], linestyle="", **CONTROL)}


def main(argv: list[str]) -> None:
    """The command line."""
    text = "Draws the ledger of claims, a figure for each of its lists."
    draw_from_table(argv, "plots.ledger", text, "the ledger, claims.csv", draw_ledger)


if __name__ == "__main__":
    cli.launch(main)
