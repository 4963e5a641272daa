"""How a run develops, on one page: loss, LLC, behaviour and structure over log time, its path and a random walk's.

Stages between milestones of the LLC are shaded: blue where one is claimed, grey where none is. The essential dynamics
alone are a figure too: the trajectory in the planes of its principal components, with forms, above a random walk.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from icl_lab.plots import style
from icl_lab.plots.llc import steps_from_1
from icl_lab.store import layout
from icl_lab.store.llc_rows import read_development, read_table, usable
from icl_lab.store.readers import expecting, read_csv, read_json

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

PUBLISHED = "published"
CLAIMED, OTHERWISE = "#cfe3f5", ("#ececec", "#f7f7f7")
# panel -> columns of the table, those that a model has, with their labels
PANELS: Mapping[str, Mapping[str, str]] = {
    "behaviour": {
        "id_icl_1_k_figure": "ICL score, last less first loss",
        "id_squared_prediction": "squared prediction",
        "ood_delta_ridge": "distance to ridge, fresh tasks",
    },
    "structure, over its first value": {
        "weight_norm": "|w|",
        "embedding_smallest_share": "embedding, smallest share",
        "read_out_norm_gamma_mean": "read-out's layer norm, mean scale",
        "attention_entropy": "attention entropy",
    },
}


def draw_development(run: Path) -> Path:
    """figs/develop.png, of what is in analysis/develop/ and of the essential dynamics."""
    facts = read_development(run)
    with expecting(run / layout.DEVELOP, "the development of a run"):
        suffixes = [f"_{name}" for name in facts["settings"]]
    table = read_table(run / layout.DEVELOP_TABLE, ("step", "loss"), suffixes=suffixes).sort_values("step")
    paths = read_csv(run / layout.ESSENTIAL_DYNAMICS, NUMBERS, ("series",))
    with expecting(run / layout.DEVELOPMENT, "the development of a run"):
        return _draw(run, table, paths, facts)


@style.styled
def _draw(run: Path, table: pd.DataFrame, paths: pd.DataFrame, facts: Mapping[str, Any]) -> Path:
    unsaturated = [name for name in facts["settings"] if name != PUBLISHED]
    own = {title: columns for title, columns in PANELS.items() if {*columns} & {*table}}
    over_training: list[Callable[[Axes], None]] = [
        lambda panel: _loss(panel, table, next(iter(facts["settings"]))),
        lambda panel: _llc(panel, table, unsaturated, facts.get("estimates", {})),
        *[lambda panel: _published(panel, table, facts)] * (PUBLISHED in facts["settings"]),
        *(partial(_lines, table=table, title=title, columns=columns) for title, columns in own.items()),
    ]
    figure, axes = style.new_figure(-(-(len(over_training) + 1) // 2), 2, width=4.6, height=2.2)
    panels = list(axes.ravel())
    if len(over_training) + 1 < len(panels):  # what a run lacks leaves no gap
        panels.pop().remove()
        panels[-1].set_subplotspec(panels[-1].get_gridspec()[-1, :])
    _planes(panels.pop(1), paths, facts["dynamics"])
    for panel, draw in zip(panels, over_training, strict=True):
        draw(panel)
        _over_training(panel, table, facts["stages"])
        if panel.get_legend_handles_labels()[0]:
            panel.legend(fontsize=6)
    style.caption(figure, _caption(run, facts))
    return style.save(figure, run / layout.DEVELOP_FIGURE, run)


def _over_training(panel: Axes, table: pd.DataFrame, stages: Sequence[Mapping[str, Any]]) -> None:
    steps = steps_from_1(table)
    panel.set_xscale("log")
    panel.set_xlim(steps[0], steps[-1])
    panel.set_xlabel("training step")
    for number, stage in enumerate(stages):
        colour = CLAIMED if stage["claimed"] else OTHERWISE[number % 2]
        panel.axvspan(max(stage["start"], steps[0]), stage["end"], color=colour, zorder=0, linewidth=0)


def _loss(panel: Axes, table: pd.DataFrame, setting: str) -> None:
    panel.plot(steps_from_1(table), table[f"loss_{setting}"], color=style.TRANSFORMER, label="loss")
    panel.set_title("loss on the LLC's tasks", fontsize=8)


def _llc(panel: Axes, table: pd.DataFrame, settings: Sequence[str], estimates: Mapping[str, Any]) -> None:
    """Usable checkpoints filled, others hollow; the axis is that of the usable ones. Dashed: what the Hessian predicts.

    estimates: as in develop.json, by setting; earlier ones have none.
    """
    shown: list[float] = []
    for name, colour in zip(settings, (style.TRANSFORMER, style.OTHER, style.DESCENT), strict=False):
        values, low, high = (table[f"{column}_{name}"].to_numpy(float) for column in ("llc", "llc_low", "llc_high"))
        good = usable(table, f"_{name}")
        panel.plot(steps_from_1(table), values, color=colour, linewidth=0.6, alpha=0.5)
        panel.errorbar(
            steps_from_1(table)[good], values[good], [(values - low)[good], (high - values)[good]], fmt="o",
            color=colour, markersize=3, linewidth=0.8, label=name,
        )  # fmt: skip
        panel.plot(steps_from_1(table)[~good], values[~good], "o", color=colour, markersize=3, markerfacecolor="white")
        shown += [*low[good], *high[good]]
        if name in estimates:
            predicted = np.array(estimates[name]["predicted"], float)
            panel.plot(steps_from_1(table), predicted, "--", color="black", linewidth=0.8, zorder=3)
    if shown:
        span = max(max(shown) - min(shown), 1e-9)
        panel.set_ylim(min(shown) - 0.2 * span, max(shown) + 0.2 * span)
    panel.set_title("LLC, unsaturated settings; dashed: predicted by the Hessian", fontsize=8)


def _published(panel: Axes, table: pd.DataFrame, facts: Mapping[str, Any]) -> None:
    """The published setting with its null, nbeta (L_draw(first) - L(w_t))."""
    nbeta = facts["settings"][PUBLISHED]["nbeta"]
    losses = table[f"loss_{PUBLISHED}"]
    null = table[f"llc_{PUBLISHED}"].iloc[0] - nbeta * (losses - losses.iloc[0])
    panel.plot(steps_from_1(table), table[f"llc_{PUBLISHED}"], "o-", color=style.TRANSFORMER, markersize=3, label="LLC")
    panel.plot(steps_from_1(table), null, "--", color="black", linewidth=1, label="nβ (L_draw(first) - L(w))")
    panel.set_title("LLC, published setting", fontsize=8)


def _lines(panel: Axes, table: pd.DataFrame, title: str, columns: Mapping[str, str]) -> None:
    for name, label in columns.items():
        if name in table:
            values = table[name].to_numpy(float)
            panel.plot(steps_from_1(table), values / values[0] if "over its first" in title else values, label=label)
    panel.set_title(title, fontsize=8)


def _planes(panel: Axes, paths: pd.DataFrame, dynamics: Mapping[str, Any]) -> None:
    """The first plane of the run with its forms, and beside it, moved, that of a random walk."""
    trajectory, walk = (paths[paths["series"] == name] for name in SERIES)
    draw_plane(panel, trajectory, (0, 1), dynamics["forms"][:5])
    panel.plot(walk["pc1_smooth"], walk["pc2_smooth"], color=style.GREY, linestyle="--", linewidth=0.8)
    panel.set_title("PCA of outputs; dashed: a random walk of its steps", fontsize=8)


def _caption(run: Path, facts: Mapping[str, Any]) -> str:
    filled = ", ".join(f"{name} {good} of {count}" for name, (good, count) in facts["usable"].items())
    dynamics, null, stages = facts["dynamics"], facts["dynamics"]["null"], facts["stages"]
    claimed = sum(stage["claimed"] for stage in stages)
    forms = "not sought" if dynamics["p_forms"] is None else f"{len(dynamics['forms'])}, of walks {null['forms']:.1f}"
    return (
        f"{run.name}. Stages: {len(stages)}, of which claimed (blue): {claimed}. Usable checkpoints "
        f"(filled): {filled}. Variance of the first component {dynamics['explained'][0]:.2f}, of random walks "
        f"{null['explained'][0]:.2f}; forms: {forms}"
    )


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
        return _draw_dynamics(run, read_csv(table, NUMBERS, ("series",)), read_json(facts))


@style.styled
def _draw_dynamics(run: Path, table: pd.DataFrame, facts: Mapping[str, Any]) -> Path:
    figure, axes = style.new_figure(3, 3, width=3.1, height=2.4)
    for row, (name, forms) in enumerate(zip(SERIES, (facts["forms"], facts["null"]["example"]), strict=True)):
        trajectory = table[table["series"] == name]
        for panel, plane in zip(axes[row], PLANES, strict=True):
            draw_plane(panel, trajectory, plane, forms[:SHOWN])
            panel.set_title(name)
    _scores(axes[2, 0], table[table["series"] == SERIES[0]], facts["forms"][:SHOWN])
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


def _scores(panel: Axes, table: pd.DataFrame, forms: Sequence[Mapping[str, Any]]) -> None:
    for name, colour in zip(NAMES, (style.TRANSFORMER, style.OTHER, style.DESCENT), strict=True):
        panel.plot(table["step"], table[f"{name}_smooth"], color=colour, label=name.upper())
    for form in forms:
        panel.axvline(form["step"], color=FORM["edgecolors"], linewidth=0.7, zorder=0)
    style.over_steps(panel)
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
    style.over_steps(panel)
    panel.set_ylim(bottom=0)
    panel.set_title("strength; dashed: 95 % of walks")
