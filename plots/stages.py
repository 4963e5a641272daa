"""The stages of a run: its LLC with the fitted curve and the loss alone, the slope, and the loss, over log steps.

Stages of several runs are bars, a row for each run, rises and falls, those that are claimed filled. On the bars stand
the milestones between which they lie, and under them the change points of the same curve.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from icl_lab.plots import style
from icl_lab.store import layout
from icl_lab.store.llc_rows import read_stages
from icl_lab.store.readers import expecting, read_csv

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

NUMBERS = ("data_seed", "init_seed", "start", "end", "delta_loss", "delta_llc", "delta_llc_se")
LLC = "LLC"
SHADES = {"A": "#e3eef8", "B": "#fbe9dc", "undecided": "#f3f3f3"}  # of stages, by type
ENDS = "#cc3311"  # of stages: milestones
BAND = 2  # standard errors of a band
MARGIN = 0.12  # log steps beside the first and the last checkpoint
SMALL = 6.6  # points of the caption, whose many digits are wider than letters
TICKS = (0, 1, 10, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000)


def draw_stages(run: Path) -> Path:
    """figs/stages.png, of stages.csv and .json."""
    table = read_csv(run / layout.STAGES, NUMBERS, ("series", "type"))
    facts = read_stages(run)
    with expecting(run / layout.STAGES_FACTS, "the stages of a run"):
        return _draw(run, table, facts)


@style.styled
def _draw(run: Path, table: pd.DataFrame, facts: Mapping[str, Any]) -> Path:
    figure, axes = style.new_figure(
        3, 1, width=7.2, height=2.0, sharex=True, gridspec_kw={"height_ratios": (1.5, 1, 1)}
    )
    llc, slope, loss = axes[:, 0]
    stages = table[table["series"] == LLC].iloc[: len(facts["milestones"]) + 1]
    for panel in (llc, slope, loss):
        _stages(panel, stages, facts["milestones"])
    _llc(llc, facts)
    _slope(slope, facts)
    _loss(loss, facts["checkpoints"])
    _name(llc, stages)
    _log_steps(loss, facts["checkpoints"]["steps"])
    style.legend_above(figure)
    style.caption(figure, _caption(run, facts))
    figure.supxlabel(figure.get_supxlabel(), fontsize=SMALL, color="#555555")
    return style.save(figure, run / layout.STAGES_FIGURE, run)


def _at(step: float) -> float:
    return float(np.log1p(step))


def _all_at(steps: Sequence[float]) -> np.ndarray:
    return np.asarray(np.log1p(np.asarray(steps, float)))


def _stages(panel: Axes, rows: pd.DataFrame, milestones: Sequence[Mapping[str, Any]]) -> None:
    """Stages shaded by type, milestones as lines with their 90 % intervals; one without sides is dashed."""
    for _, row in rows.iterrows():
        panel.axvspan(_at(row["start"]), _at(row["end"]), color=SHADES[row["type"]], linewidth=0, zorder=0)
    for one in milestones:
        look = "-" if one["sides"] == "both" else "--"
        panel.axvline(_at(one["step"]), color=ENDS, linewidth=1, linestyle=look, zorder=1)
        if one["low"] is not None:
            panel.axvspan(_at(one["low"]), _at(one["high"]), color=ENDS, alpha=0.12, linewidth=0, zorder=0.5)


def _band(panel: Axes, curve: Mapping[str, Any], name: str, colour: str) -> None:
    mean, error = (np.asarray(curve[key], float) for key in (name, f"{name}_se"))
    at = _all_at(curve["step"])
    panel.plot(at, mean, color=colour, linewidth=1.2, zorder=3)
    panel.fill_between(at, mean - BAND * error, mean + BAND * error, color=colour, alpha=0.2, linewidth=0)


def _llc(panel: Axes, facts: Mapping[str, Any]) -> None:
    """Points with their errors, hollow where they are not usable, the fit, the loss alone and the change points."""
    checkpoints = {name: np.asarray(values) for name, values in facts["checkpoints"].items()}
    at, good, colour = _all_at(checkpoints["steps"].tolist()), checkpoints["usable"].astype(bool), style.TRANSFORMER
    for seed in facts["seeds"]:
        panel.plot(_all_at(seed["curve"]["step"]), seed["curve"]["llc"], color=style.GREY, linewidth=0.7, zorder=2)
    panel.errorbar(
        at, checkpoints["llc"], BAND * checkpoints["errors"], fmt="none", ecolor=colour, elinewidth=0.8, zorder=2.5
    )
    panel.plot(at[good], checkpoints["llc"][good], "o", color=colour, markersize=3.5, label="usable", zorder=4)
    if not good.all():
        hollow: dict[str, Any] = {"markerfacecolor": "white", "label": "not usable", "zorder": 4}
        panel.plot(at[~good], checkpoints["llc"][~good], "o", color=colour, markersize=3.5, **hollow)
    _band(panel, facts["curve"], "llc", colour)
    panel.plot(
        at, checkpoints["loss_alone"], ":", color="black", linewidth=1, label="nbeta (L_null - L(w*)): the loss alone"
    )
    kinks = [point["step"] for point in facts["change_points"]["points"]]
    panel.plot(_all_at(kinks), np.full(len(kinks), 0.03), "^", color=style.OTHER, transform=panel.get_xaxis_transform())
    if kinks:
        panel.plot([], [], "^", color=style.OTHER, label="change points")
    low, high = _limits(
        [*(checkpoints["llc"] - BAND * checkpoints["errors"]), *(checkpoints["llc"] + BAND * checkpoints["errors"])]
    )
    panel.set_ylim(low, high)  # the loss alone may lie far above, where checkpoints are usable
    panel.set_ylabel("LLC")


def _limits(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    margin = 0.08 * (high - low) or 1.0
    return low - 1.5 * margin, high + margin


def _slope(panel: Axes, facts: Mapping[str, Any]) -> None:
    """The slope with the bound, and that of the loss alone."""
    limit = facts["rule"]["bound"] * float(np.ptp(facts["curve"]["llc"]))
    panel.axhspan(-limit, limit, color=style.GREY, alpha=0.25, linewidth=0, label="bound of a plateau")
    _band(panel, facts["curve"], "slope", style.TRANSFORMER)
    shown = facts["curve"]["slope"]
    panel.plot(_all_at(facts["loss_alone"]["curve"]["step"]), facts["loss_alone"]["curve"]["slope"], ":k", linewidth=1)
    panel.set_ylim(*_limits([*shown, -2 * limit, 2 * limit]))
    panel.set_ylabel("d LLC / d log step")


def _loss(panel: Axes, checkpoints: Mapping[str, Any]) -> None:
    panel.plot(_all_at(checkpoints["steps"]), checkpoints["loss"], "o-", color="black", markersize=3, linewidth=1)
    panel.set_ylabel("loss L(w*)")
    panel.set_xlabel("training step (axis: log(step + 1))")


def _name(panel: Axes, rows: pd.DataFrame) -> None:
    """The type of each stage, above it."""
    for _, row in rows.iterrows():
        middle = (_at(row["start"]) + _at(row["end"])) / 2
        word = "?" if row["type"] == "undecided" else row["type"]
        panel.text(middle, 1.01, word, transform=panel.get_xaxis_transform(), ha="center", va="bottom", fontsize=8)


def _log_steps(panel: Axes, steps: Sequence[float]) -> None:
    last = max(steps)
    ticks = [tick for tick in TICKS if min(steps) <= tick <= last]
    panel.set_xticks(_all_at(ticks), [f"{tick:,}".replace(",", " ") for tick in ticks])
    panel.set_xlim(_at(min(steps)) - MARGIN, _at(last) + MARGIN)


def _caption(run: Path, facts: Mapping[str, Any]) -> str:
    settings = ", ".join(f"{name} {facts['settings'][name]:g}" for name in ("eps", "nbeta", "gamma"))
    usable = facts["checkpoints"]["usable"]
    seeds = f" Grey: {len(facts['seeds'])} further seeds." if facts["seeds"] else ""
    return (
        f"{run.name}: {len(usable)} checkpoints, {sum(usable)} usable ({settings}). Bars and bands: {BAND} standard "
        f"errors. {_lines(facts)} A: LLC rises, B: falls, ?: undecided.{seeds}"
    )


def _lines(facts: Mapping[str, Any]) -> str:
    """What the caption says of the milestones."""
    milestones = facts["milestones"]
    if not milestones:
        shape = "a plateau" if facts["curve"]["has_shape"] else "more than a line and noise"
        return f"No milestones: the checkpoints do not show {shape}."
    return (
        f"Lines: {len(milestones)} milestones with 90 % intervals (dashed: the LLC surely changes on one side alone), "
        f"of which the loss alone has {sum(one['loss_has_one'] for one in milestones)}."
    )
