"""The trained weight products beside the construction of gradient descent."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from plots import style
from src.config import RunConfig
from store import layout
from store.readers import check_arrays, read_npz
from store.rundir import read_config

SHOWN = ("rescaled_kq", "rescaled_pv", "construction_kq", "construction_pv")
TITLES = (r"$W_K^\top W_Q$", r"$P\,W_V$")


@style.styled
def draw_weights(run: Path) -> Path:
    """weights.png: a row for each layer and head, and one for the construction where there is one."""
    config = read_config(run)
    arrays = _read_products(run / layout.WEIGHTS, config)
    rows: list[tuple[str, np.ndarray, np.ndarray]] = [
        (f"trained, layer {layer}" + (f", head {head}" if config.model.num_heads > 1 else ""), *matrices)
        for layer, of_layer in enumerate(zip(arrays["rescaled_kq"], arrays["rescaled_pv"], strict=True))
        for head, matrices in enumerate(zip(*of_layer, strict=True))
    ]
    if arrays["construction_kq"].size:
        rows.append(("gradient descent", arrays["construction_kq"][0, 0], arrays["construction_pv"][0, 0]))
    figure, axes = style.new_figure(len(rows), 2, width=3.2, height=2.8)
    for panels, (name, *matrices) in zip(axes, rows, strict=True):
        for panel, title, matrix in zip(panels, TITLES, matrices, strict=True):
            style.heat_map(panel, matrix, f"{title}, {name}")
            panel.set_xlabel("channel")
            panel.set_ylabel("channel")
    channels = f"channels: {config.data.dim} inputs, the label" + ", the code" * (config.model.pos_enc_size > 0)
    scale = "linear layers scaled so that the left's input diagonal has mean 1"
    style.caption(figure, f"{config.name}, seed {config.data_seed}; {channels}; {scale}")
    return style.save(figure, layout.figure(run, "weights"))


def _read_products(path: Path, config: RunConfig) -> dict[str, np.ndarray]:
    """The products that are shown; the construction's may be empty."""
    arrays = read_npz(path, SHOWN)
    width = config.token_width
    shapes = dict.fromkeys(SHOWN, (len(config.model.layer_names), config.model.num_heads, width, width))
    if arrays["construction_kq"].size == 0:
        shapes |= {"construction_kq": (0,), "construction_pv": (0,)}
    check_arrays(path, arrays, shapes, "float64")
    return arrays
