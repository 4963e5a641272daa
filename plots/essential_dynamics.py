"""A run's trajectory in the planes of its principal components, with forms, above a random walk of its own steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from icl_lab.plots import style
from icl_lab.store import layout
from icl_lab.store.readers import expecting, read_csv, read_json

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

NAMES = ("pc1", "pc2", "pc3")
PLANES = ((0, 1), (0, 2), (1, 2))
NUMBERS = ("step", *NAMES, *(f"{name}_smooth" for name in NAMES))
SERIES = ("trajectory", "random walk")
SHOWN = 5  # forms of each, the strongest
COLOURS = "viridis"  # from the first checkpoint to the last
FORM: dict[str, Any] = {"marker": "o", "s": 40, "facecolors": "none", "edgecolors": "#cc3311", "linewidths": 1.2}


def draw_dynamics(run: Path) -> Path:
    """figs/essential_dynamics.png, of essential_dynamics.csv and .json."""
    table, facts = run / layout.ESSENTIAL_DYNAMICS, run / layout.ESSENTIAL_DYNAMICS_FACTS
    with expecting(facts, "the essential dynamics of a run"):
        return _draw(run, read_csv(table, NUMBERS, ("series",)), read_json(facts))


@style.styled
def _draw(run: Path, table: pd.DataFrame, facts: Mapping[str, Any]) -> Path:
    figure, axes = style.new_figure(3, 3, width=3.1, height=2.4)
    for row, (name, forms) in enumerate(zip(SERIES, (facts["forms"], facts["null"]["example"]), strict=True)):
        trajectory = table[table["series"] == name]
        for panel, plane in zip(axes[row], PLANES, strict=True):
            draw_plane(panel, trajectory, plane, forms[:SHOWN])
            panel.set_title(name)
    _over_training(axes[2, 0], table[table["series"] == SERIES[0]], facts["forms"][:SHOWN])
    _explained(axes[2, 1], facts)
    _strengths(axes[2, 2], facts)
    style.legend_above(figure)
    style.caption(figure, f"{run.name}: {facts['checkpoints']} checkpoints, from dark to light. {_about_forms(facts)}")
    return style.save(figure, run / layout.ESSENTIAL_DYNAMICS_FIGURE, run)


def _about_forms(facts: Mapping[str, Any]) -> str:
    null = facts["null"]
    if facts["p_forms"] is None:
        return "Forms, bends that two planes share, are not sought in so few checkpoints"
    return (
        f"Circles: the {SHOWN} strongest forms, bends that two planes share; there are {len(facts['forms'])}, and "
        f"{null['forms']:.1f} in random walks of the run's own steps (p = {facts['p_forms']:.2g} of {null['walks']} "
        "walks)"
    )


def draw_plane(panel: Axes, table: pd.DataFrame, plane: tuple[int, int], forms: Sequence[Mapping[str, Any]]) -> None:
    """A smoothed path in a plane of two components, from dark to light, with its forms."""
    x, y = (table[f"{NAMES[component]}_smooth"].to_numpy() for component in plane)
    panel.plot(x, y, color=style.GREY, linewidth=0.6, zorder=1)
    panel.scatter(x, y, c=np.arange(len(x)), cmap=COLOURS, s=6, zorder=2)
    places = [form["checkpoint"] for form in forms]
    panel.scatter(x[places], y[places], zorder=3, **FORM)
    panel.set_xlabel(NAMES[plane[0]].upper())
    panel.set_ylabel(NAMES[plane[1]].upper())


def _over_training(panel: Axes, table: pd.DataFrame, forms: Sequence[Mapping[str, Any]]) -> None:
    for name, colour in zip(NAMES, (style.TRANSFORMER, style.OTHER, style.DESCENT), strict=True):
        panel.plot(table["step"], table[f"{name}_smooth"], color=colour, label=name.upper())
    for form in forms:
        panel.axvline(form["step"], color=FORM["edgecolors"], linewidth=0.7, zorder=0)
    panel.set_xscale("symlog", linthresh=1)
    panel.set_xlim(left=-0.5)
    panel.set_xlabel("training step")
    panel.set_title("scores; lines: forms")


def _explained(panel: Axes, facts: Mapping[str, Any]) -> None:
    null, numbers = facts["null"], np.arange(1, len(NAMES) + 1)
    low, high = (np.array(null[f"explained_{end}"]) for end in ("low", "high"))
    mean = np.array(null["explained"])
    panel.plot(numbers, facts["explained"], "o", color=style.TRANSFORMER)
    panel.errorbar(numbers + 0.15, mean, [mean - low, high - mean], fmt="s", color=style.GREY, markersize=4)
    panel.plot(numbers - 0.15, facts["cosines"], "x", color="black", markersize=4)
    panel.set_xticks(numbers, [name.upper() for name in NAMES])
    panel.set_ylim(0, 1)
    panel.set_title("variance: run, walks, x cosines")


def _strengths(panel: Axes, facts: Mapping[str, Any]) -> None:
    forms, bound = facts["forms"], facts["null"]["strongest"]
    panel.plot([form["step"] for form in forms], [form["strength"] for form in forms], "o", color=style.TRANSFORMER)
    panel.axhline(bound[1], color=style.GREY, linestyle="--", linewidth=1)
    panel.set_xscale("symlog", linthresh=1)
    panel.set_xlim(left=-0.5)
    panel.set_ylim(bottom=0)
    panel.set_xlabel("training step")
    panel.set_title("strength; dashed: 95 % of walks")
