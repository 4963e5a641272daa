"""The dashboard of a run's local learning coefficients: the estimate, and diagnostics of its reliability.

Filled points are usable checkpoints; hollow ones are not, and no line goes through them; a cross is a checkpoint
without an estimate, whose chains diverged. Another figure compares the LLC at two settings with the loss.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from icl_lab.plots import style
from icl_lab.store import layout
from icl_lab.store.llc_rows import NONE, NOT_COMPUTED, is_usable, read_table, usable
from icl_lab.store.readers import StoreError, expecting, read_npz

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TEXT = ("settings", "data")
NUMBERS = (
    *("step", "llc", "llc_low", "llc_high", "loss", "null_loss", "saturation", "acceptance", "stability", "trend"),
    *("distance", "radius", "norm", "eps", "nbeta", "gamma", "batch_size", "chains", "burn_in", "draws"),
)
BOUNDS = {"saturation": 0.3, "stability": 1.0, "acceptance": 0.1}  # beyond which there is a reason against it
FIRST = 0.5  # of the next step: where step 0 stands on a logarithmic axis
SHOWN = 3  # checkpoints whose traces are drawn
RUNNING = 20  # draws that a trace is averaged over, for the eye
LETTERS = 46  # of a title above a trace
CHAIN: dict[str, Any] = {"linewidth": 0.6, "alpha": 0.7}


def draw_llc(run: Path, settings: str) -> Path:
    """figs/llc.png of the rows with these settings: their name, as in the column `settings` of llc.csv."""
    table = read_table(run / layout.LLC, ("step",), TEXT)
    rows = table[table["settings"] == settings].sort_values("step")
    if rows.empty:
        raise StoreError(f"{run / layout.LLC} has no rows of settings {settings}")
    with expecting(run / layout.LLC, "a table of LLCs"):
        return _dashboard(run, settings, rows)


@style.styled
def _dashboard(run: Path, settings: str, table: pd.DataFrame) -> Path:
    figure, axes = style.new_figure(3, 3, width=3.1, height=2.1)
    panels: dict[str, Callable[[Axes, pd.DataFrame], None]] = {
        "LLC, 95 % interval over chains": _llc,
        "loss of the draws": _losses,
        "saturation": _bounded("saturation"),
        "acceptance of a Metropolis step": _bounded("acceptance"),
        "eps (nbeta h_max + gamma)": _bounded("stability"),
        "|w - w*|; dashed |w*|; dotted the radius": _distances,
    }
    for panel, (title, draw) in zip(axes[:2].ravel(), panels.items(), strict=True):
        draw(panel, table)
        _over_training(panel, table)
        panel.set_title(title, fontsize=8)
    _traces(axes[2], run, settings, table)
    style.caption(figure, _caption(run, table))
    return style.save(figure, run / layout.LLC_FIGURE, run)


@style.styled
def estimate_figure(row: Mapping[str, Any], traces: Mapping[str, np.ndarray], text: str) -> Figure:
    """The chains of one estimate, its interval beside the quadratic prediction, and the distance from w*.

    row: of an LLC table; traces: excess [C, T] and, where it is known, distance [C, T], burn-in included; text: below.
    """
    figure, axes = style.new_figure(1, 3, width=3.4, height=2.4)
    chains, value, distance = axes[0]
    kernel = np.ones(RUNNING) / RUNNING
    for one in row["nbeta"] * traces["excess"]:
        chains.plot(np.convolve(one, kernel, "valid"), **CHAIN)
    chains.axvspan(0, row["burn_in"], color=style.PALE, zorder=0)
    chains.axhline(row["llc"], color=style.GREY, linewidth=0.8)
    chains.set_title(f"chains, running means of {RUNNING} draws", fontsize=8)
    chains.set_xlabel("draw")
    chains.set_ylabel("nbeta x excess loss")
    half = [[row["llc"] - row["llc_low"]], [row["llc_high"] - row["llc"]]]
    value.errorbar([0], [row["llc"]], half, fmt="o", capsize=4)
    names = ["estimate"]
    if np.isfinite(row["predicted"]):
        value.errorbar([1], [row["predicted"]], [row["predicted_error"]], fmt="s", color=style.GREY)
        names.append("quadratic\nprediction")
    value.set_xticks(range(len(names)), names)
    value.set_xlim(-0.6, len(names) - 0.4)
    value.set_title(f"LLC: {row['verdict']}", fontsize=8)
    for one in traces.get("distance", ()):
        distance.plot(one, **CHAIN)
    if np.isfinite(row["norm"]):
        distance.axhline(row["norm"], color=style.GREY, linestyle="--", linewidth=0.8)
    distance.set_title("|w - w*|; dashed |w*|", fontsize=8)
    distance.set_xlabel("draw")
    style.caption(figure, text)
    return figure


def steps_from_1(table: pd.DataFrame) -> np.ndarray:
    """The steps of a logarithmic axis, with step 0 left of the first."""
    steps = table["step"].to_numpy(float)
    return np.asarray(np.maximum(steps, FIRST * min(steps[steps > 0], default=1.0)))


def _over_training(panel: Axes, table: pd.DataFrame) -> None:
    """The same steps on all panels, of which step 0 is marked as such."""
    steps = steps_from_1(table)
    if len(steps) > 1:
        panel.set_xscale("log")
        panel.set_xlim(steps[0] / 1.2, steps[-1] * 1.2)
        panel.xaxis.set_minor_formatter(lambda *_: "")
        shown = dict.fromkeys((steps[0], steps[len(steps) // 2], steps[-1]))
        named = dict(zip(steps, table["step"], strict=True))
        panel.set_xticks(list(shown), [f"{named[step]:g}" for step in shown])
    panel.set_xlabel("training step")


def _points(panel: Axes, table: pd.DataFrame, name: str, colour: str = style.TRANSFORMER) -> None:
    """Usable points filled and joined, the others hollow, and crosses where there is no number."""
    good = usable(table)
    steps, values = steps_from_1(table), table[name].to_numpy(float)
    panel.plot(steps, np.where(good, values, np.nan), "o-", color=colour, markersize=3)
    panel.plot(steps[~good], values[~good], "o", color=colour, markersize=3.5, markerfacecolor="white")
    missing = steps[~np.isfinite(values)]
    panel.plot(missing, np.full(len(missing), 0.03), "x", color="black", transform=panel.get_xaxis_transform())


def _llc(panel: Axes, table: pd.DataFrame) -> None:
    panel.vlines(steps_from_1(table), table["llc_low"], table["llc_high"], color=style.TRANSFORMER, linewidth=0.9)
    _points(panel, table, "llc")
    panel.axhline(0, color=style.GREY, linewidth=0.6)
    if (table["saturation"] > BOUNDS["saturation"]).any():
        ceiling = table["nbeta"] * (table["null_loss"] - table["loss"])
        panel.plot(steps_from_1(table), ceiling, color=style.GREY, linestyle=":", label="nbeta (L_null - L(w*))")
        panel.legend()


def _losses(panel: Axes, table: pd.DataFrame) -> None:
    panel.plot(steps_from_1(table), table["loss"], color="black", label="L(w*)")
    _points(panel, table, "draw_loss")
    panel.plot(steps_from_1(table), table["null_loss"], color=style.GREY, linestyle=":", label="null predictor")
    panel.legend()


def _bounded(name: str) -> Callable[[Axes, pd.DataFrame], None]:
    def draw(panel: Axes, table: pd.DataFrame) -> None:
        _points(panel, table, name)
        panel.axhline(BOUNDS[name], color=style.OTHER, linestyle="--", linewidth=1)
        panel.set_ylim(min(0.0, 1.1 * float(np.nanmin([0, *table[name]]))), None)

    return draw


def _distances(panel: Axes, table: pd.DataFrame) -> None:
    _points(panel, table, "distance")
    panel.plot(steps_from_1(table), table["norm"], color="black", linestyle="--")
    if np.isfinite(table["radius"]).all():
        panel.plot(steps_from_1(table), table["radius"], color=style.GREY, linestyle=":")
    if np.isfinite(table[["distance", "norm"]]).any(axis=None):
        panel.set_yscale("log")


def _traces(panels: np.ndarray, run: Path, settings: str, table: pd.DataFrame) -> None:
    """nbeta times the excess loss of each chain, a running mean, at the first, a middle and the last checkpoint."""
    steps = list(table["step"])
    chosen = dict.fromkeys(steps[round(place)] for place in np.linspace(0, len(steps) - 1, SHOWN))
    for panel, step in zip(panels, chosen, strict=False):
        _trace(panel, table[table["step"] == step].iloc[0], _excess(run, settings, int(step)))
    for panel in panels[len(chosen) :]:
        panel.set_axis_off()


def _trace(panel: Axes, row: pd.Series, excess: np.ndarray) -> None:
    """A checkpoint's chains, with its LLC; diverging ones draw by draw, on an axis that shows how they do."""
    values = row["nbeta"] * excess
    diverged = not np.isfinite(values).all()
    width = 1 if diverged else min(RUNNING, values.shape[1])
    kernel = np.ones(width) / width
    for number, chain in enumerate(values):
        smooth = np.convolve(chain, kernel, "valid")
        panel.plot(np.arange(len(smooth)) + width / 2, smooth, color=f"C{number}", **CHAIN)
    panel.axvspan(0, row["burn_in"], color=style.PALE, zorder=0)
    panel.plot([row["burn_in"], values.shape[1]], 2 * [row["llc"]], color="black", linewidth=1)
    if diverged:
        panel.set_yscale("symlog", linthresh=1.0)
        panel.set_yticks([0, 1e5, 1e10, 1e20, 1e30])
    panel.set_xlim(0, values.shape[1] - 1)
    told = row["reasons"].removeprefix(f"{NOT_COMPUTED}: ") if row["verdict"] == NONE else row["verdict"]
    panel.set_title(textwrap.shorten(f"step {int(row['step'])}: {told}", LETTERS, placeholder=" ..."), fontsize=8)
    panel.set_xlabel("draw")
    panel.set_ylabel("nbeta x excess loss")


