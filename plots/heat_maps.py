"""Matrices as colours: the trained weight products and gradient descent's, those of studies, numbers in cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from icl_lab.lab.configs.presets import title_of
from icl_lab.plots import style
from icl_lab.plots.mosaic import mosaic
from icl_lab.store import layout
from icl_lab.store.llc_rows import read_table, usable
from icl_lab.store.readers import check_arrays, expecting, read_csv, read_json, read_npz
from icl_lab.store.rundir import read_config

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHOWN = ("rescaled_kq", "rescaled_pv", "construction_kq", "construction_pv")
TRAINED = "kq"  # as trained, of which the maps of attention are
MOST_LARGE = 3  # rows of two large heat maps, which take .2 s each to draw; more are drawn small
MOST_SCALES = 6  # that a caption lists
MOST_NAMES = 24  # along a side of a matrix
TITLES = (r"$W_K^\top W_Q$", r"$P\,W_V$")


def heat_map(axes: Axes, matrix: np.ndarray, title: str, symmetric: bool = True, limit: float = 0.0) -> None:
    """A matrix as colours with its colour bar: symmetric limits, or from 0 up; the largest entry if none is given."""
    limit = limit or float(np.nanmax(np.abs(matrix))) or 1.0
    options: dict[str, Any] = {"cmap": "RdBu_r", "vmin": -limit, "vmax": limit}
    image = axes.imshow(matrix, **(options if symmetric else {"cmap": "viridis", "vmin": 0.0, "vmax": limit}))
    axes.set_title(title, fontsize=9)
    axes.grid(False)
    axes.locator_params(integer=True)
    axes.figure.colorbar(image, ax=axes, fraction=0.046, pad=0.03)


def name_places(axes: Axes, columns: Sequence[str], rows: Sequence[str]) -> None:
    """Names the columns and rows of a matrix: all of a few; of many every so many, and the last; of none no ticks."""
    axes.set_xticks(*_few(columns), fontsize=7, rotation=90)
    axes.set_yticks(*_few(rows), fontsize=7)


def _few(names: Sequence[str]) -> tuple[list[int], list[str]]:
    every = max(-(-len(names) // MOST_NAMES), 1)
    places = [*range(0, len(names) - every, every), len(names) - 1] if every > 1 else [*range(len(names))]
    return places, [names[place] for place in places]


def channel_names(dim: int, width: int, own_label: bool = True) -> list[str]:
    """A name for each channel of a token: inputs, the label if it has one of its own, the positional encoding."""
    inputs = [*(f"x{i}" for i in range(1, dim + 1)), *["y"] * own_label]
    return [*inputs, *(f"p{i}" for i in range(1, width - len(inputs) + 1))]


def numbered(
    panel: Axes, values: np.ndarray, texts: Sequence[Sequence[str]], size: float, **colours: Any
) -> np.ndarray:
    """A matrix as colours with a text of this size in each cell; nan is white.

    Gives the colour of each text, by row and column: white on what is dark, else black.
    """
    image = panel.imshow(np.ma.masked_invalid(values), **colours)
    inks = np.empty(values.shape, object)
    for (row, column), value in np.ndenumerate(values):
        red, green, blue, _ = image.cmap(image.norm(value)) if np.isfinite(value) else (1, 1, 1, 1)
        ink = "white" if 0.299 * red + 0.587 * green + 0.114 * blue < 0.55 else "black"
        panel.text(column, row, texts[row][column], ha="center", va="center", fontsize=size, color=ink)
        inks[row, column] = ink
    panel.grid(False)
    panel.tick_params(length=0)
    return inks


@style.styled
def draw_weights(run: Path) -> Path:
    """weights.png: a row for each layer and head, and one for the construction where there is one."""
    config: Any = read_config(run)
    arrays = _read_products(run / layout.WEIGHTS, config)
    rows: list[tuple[str, np.ndarray, np.ndarray]] = [
        (f"trained, layer {layer}" + (f", head {head}" if config.model.num_heads > 1 else ""), *matrices)
        for layer, of_layer in enumerate(zip(arrays["rescaled_kq"], arrays["rescaled_pv"], strict=True))
        for head, matrices in enumerate(zip(*of_layer, strict=True))
    ]
    if arrays["construction_kq"].size:
        rows.append(("gradient descent", arrays["construction_kq"][0, 0], arrays["construction_pv"][0, 0]))
    dim, own_label = config.architecture.dim, config.architecture.layout.own_label_channel
    names = channel_names(dim, config.architecture.token_width, own_label)
    label = "y: the label" if own_label else f"x{dim} the label too"
    coded = ", p1 on: the positional encoding" * (config.architecture.pos_enc_size > 0)
    channels = f"channels x1 to x{dim}: inputs, {label}{coded}"
    text = "; ".join([f"{title_of(config)}, seed {config.data_seed}; {channels}", *_scales(config, arrays)])
    figure = _figure(rows, text, names) if len(rows) <= MOST_LARGE else mosaic(_short(rows), TITLES, text)
    return style.save(figure, layout.figure(run, "weights"), run)


def _short(rows: Sequence[tuple[str, np.ndarray, np.ndarray]]) -> list[tuple[str, np.ndarray, np.ndarray]]:
    """The rows with names that fit above a small matrix."""
    return [(name.removeprefix("trained, ").replace("gradient ", "gradient\n"), kq, pv) for name, kq, pv in rows]


def _scales(config: Any, arrays: Mapping[str, np.ndarray]) -> list[str]:
    """What a caption says of beta, which the left products were divided and the right ones multiplied by."""
    linear = [layer for layer in range(len(config.model.layer_names)) if config.model.kind(layer) == "linear"]
    betas = [
        float(np.sum(kq * scaled) / np.sum(scaled**2)) if scaled.any() else 1.0
        for layer in linear
        for kq, scaled in zip(arrays[TRAINED][layer], arrays["rescaled_kq"][layer], strict=True)
    ]
    if not betas:
        return []
    shown = ", ".join(f"{beta:.3g}" for beta in betas[:MOST_SCALES]) + ", ..." * (len(betas) > MOST_SCALES)
    return [
        "linear layers: left divided and right multiplied by beta, the mean of the left's input diagonal as trained "
        f"(which attention maps are of): {shown}"
    ]


@style.styled
def draw_products(source: Path, text: str, to: Path | None = None, dim: int = 0) -> list[Path]:
    """Draws a table of row, matrix (0 for W_K^T W_Q, 1 for P W_V), i, j, value next to it, as .png and .pdf.

    dim: how many of the channels are inputs, if they are to be named.
    """
    table = read_csv(source, ("matrix", "i", "j", "value"), ("row",))
    with expecting(source, "a table of matrices"):
        rows = [
            (
                str(name),
                *(part.pivot(index="i", columns="j", values="value").to_numpy() for _, part in of.groupby("matrix")),
            )
            for name, of in table.groupby("row", sort=False)
        ]
        names = channel_names(dim, len(rows[0][1])) if dim else None
        return style.save_both(_figure(rows, text, names), to or source)


@style.styled
def draw_matrix(source: Path, text: str, to: Path | None = None) -> list[Path]:
    """Draws a table of i, j, value, limit next to it, as .png and .pdf: one matrix, its colours up to the limit."""
    table = read_csv(source, ("i", "j", "value", "limit"))
    figure, axes = style.new_figure(width=3.6, height=3.2)
    with expecting(source, "a table of a matrix"):
        matrix = table.pivot(index="i", columns="j", values="value").to_numpy()
        heat_map(axes[0, 0], matrix, "", limit=float(table["limit"].iloc[0]))
    axes[0, 0].set(xlabel="channel", ylabel="channel")
    style.caption(figure, text)
    return style.save_both(figure, to or source)


def _figure(rows: Sequence[tuple[Any, ...]], text: str, names: Sequence[str] | None = None) -> Figure:
    """A row of two heat maps for each name and its two matrices, with the names of channels."""
    figure, axes = style.new_figure(len(rows), 2, width=3.2, height=2.6)  # as wide as the layout needs for squares
    for number, (panels, (name, *matrices)) in enumerate(zip(axes, rows, strict=True)):
        for panel, title, matrix in zip(panels, TITLES, matrices, strict=True):
            heat_map(panel, matrix, f"{title}, {name}")
            if names is None:
                panel.set(xlabel="channel", ylabel="channel")
            else:  # below the last and beside the first, as all have the same
                name_places(panel, names if number == len(rows) - 1 else (), names if panel is panels[0] else ())
    style.caption(figure, text)
    return figure


def _read_products(path: Path, config: Any) -> dict[str, np.ndarray]:
    """The products that are shown; the construction's may be empty."""
    arrays = read_npz(path, (TRAINED, *SHOWN))
    width = config.architecture.token_width
    shape: tuple[int, ...] = (len(config.model.layer_names), config.model.num_heads, width, width)
    shapes = dict.fromkeys((TRAINED, *SHOWN), shape)
    if arrays["construction_kq"].size == 0:
        shapes |= {"construction_kq": (0,), "construction_pv": (0,)}
    check_arrays(path, arrays, shapes, dict.fromkeys(shapes, "float64"))
    return arrays


