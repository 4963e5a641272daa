"""Draws cost.png: milliseconds per step against each size, compared with the plain loop."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icl_lab.benchmarks.cases import SWEEPS
from icl_lab.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LINES = {
    "plain": ("plain loop", style.DESCENT, "s"),
    "xla": ("this laboratory, by XLA", style.OTHER, "^"),
    "ours": ("this laboratory", style.TRANSFORMER, "o"),
}


@style.styled
def draw_growth(measured: Mapping[str, Any], path: Path) -> Path:
    """One log-log panel per sweep: medians, with bands from the smallest to the largest repeat."""
    figure, axes = style.new_figure(rows=2, columns=3, width=3.1, height=2.5)
    *panels, rest = axes.flat
    for panel, name in zip(panels, SWEEPS, strict=True):
        _draw(panel, measured["results"][name])
    limits = [panel.get_ylim() for panel in panels]
    for panel in panels:
        panel.set_ylim(min(low for low, _ in limits), max(high for _, high in limits))
        panel.yaxis.set_major_formatter("{x:g}")
    for panel in (panels[0], panels[3]):
        panel.set_ylabel("ms a step of one run")
    rest.axis("off")
    rest.legend(*panels[0].get_legend_handles_labels(), loc="upper left", bbox_to_anchor=(0, 1))
    rest.text(0.03, 0.62, _conditions(measured), transform=rest.transAxes, va="top", fontsize=8, linespacing=1.5)
    style.caption(figure, f"{measured['machine']}, jax {measured['versions']['jax']}, {measured['date'][:10]}")
    return style.save(figure, path)


def _draw(panel: Axes, entry: Mapping[str, Any]) -> None:
    values = [point["value"] for point in entry["points"]]
    for who, (label, colour, marker) in LINES.items():
        spreads = [point["seconds"].get(who, {}) for point in entry["points"]]
        middle, low, high = ([1e3 * s.get(name, math.nan) for s in spreads] for name in ("median", "low", "high"))
        if not any(spreads):
            continue
        panel.fill_between(values, low, high, color=colour, alpha=0.2, linewidth=0)
        panel.plot(values, middle, color=colour, marker=marker, markersize=3.5, label=label)
    panel.set_xscale("log", base=2)
    panel.set_yscale("log")
    panel.set_xticks(values, [str(value) for value in values])
    panel.set_xticks([], minor=True)
    panel.tick_params(axis="x", labelsize=7.5)
    panel.set_xlabel(entry["text"])


def _conditions(measured: Mapping[str, Any]) -> str:
    lines = (
        "lsa1: one layer, N = D = 10, B = 2048, one run;",
        "each panel changes one of these.",
        f"Points: medians of {measured['settings']['repeats']} turns;",
        "bands: from the least to the largest.",
    )
    return "\n".join(lines)
