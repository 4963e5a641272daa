"""Distances to the algorithms, of a run or as means over seeds: matrices of all pairs, and over training."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from icl_lab.lab.configs.presets import title_of
from icl_lab.plots import heat_maps, style
from icl_lab.store import layout
from icl_lab.store.readers import StoreError, expecting, read_csv
from icl_lab.store.rundir import read_config

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FINAL, TF = "final", "tf"
LABELS = {
    TF: "transformer",
    "gd": "GD, one step size",
    "gd_own_steps": "GD, per-step sizes",
    "gd_plus_plus_paper": "GD++, the paper's",
    "gd_plus_plus": "GD++, best",
    "gd_plus_plus_own_rates": "GD++, per-step rates",
    "conjugate_gradients": "conjugate gradients",
    "momentum": "momentum",
    "chebyshev": "Chebyshev",
    "newton_schulz": "Newton-Schulz",
    "newton_schulz_identity": "Newton-Schulz from I",
}
# measure -> its title, how a value is written, and its colours
MEASURES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "cosine": ("cosine of sensitivities", ".3f", {"cmap": "viridis", "vmax": 1.0}),
    "difference": ("mean |prediction difference|", ".2f", {"cmap": "viridis_r", "vmin": 0.0}),
    "loss_ratio": ("loss of the row / loss of the column", ".3g", {"cmap": "RdBu_r", "vmin": -1.0, "vmax": 1.0}),
}
OVER: dict[str, Any] = {"linestyle": (0, (3, 2)), "linewidth": 1.2, "zorder": 3}
# Okabe and Ito's colours; two algorithms that often coincide are a solid line and a dashed one over it
LOOKS: dict[str, dict[str, Any]] = {
    "gd": {"color": style.DESCENT, "linewidth": 2.4},
    "gd_own_steps": {"color": "#000000", **OVER},
    "gd_plus_plus": {"color": "#E69F00", "linewidth": 2.4},
    "gd_plus_plus_paper": {"color": "#882255", **OVER},
    "gd_plus_plus_own_rates": {"color": "#D55E00", "linestyle": "-."},
    "conjugate_gradients": {"color": "#0072B2"},
    "momentum": {"color": "#CC79A7"},
    "chebyshev": {"color": "#CC79A7", "linestyle": "--"},
    "newton_schulz": {"color": "#56B4E9", "linestyle": "-."},
    "newton_schulz_identity": {"color": "#56B4E9", "linestyle": ":"},
    "ridge": {"color": style.GREY, "linestyle": ":"},
}
CELL = 0.43  # inches
MEANS = ("mean", "low", "high", "seeds")
NARROWEST = 4.0  # inches: a caption of one line has room
LABELLED = 1.9  # inches for the names of the rows
OF_CELLS = "-: not defined; ratios are coloured between .1 and 10"
NEAREST = 1e-4  # 1 - cosine: nearer is drawn there
# decades of a logarithmic axis, at most: the multiples of powers of ten that have ticks
TICKS: dict[float, tuple[float, ...]] = {0.7: (1, 1.5, 2, 3, 5, 7), 2.0: (1, 2, 5), np.inf: (1,)}
COSINES = (0.0, 0.5, 0.9, 0.95, 0.99, 0.995, 0.999)


def draw_algorithm_distance(run: Path) -> list[Path]:
    """algorithm_distance.png and, of a table with snapshots, algorithms_over_training.png."""
    path = run / layout.ALGORITHM_DISTANCE
    table = read_csv(path, ("value", "value_se"), ("step", "row", "column", "measure", "reason"))
    with expecting(path, "the algorithm distances of a run"):
        drawn = [_draw_matrix(run, table[table["step"] == FINAL])]
        snapshots = table[(table["step"] != FINAL) & (table["column"] != "")].dropna(subset=["value"])
        return drawn if snapshots.empty else [*drawn, _draw_training(run, snapshots)]


@style.styled
def _draw_matrix(run: Path, table: pd.DataFrame) -> Path:
    figure = _matrices(table[table["column"] != ""].rename(columns={"value": "mean"}), _of(run))
    return style.save(figure, layout.figure(run, "algorithm_distance"), run)


def _measures_in(table: pd.DataFrame) -> list[str]:
    """The measures that a table has, in the order of `MEASURES`: a panel each."""
    return [measure for measure in MEASURES if (table["measure"] == measure).any()]


def _draw_map(panel: Axes, values: np.ndarray, measure: str) -> None:
    """A matrix with its numbers; ratios are coloured by their logarithm."""
    title, digits, colours = MEASURES[measure]
    with np.errstate(divide="ignore"):
        shown = np.log10(values) if measure == "loss_ratio" else values
    texts = [[_number(value, digits) if np.isfinite(value) else "-" for value in row] for row in values]
    heat_maps.numbered(panel, np.where(np.isfinite(values), np.clip(shown, -1e3, 1e3), np.nan), texts, 6.5, **colours)
    panel.set_title(title, fontsize=9)
    panel.tick_params(labelsize=7.5)


def _number(value: float, digits: str) -> str:
    """A value without its leading zero; values that round to 0 as a bound."""
    if 0 < value < 1e-3:
        return "<.001"
    text = format(value, digits if abs(value) < 1000 else ".1e").replace("e+0", "e")
    return text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text


@style.styled
def _draw_training(run: Path, table: pd.DataFrame) -> Path:
    figure = _training_figure(table.rename(columns={"column": "algorithm", "value": "mean"}).astype({"step": int}))
    style.caption(figure, _of(run))
    return style.save(figure, layout.figure(run, "algorithms_over_training"), run)


def _training_figure(table: pd.DataFrame) -> Figure:
    """A panel a measure over training, of columns algorithm, step, measure and mean, and of intervals low and high.

    The scale of cosines is logarithmic in 1 - cosine, so that all near 1 can be told apart.
    """
    measures = _measures_in(table)
    figure, axes = style.new_figure(len(measures), width=6.4, height=2.9, sharex=True)
    others = style.in_order(name for name in table["algorithm"] if name not in LOOKS)
    looks = {name: {"linewidth": 1, "color": colour} for name, colour in others.items()} | LOOKS
    for panel, measure in zip(axes[:, 0], measures, strict=True):
        rows = table[table["measure"] == measure]
        for name in dict.fromkeys(rows["algorithm"]):
            _draw_curve(panel, rows[rows["algorithm"] == name].sort_values("step"), name, measure, looks[name])
        _set_scale(panel, rows, measure)
    axes[-1, 0].set_xlabel("training step")
    style.legend_above(figure)
    return figure


def _draw_curve(panel: Axes, rows: pd.DataFrame, name: str, measure: str, look: Mapping[str, Any]) -> None:
    """A mean and its interval, if it has one; cosines as 1 - cosine."""
    shown = {
        column: np.maximum(1 - rows[column], NEAREST) if measure == "cosine" else rows[column]
        for column in ("mean", "low", "high")
        if column in rows
    }
    (line,) = panel.plot(rows["step"], shown["mean"], label=LABELS.get(name, style.plain(name)), **look)
    if "low" in shown:
        panel.fill_between(rows["step"], shown["low"], shown["high"], color=line.get_color(), alpha=0.15, linewidth=0)


def _set_scale(panel: Axes, rows: pd.DataFrame, measure: str) -> None:
    """Logarithmic; of 1 - cosine with 1 at the top and cosines at its ticks."""
    panel.set_yscale("log")
    panel.set_ylabel("loss / algorithm's loss" if measure == "loss_ratio" else MEASURES[measure][0])
    if measure == "cosine":
        panel.set_yticks([1 - cosine for cosine in COSINES], [f"{cosine:g}" for cosine in COSINES])
        panel.minorticks_off()
        panel.invert_yaxis()
    elif (rows["mean"] > 0).any():
        shown = rows[rows["mean"] > 0]
        low, high = style.log_limits(shown if "low" in shown else shown.assign(low=shown["mean"], high=shown["mean"]))
        panel.set_ylim(low, high)
        style.few_ticks(panel.yaxis, next(subs for decades, subs in TICKS.items() if high < low * 10**decades))


def _of(run: Path) -> str:
    config = read_config(run)
    layers = f"{config.model.num_layers} layer{'s' if config.model.num_layers > 1 else ''}"
    return f"{title_of(config)}, {layers}, seed {config.data_seed}, {config.test_tasks} test tasks, one run"


@style.styled
def draw_matrices(source: Path, title: str, to: Path | None = None, level: float = style.EARLIER_LEVEL) -> list[Path]:
    """Draws a table of row, column, measure, mean, low, high, seeds next to it, as .png and .pdf: a panel a measure."""
    table = _read(source, ("row", "column"))
    if table.duplicated(["row", "column", "measure"]).any():
        raise StoreError(f"{source} has a row and column twice")
    with expecting(source, "a table of distances"):
        return style.save_both(_matrices(table, f"{title}; {_seeds(table)}"), to or source)


def _read(source: Path, names: tuple[str, ...], numbers: tuple[str, ...] = ()) -> pd.DataFrame:
    """The table; one that an earlier version wrote, without a measure, is of cosines."""
    table = read_csv(source, (*numbers, *MEANS), names)
    return table if "measure" in table else table.assign(measure="cosine")


def _matrices(table: pd.DataFrame, text: str) -> Figure:
    """A heat map for each measure, with its numbers, one below another."""
    measures, names = _measures_in(table), list(dict.fromkeys(table["row"]))
    size = CELL * len(names)
    figure, axes = style.new_figure(
        len(measures), width=max(size + LABELLED, NARROWEST), height=size + 0.5, sharex=True
    )
    labels = [style.plain(LABELS.get(name, name)) for name in names]
    for panel, measure in zip(axes[:, 0], measures, strict=True):
        rows = table[table["measure"] == measure]
        values = rows.pivot(index="row", columns="column", values="mean").reindex(index=names, columns=names)
        _draw_map(panel, values.to_numpy(float), measure)
        panel.set_yticks(range(len(names)), labels)
    panel.set_xticks(range(len(names)), labels, rotation=40, ha="right", rotation_mode="anchor")
    style.caption(figure, f"{text}; {OF_CELLS}")
    return figure


@style.styled
def draw_over_training(
    source: Path, title: str, to: Path | None = None, level: float = style.EARLIER_LEVEL
) -> list[Path]:
    """Draws a table of algorithm, step, measure, mean, low, high, seeds next to it: the transformer over training."""
    table = _read(source, ("algorithm",), ("step",))
    with expecting(source, "a table of distances over training"):
        figure = _training_figure(table)
        style.caption(figure, f"{title}; {_seeds(table)}, {100 * level:g} % intervals")
        return style.save_both(figure, to or source)


def _seeds(table: pd.DataFrame) -> str:
    """Of how many seeds the means are, in words."""
    fewest, most = int(table["seeds"].min()), int(table["seeds"].max())
    if most == 1:
        return "one seed"
    return f"means over {most if fewest == most else f'{fewest} to {most}'} seeds"