# measure -> its title and colours; a range of None is the data's
MEASURES: dict[str, tuple[str, dict[str, Any]]] = {
    "llc": ("LLC", {"cmap": "viridis"}),
    "saturation": ("saturation", {"cmap": "viridis", "vmin": 0.0, "vmax": 1.0}),
    "trend": ("trend (SE)", {"cmap": "PuOr", "vmin": -6.0, "vmax": 6.0}),
    "acceptance": ("acceptance", {"cmap": "viridis", "vmin": 0.0, "vmax": 1.0}),
}
NUMBERS = ("step", "eps", "nbeta", "gamma", *MEASURES)
CELL, ROW = 0.52, 0.3  # inches of a cell


def draw_calibration(run: Path) -> Path:
    """figs/llc_calibration.png, from llc_calibration.csv and .json."""
    table = read_table(run / layout.LLC_CALIBRATION, NUMBERS)
    with expecting(run / layout.LLC_ADVICE, "the advice of a calibration"):
        return _draw_calibration(run, table, read_json(run / layout.LLC_ADVICE).get("cell"))


@style.styled
def _draw_calibration(run: Path, table: pd.DataFrame, advised: Mapping[str, float] | None) -> Path:
    steps = sorted(table["step"].unique())
    pairs = list(dict.fromkeys(zip(table["nbeta"], table["gamma"], strict=True)))
    sizes = int(table.groupby(["step", "nbeta", "gamma"])["eps"].nunique().max())
    height = ROW * len(pairs) + 0.55
    figure, axes = style.new_figure(
        len(MEASURES), len(steps), width=CELL * sizes + 1.6 / len(steps) + 0.3, height=height
    )
    for row, (name, (title, colours)) in zip(axes, MEASURES.items(), strict=True):
        finite = table[name][np.isfinite(table[name])]
        limits = {"vmin": finite.min(), "vmax": finite.max()} if len(finite) else {}
        for panel, step in zip(row, steps, strict=True):
            cells = table[table["step"] == step]
            _draw_settings(panel, cells, name, pairs, limits | colours)
            _outline(panel, cells, pairs, advised)
            panel.set_title(f"{title}, step {int(step)}", fontsize=8)
            if panel is row[0]:
                panel.set_yticks(range(len(pairs)), [_label(cells, nbeta, gamma) for nbeta, gamma in pairs])
    style.caption(
        figure,
        f"{run.name}; columns: step sizes eps from the smallest; a stroke: not usable; blank: no number; "
        f"{'the frame: recommended' if advised else 'no cell is recommended'}",
    )
    return style.save(figure, run / layout.LLC_CALIBRATION_FIGURE, run)


