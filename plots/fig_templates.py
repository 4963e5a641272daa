"""The figures of a sweep, from its table: means over seeds with intervals; no line mixes settings.

python -m plots.fig_templates --from results.csv --out DIR
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from icl_lab.lab import cli
from icl_lab.lab.command_end import typed
from icl_lab.lab.garbage import no_garbage_collection
from icl_lab.plots import choice, style
from icl_lab.plots.choice import Figures, Left, Where
from icl_lab.plots.sweep_curves import draw_noise, draw_ood
from icl_lab.plots.sweep_dots import draw_alignment, draw_order
from icl_lab.plots.sweep_lines import PHRASES
from icl_lab.plots.sweep_panels import Drawn
from icl_lab.plots.sweep_separation import draw_separation
from icl_lab.plots.sweep_table import DRAWN, narrowed, read_sweep
from icl_lab.src.words import did_you_mean, printable
from icl_lab.store import outputs
from icl_lab.store.atomic import csv_bytes
from icl_lab.store.outputs import in_path, out_folder
from icl_lab.store.readers import StoreError

if TYPE_CHECKING:
    import pandas as pd

PROG = "plots.fig_templates"
FIGURES: dict[str, Callable[..., Drawn]] = {
    "order_sensitivity": draw_order,
    "noise_robustness": draw_noise,
    "attention_separation": draw_separation,
    "alignment_metrics": draw_alignment,
    "ood_curve": draw_ood,
}


def draw_sweep(
    source: Path,
    out: Path,
    shown: Mapping[str, Callable[[pd.DataFrame], pd.Series]] | None = None,
    where: Sequence[Where] = (),
    panels: str = "",
    pictures: Mapping[str, Path] | None = None,
) -> Figures:
    """Each figure as .png and .pdf, and as .csv what it shows; all are drawn before the first is written.

    `shown` picks the rows of the table for some of the figures, by name, `where` for all; `panels` is a setting whose
    values have panels apart. What does not fit a page is left out, and named. `pictures`: the folder of some pictures,
    by name, where it is not that of the tables.
    """
    apart = _setting(panels, source)
    whole = read_sweep(source, where)
    files: dict[Path, bytes] = {}
    drawn = {
        name: choice.fitted(
            partial(draw, **apart), whole[shown[name](whole)] if shown and name in shown else whole, narrowed(name)
        )
        for name, draw in FIGURES.items()
    }
    if not any(figure.rows for figure, _ in drawn.values()):
        raise StoreError(f"{source} has nothing to draw: none of its {len(whole)} rows is done with a number to show")
    for name, ((figure, rows), _) in drawn.items():
        place = (pictures or {}).get(name, out)
        files |= {place / f"{name}.{suffix}": style.rendered(figure, suffix) for suffix in ("png", "pdf")}
        columns = [*rows[0]] if rows else [*PHRASES, *DRAWN]
        files[out / f"{name}.csv"] = csv_bytes(rows, columns)
    command = [*typed(PROG).split(), "--from", str(source), *_flag("--panels", panels)]
    return Figures(outputs.write(files, PROG), _left(drawn, command, out))


def _setting(column: str, source: Path) -> dict[str, list[str]]:
    """The argument of figures that parts their panels by a column; `StoreError` if it is no setting of a line."""
    names = {name: name for name in PHRASES}
    names |= {f"eval_{name}": name for name in PHRASES if f"train_{name}" in PHRASES}
    if column and column not in names:
        known = ", ".join(PHRASES)
        raise StoreError(
            f"{source} cannot be split into panels by {column}{did_you_mean(column, names)}: choose {known}"
        )
    return {"apart": [names[column]]} if column else {}


def _flag(flag: str, value: str) -> list[str]:
    return [flag, value] if value else []


def _left(drawn: Mapping[str, tuple[Drawn, list[Left]]], command: Sequence[str], out: Path) -> list[str]:
    """What is not in some of the figures, once for all that lack the same."""
    lacking: dict[Left, list[str]] = {}
    for name, (_, left) in drawn.items():
        for each in left:
            lacking.setdefault(each, []).append(name)
    return [line for left, names in lacking.items() for line in choice.commands([left], ", ".join(names), command, out)]


def main(argv: list[str]) -> None:
    """The command line."""
    parser = cli.Parser(PROG, "Draws the figures of a sweep from its table.")
    parser.add_argument("--from", dest="source", metavar="FROM", type=in_path, required=True, help="the sweep's CSV")
    parser.add_argument("--out", type=out_folder, required=True, help="folder of the figures")
    choice.add_flags(parser, "setting with a panel for each of its values, such as train_noise_mode")
    flags = parser.parse(argv)
    with no_garbage_collection():
        for line in chain(*draw_sweep(flags.source, flags.out, None, flags.where, flags.panels)):
            print(printable(line))


if __name__ == "__main__":
    cli.launch(main)
