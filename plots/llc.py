"""The dashboard of a run's local learning coefficients: the estimate, and beside it what says if it can be trusted.

Filled points are healthy checkpoints, hollow ones are not, and are joined by no line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from plots import style
from store import layout
from store.readers import StoreError, read_csv, read_npz

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

HEALTHY = "healthy"
TEXT = ("settings", "health", "data")
NUMBERS = (
    *("step", "llc", "llc_low", "llc_high", "loss", "null_loss", "saturation", "acceptance", "stability", "trend"),
    *("distance", "radius", "norm", "eps", "nbeta", "gamma", "batch_size", "chains", "burn_in", "draws"),
)
BOUNDS = {"saturation": 0.3, "stability": 1.0, "acceptance": 0.1}  # beyond which a checkpoint is unhealthy
FIRST = 0.5  # where step 0 stands on a logarithmic axis
SHOWN = 3  # checkpoints whose traces are drawn
RUNNING = 20  # draws that a trace is averaged over, for the eye
CHAIN: dict[str, Any] = {"linewidth": 0.6, "alpha": 0.7}


def draw_llc(run: Path, settings: str) -> Path:
    """figs/llc.png of the rows with these settings: their name, as in the column `settings` of llc.csv."""
    table = read_csv(run / layout.LLC, ("step",), TEXT)
    own = table[table["settings"] == settings].sort_values("step")
    if own.empty:
        raise StoreError(f"{run / layout.LLC} has no rows of settings {settings}")
    return _dashboard(run, settings, own)


@style.styled
def _dashboard(run: Path, settings: str, table: pd.DataFrame) -> Path:
    figure, axes = style.new_figure(3, 3, width=3.1, height=2.1)
    panels: dict[str, Callable[[Axes, pd.DataFrame], None]] = {
        "LLC, 95 % interval over chains": _llc,
        "loss: L(w*), of the draws, of the null predictor": _losses,
        "saturation": _bounded("saturation"),
        "acceptance of a Metropolis step": _bounded("acceptance"),
        "eps (nbeta h_max + gamma)": _bounded("stability"),
        "|w - w*|, dashed |w*|, dotted sqrt(d / gamma)": _distances,
    }
    for panel, (title, draw) in zip(axes[:2].ravel(), panels.items(), strict=True):
        draw(panel, table)
        _over_training(panel, table)
        panel.set_title(title, fontsize=8)
    _traces(axes[2], run, settings, table)
    style.caption(figure, _caption(run, table))
    return style.save(figure, run / layout.LLC_FIGURE, run)


def _steps(table: pd.DataFrame) -> np.ndarray:
    return np.asarray(np.maximum(table["step"].to_numpy(float), FIRST))


def _over_training(panel: Axes, table: pd.DataFrame) -> None:
    if len(table) > 1:
        panel.set_xscale("log")
    panel.set_xlabel("training step")


def _points(panel: Axes, table: pd.DataFrame, name: str, colour: str = style.TRANSFORMER) -> None:
    """Healthy points filled and joined, the others hollow."""
    good = (table["health"] == HEALTHY).to_numpy()
    steps, values = _steps(table), table[name].to_numpy(float)
    panel.plot(steps[good], values[good], "o-", color=colour, markersize=3)
    panel.plot(steps[~good], values[~good], "o", color=colour, markersize=3.5, markerfacecolor="white")


def _llc(panel: Axes, table: pd.DataFrame) -> None:
    panel.vlines(_steps(table), table["llc_low"], table["llc_high"], color=style.TRANSFORMER, linewidth=0.9)
    _points(panel, table, "llc")
    panel.axhline(0, color=style.GREY, linewidth=0.6)


def _losses(panel: Axes, table: pd.DataFrame) -> None:
    panel.plot(_steps(table), table["loss"], color="black")
    _points(panel, table, "draw_loss")
    panel.plot(_steps(table), table["null_loss"], color=style.GREY, linestyle=":")


def _bounded(name: str) -> Callable[[Axes, pd.DataFrame], None]:
    def draw(panel: Axes, table: pd.DataFrame) -> None:
        _points(panel, table, name)
        panel.axhline(BOUNDS[name], color=style.OTHER, linestyle="--", linewidth=1)
        if name != "stability":
            panel.set_ylim(min(0.0, float(np.nanmin([0, *table[name]]))), None)

    return draw


def _distances(panel: Axes, table: pd.DataFrame) -> None:
    _points(panel, table, "distance")
    panel.plot(_steps(table), table["norm"], color="black", linestyle="--")
    if np.isfinite(table["radius"]).all():
        panel.plot(_steps(table), table["radius"], color=style.GREY, linestyle=":")
    panel.set_yscale("log")


def _traces(panels: np.ndarray, run: Path, settings: str, table: pd.DataFrame) -> None:
    """nbeta times the excess loss of each chain, a running mean, at the first, a middle and the last checkpoint."""
    steps = list(table["step"])
    chosen = dict.fromkeys(steps[round(place)] for place in np.linspace(0, len(steps) - 1, SHOWN))
    for panel, step in zip(panels, chosen, strict=False):
        row = table[table["step"] == step].iloc[0]
        excess = row["nbeta"] * _excess(run, settings, int(step))
        width = min(RUNNING, excess.shape[1])
        kernel = np.ones(width) / width
        for number, values in enumerate(excess):
            smooth = np.convolve(values, kernel, "valid")
            panel.plot(np.arange(len(smooth)) + width / 2, smooth, color=f"C{number}", **CHAIN)
        panel.axvspan(0, row["burn_in"], color=style.PALE, zorder=0)
        panel.set_title(f"step {int(step)}: {'' if row['health'] == HEALTHY else 'not '}healthy", fontsize=8)
        panel.set_xlabel("draw")
        panel.set_ylabel("nbeta x excess loss")
    for panel in panels[len(chosen) :]:
        panel.set_axis_off()


def _excess(run: Path, settings: str, step: int) -> np.ndarray:
    path = run / layout.LLC_TRACES / f"{settings}_step_{step:08d}.npz"
    return np.asarray(read_npz(path, ("excess",))["excess"], float)


def _caption(run: Path, table: pd.DataFrame) -> str:
    row: Mapping[str, Any] = table.iloc[-1].to_dict()
    unhealthy = int((table["health"] != HEALTHY).sum())
    settings = ", ".join(f"{name} {row[name]:g}" for name in ("eps", "nbeta", "gamma", "batch_size"))
    chains = f"{row['chains']:g} chains of {row['draws']:g} draws after {row['burn_in']:g}, {row['data']} tasks"
    return (
        f"{run.name}: {settings}; {chains}; hollow: {unhealthy} of {len(table)} checkpoints are not healthy; "
        f"traces: running means of {RUNNING} draws, burn-in shaded"
    )
