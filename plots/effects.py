"""Effects with their intervals, from a study's table of contrasts: one row for each, models apart.

python -m plots.effects --from contrasts.csv --out DIR
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import cli
from plots import style
from store.atomic import csv_bytes, write_bytes
from store.readers import StoreError, read_csv

if TYPE_CHECKING:
    import pandas as pd

TEXT = ("question", "contrast", "kind", "verdict")
NUMBERS = ("n", "treated", "control", "change", "change_low", "change_high")
MARGIN = 1.0  # per cent: what is called no effect
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
    """A panel for each model, which its contrasts' names begin with; changes in per cent of the control's mean."""
    parts = rows["contrast"].str.partition(": ")
    models = list(dict.fromkeys(parts[0]))
    most = max(int((parts[0] == model).sum()) for model in models)
    figure, axes = style.new_figure(1, len(models), width=9.6 / len(models), height=0.9 + 0.19 * most)
    for panel, model, colour in zip(axes[0], models, COLOURS * len(models), strict=False):
        own = rows[parts[0] == model]
        labels = [style.plain(name) for name in parts[2][parts[0] == model]]
        panel.axvspan(-MARGIN, MARGIN, color="#eeeeee", zorder=0)
        panel.axvline(0.0, color=style.GREY, linewidth=0.8)
        for place, (_, row) in enumerate(own.iterrows()):
            low, middle, high = (100 * row[name] for name in ("change_low", "change", "change_high"))
            panel.plot([low, high], [place, place], color=colour)
            panel.plot(middle, place, "o", color=colour, markersize=3.5)
        panel.set_yticks(range(len(own)), labels, fontsize=6.5)
        panel.set_ylim(len(own) - 0.5, -0.5)
        panel.set_title(style.plain(model), fontsize=9)
        panel.set_xlabel("change of the mean, %")
    seeds = f"{int(rows['n'].min())} seeds" if rows["n"].nunique() == 1 else "seeds as in the CSV beside"
    style.caption(figure, f"{question}: mean change against the control and 95 % t interval, {seeds}; grey: within 1 %")
    return style.rendered(figure, suffix)


def parser() -> cli.Parser:
    """The flags."""
    built = cli.Parser("plots.effects", "Draws the contrasts of a study, a figure for each question.")
    built.add_argument("--from", dest="source", metavar="FROM", type=Path, required=True, help="the table of contrasts")
    built.add_argument("--out", type=Path, required=True, help="folder of the figures")
    return built


def main(argv: list[str]) -> None:
    """The command line."""
    flags = parser().parse(argv)
    for path in draw_effects(flags.source, flags.out):
        print(cli.printable(path))


if __name__ == "__main__":
    cli.launch(main, StoreError)