def _excess(run: Path, settings: str, step: int) -> np.ndarray:
    path = run / layout.LLC_TRACES / f"{settings}_step_{step:08d}.npz"
    return np.asarray(read_npz(path, ("excess",))["excess"], float)


def _caption(run: Path, table: pd.DataFrame) -> str:
    row: Mapping[str, Any] = table.iloc[-1].to_dict()
    unusable = int((~usable(table)).sum())
    settings = ", ".join(f"{name} {row[name]:g}" for name in ("eps", "nbeta", "gamma", "batch_size"))
    chains = f"{row['chains']:g} chains of {row['draws']:g} draws after {row['burn_in']:g}, {row['data']} tasks"
    return (
        f"{run.name}: {settings}; {chains}. Hollow: {unusable} of {len(table)} checkpoints are not usable; crosses: "
        f"no number. Dashed orange: the bound of what is usable. Traces: running means of {RUNNING} draws, burn-in "
        "shaded, black the LLC"
    )


Rows = Sequence[Mapping[str, Any]]
COLOURS = {"published": style.OTHER, "default": style.TRANSFORMER}


@style.styled
def draw_saturation(run: Path, rows: Mapping[str, Rows]) -> Path:
    """figs/llc_saturation.png, of the rows of each setting: the LLC against the loss, whether it is a line."""
    figure, axes = style.new_figure(1, 3, width=3.2, height=2.6)
    for name, setting_rows in rows.items():
        label = f"{name}: " + ", ".join(f"{key} {setting_rows[0][key]:.4g}" for key in ("eps", "nbeta", "gamma"))
        _checkpoints(axes[0, 0], setting_rows, "llc", name, label)
        _checkpoints(axes[0, 1], setting_rows, "saturation", name)
        _ceiling(axes[0, 0], setting_rows, COLOURS[name])
        _checkpoints(axes[0, 2], setting_rows, "llc", name, over="step")
    axes[0, 1].axhline(BOUNDS["saturation"], color=style.GREY, linestyle="--", linewidth=1)
    axes[0, 2].set_xscale("symlog", linthresh=1)
    for panel, x, y in zip(
        axes[0], ("loss L(w*)", "loss L(w*)", "training step"), ("LLC", "saturation", "LLC"), strict=True
    ):
        panel.set_xlabel(x)
        panel.set_ylabel(y)
    style.legend_above(figure)
    first = next(iter(rows.values()))[0]
    style.caption(
        figure,
        f"{run.name}: {first['chains']:g} chains of {first['draws']:g} draws after {first['burn_in']:g}; hollow: not "
        "usable; dashed, left: nbeta (L_null - L(w*)), where draws are no better than the null predictor; "
        f"dashed, middle: saturation {BOUNDS['saturation']:g}",
    )
    return style.save(figure, run / layout.LLC_SATURATION_FIGURE, run)


def _checkpoints(panel: Axes, rows: Rows, column: str, name: str, label: str | None = None, over: str = "loss") -> None:
    """A point a checkpoint, filled where it is usable; over training the usable ones are joined."""
    good = np.array([is_usable(row) for row in rows], bool)
    x, y = (np.array([row[key] for row in rows], float) for key in (over, column))
    colour = COLOURS[name]
    panel.plot(x[good], y[good], "o-" if over == "step" else "o", color=colour, markersize=4)
    panel.plot(x[~good], y[~good], "o", color=colour, markersize=4, markerfacecolor="white")
    if label:
        panel.plot([], [], "o", color=colour, markersize=4, label=label)


def _ceiling(panel: Axes, rows: Rows, colour: str) -> None:
    losses = np.sort([row["loss"] for row in rows])
    panel.plot(losses, rows[0]["nbeta"] * (rows[0]["null_loss"] - losses), color=colour, linestyle="--", linewidth=1)
