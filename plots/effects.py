"""Effects with their intervals, from a study's table of contrasts: one row for each, models apart.

python -m plots.effects --from contrasts.csv --out DIR
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import cli
from plots import style
from plots.table_command import draw_from_table
from store.atomic import csv_bytes, write_bytes
from store.readers import StoreError, read_csv

if TYPE_CHECKING:
    import pandas as pd

TEXT = ("question", "contrast", "kind", "verdict")
NUMBERS = ("n", "treated", "control", "change", "change_low", "change_high")
MARGIN = 1.0  # per cent: what is called no effect
TICKS = (1, 3, 10, 30, 100, 300)
COLOURS = (style.TRANSFORMER, style.OTHER, style.DESCENT)


def draw_effects(source: Path, out: Path) -> list[Path]:
    """A figure for each question, as .png, .pdf and .csv; all are drawn before the first is written."""
    table = read_csv(source, NUMBERS, TEXT)
    files: dict[Path, bytes] = {}
    for question, rows in table.groupby("question", sort=False):
        name = "effects_" + "_".join(word for word in str(question).split() if word.isalnum())
        if "/" in name or name == "effects_":
            raise StoreError(f"{source} has a question without a name: {question!r}")
        files |= {out / f"{name}.{suffix}": _figure(str(question), rows, suffix) for suffix in ("png", "pdf")}
        files[out / f"{name}.csv"] = csv_bytes(rows[[*TEXT, *NUMBERS]].to_dict("records"))
    for path, content in files.items():
        write_bytes(path, content)
    return list(files)


@style.styled
def _figure(question: str, rows: pd.DataFrame, suffix: str) -> bytes:
    """A panel for each model, which its contrasts' names begin with; changes in per cent of the control's mean.

    The scale is linear up to 1 % and logarithmic beyond, so that no effect and a large one are both seen.
    """
    parts = rows["contrast"].str.partition(": ")
    models, names = list(dict.fromkeys(parts[0])), list(dict.fromkeys(parts[2]))
    figure, axes = style.new_figure(
        1, len(models), width=6.9 / len(models), height=0.9 + 0.17 * len(names), sharey=True
    )
    for panel, model, colour in zip(axes[0], models, COLOURS * len(models), strict=False):
        panel.axvspan(-MARGIN, MARGIN, color="#eeeeee", zorder=0)
        panel.axvline(0.0, color=style.GREY, linewidth=0.8)
        for (_, row), name in zip(rows[parts[0] == model].iterrows(), parts[2][parts[0] == model], strict=True):
            place = names.index(name)
            low, middle, high = (100 * row[end] for end in ("change_low", "change", "change_high"))
            panel.plot([low, high], [place, place], color=colour)
            panel.plot(middle, place, "o", color=colour, markersize=3.5)
        most = 100 * float(rows.loc[parts[0] == model, ["change_low", "change_high"]].abs().max(axis=None))
        ticks = [tick for tick in TICKS if tick <= max(MARGIN, most)]
        panel.set_xscale("symlog", linthresh=MARGIN, linscale=1.5)
        panel.set_xlim(-1.5 * max(MARGIN, most), 1.5 * max(MARGIN, most))
        panel.set_xticks([*(-tick for tick in ticks[::-1]), 0, *ticks])
        panel.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        panel.minorticks_off()
        panel.tick_params(axis="x", labelsize=7)
        panel.set_title(style.plain(model), fontsize=9)
        panel.set_xlabel("change, %")
    axes[0, 0].set_yticks(range(len(names)), [style.plain(name) for name in names], fontsize=7)
    axes[0, 0].set_ylim(len(names) - 0.5, -0.5)
    seeds = f"{int(rows['n'].min())} seeds" if rows["n"].nunique() == 1 else "seeds as in the CSV beside"
    style.caption(
        figure,
        f"{question}: mean change against the control, 95 % t interval, {seeds}; grey: within 1 %, on a linear scale",
    )
    return style.rendered(figure, suffix)


def main(argv: list[str]) -> None:
    """The command line."""
    text = "Draws the contrasts of a study, a figure for each question."
    draw_from_table(argv, "plots.effects", text, "the table of contrasts", draw_effects)


if __name__ == "__main__":
    cli.launch(main, StoreError)