def _label(table: pd.DataFrame, nbeta: float, gamma: float) -> str:
    """A row of cells: nbeta and gamma, and the step sizes of its columns."""
    sizes = table[(table["nbeta"] == nbeta) & (table["gamma"] == gamma)]["eps"].sort_values()
    return f"nbeta {nbeta:.4g}, gamma {gamma:.4g}\neps {', '.join(f'{size:.1e}' for size in sizes)}"


def _outline(panel: Axes, table: pd.DataFrame, pairs: list[Any], advised: Mapping[str, float] | None) -> None:
    """A frame around the recommended cell."""
    if advised is None:
        return
    pair = advised["nbeta"], advised["gamma"]
    sizes = sorted(table[(table["nbeta"] == pair[0]) & (table["gamma"] == pair[1])]["eps"])
    left, bottom = sizes.index(advised["eps"]) - 0.5, pairs.index(pair) - 0.5
    panel.plot(
        [left, left + 1, left + 1, left, left],
        [bottom, bottom, bottom + 1, bottom + 1, bottom],
        color="red",
        linewidth=2,
        clip_on=False,
    )


def _draw_settings(panel: Axes, table: pd.DataFrame, name: str, pairs: list[Any], colours: dict[str, Any]) -> None:
    """A row for each (nbeta, gamma), in it the step sizes from the smallest, with their numbers."""
    groups = [table[(table["nbeta"] == nbeta) & (table["gamma"] == gamma)].sort_values("eps") for nbeta, gamma in pairs]
    values = np.full((len(groups), max(map(len, groups))), np.nan)  # a row may lack cells, whose chains are too short
    for row, group in enumerate(groups):
        values[row, : len(group)] = group[name]
    texts = [[f"{value:.3g}" if np.isfinite(value) else "" for value in row] for row in values]
    inks = numbered(panel, values, texts, 6, aspect="auto", **colours)
    for row, group in enumerate(groups):
        for column in np.flatnonzero(~usable(group)):
            panel.plot([column - 0.47, column - 0.33], [row + 0.4, row - 0.4], color=inks[row, column], linewidth=1.2)
    panel.set_xticks(range(values.shape[1]), [""] * values.shape[1])
    panel.set_yticks([])
    panel.tick_params(labelsize=6)
