"""The figures of a sweep, from its table: means over seeds with intervals, nothing of different settings in one line.

python -m plots.fig_templates --from results.csv --out DIR
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from icl_lab.lab import cli
from icl_lab.plots import style
from icl_lab.plots.style import draw_from_table
from icl_lab.plots.sweep_curves import draw_noise, draw_ood
from icl_lab.plots.sweep_dots import draw_alignment, draw_order
from icl_lab.plots.sweep_lines import PHRASES
from icl_lab.plots.sweep_panels import Drawn
from icl_lab.plots.sweep_separation import draw_separation
from icl_lab.plots.sweep_table import DRAWN, read_sweep
from icl_lab.store import outputs
from icl_lab.store.atomic import csv_bytes
from icl_lab.store.readers import StoreError

if TYPE_CHECKING:
    import pandas as pd

FIGURES: dict[str, Callable[[pd.DataFrame], Drawn]] = {
    "order_sensitivity": draw_order,
    "noise_robustness": draw_noise,
    "attention_separation": draw_separation,
    "alignment_metrics": draw_alignment,
    "ood_curve": draw_ood,
}


def draw_sweep(
    source: Path, out: Path, shown: Mapping[str, Callable[[pd.DataFrame], pd.Series]] | None = None
) -> list[Path]:
    """Each figure as .png and .pdf, and as .csv what it shows; all are drawn before the first is written.

    `shown` picks the rows of the table for some of the figures, by name.
    """
    whole = read_sweep(source)
    files: dict[Path, bytes] = {}
    drawn = {
        name: draw(whole[shown[name](whole)] if shown and name in shown else whole) for name, draw in FIGURES.items()
    }
    if not any(rows for _, rows in drawn.values()):
        raise StoreError(f"{source} has nothing to draw: none of its {len(whole)} rows is done with a number to show")
    for name, (figure, rows) in drawn.items():
        files |= {out / f"{name}.{suffix}": style.rendered(figure, suffix) for suffix in ("png", "pdf")}
        columns = [*rows[0]] if rows else [*PHRASES, *DRAWN]
        files[out / f"{name}.csv"] = csv_bytes(rows, columns)
    return outputs.write(files, "plots.fig_templates")


def main(argv: list[str]) -> None:
    """The command line."""
    text = "Draws the figures of a sweep from its table."
    draw_from_table(argv, "plots.fig_templates", text, "the sweep's CSV", draw_sweep)


if __name__ == "__main__":
    cli.launch(main)
