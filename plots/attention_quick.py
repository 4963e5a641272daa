"""Draws the attention of a run, a figure for each head: of one context, and how large on average.

python -m plots.attention_quick --run DIR --out DIR/figs

The run must have been trained with --save_attention.

The mean of signed scores over contexts would hide the query's row: a score of two independent inputs has mean 0.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from icl_lab.lab import cli
from icl_lab.lab.configs.presets import title_of
from icl_lab.lab.flag_types import Whole
from icl_lab.plots import style
from icl_lab.plots.heat_maps import heat_map, name_places
from icl_lab.src.checks import require
from icl_lab.src.words import printable
from icl_lab.store import layout
from icl_lab.store.lock import refuse_links
from icl_lab.store.manifest import adopt
from icl_lab.store.outputs import in_path, out_folder
from icl_lab.store.readers import StoreError, check_arrays, expecting, is_count, read_json, read_npz
from icl_lab.store.rundir import read_config

# kind of attention -> what its maps hold
SCORES = {
    "linear": "raw scores e_j^T W_K^T W_Q e_i; their sign and scale are free, as P W_V makes up for them, "
    "and weights.png divides them out",
    "softmax": "softmax over the context of e_j^T W_K^T W_Q e_i / sqrt(key size)",
}
PLUGIN = "the weights that a plugin makes of the scores"


def draw_attention(run: Path, out: Path, task: int = 0) -> list[Path]:
    """attention_layer{L}_head{H}.png for every head captured, with its map in a context; `StoreError` without any."""
    config: Any = read_config(run)
    if not (run / layout.ATTENTION_SUMMARY).exists():
        raise StoreError(f"{run} has no captured attention; run it again with --save_attention")
    heads, tasks = _captured(run, config)
    require(task < tasks, f"task is {task}; {run} has the attention of {tasks} contexts, from 0 on")
    layers = {layer: _read_maps(run, config, layer, tasks) for layer in dict.fromkeys(layer for layer, _ in heads)}
    return [
        _draw_head(run, layers[layer][:, head], out / layout.head_figure(layer, head), (layer, head), config, task)
        for layer, head in heads
    ]


def _captured(run: Path, config: Any) -> tuple[list[tuple[int, int]], int]:
    """The (layer, head) of each captured map, and of how many tasks. They become file names, so they are checked."""
    path = run / layout.ATTENTION_SUMMARY
    summary = read_json(path)
    with expecting(path, "a summary of attention maps"):
        heads = [(part["layer"], head["head"]) for part in summary["layers"] for head in part["heads"]]
        tasks = summary["tasks"]
    sizes = (config.model.num_layers, config.model.num_heads)
    known = all(
        is_count(number) and number < size for place in heads for number, size in zip(place, sizes, strict=True)
    )
    if not (known and is_count(tasks) and len(set(heads)) == len(heads)):
        raise StoreError(f"{path} names layers, heads or tasks that are none of this run's")
    return heads, tasks


def _read_maps(run: Path, config: Any, layer: int, tasks: int) -> np.ndarray:
    """The maps [B, H, R, C] of a layer."""
    path, rows = layout.attention_layer(run, layer), config.architecture.num_rows
    arrays = read_npz(path, ("data",))
    check_arrays(path, arrays, {"data": (tasks, config.model.num_heads, rows, rows - 1)})
    return arrays["data"]


@style.styled
def _draw_head(run: Path, maps: np.ndarray, path: Path, place: tuple[int, int], config: Any, task: int) -> Path:
    """One head's maps [B, R, C]: that of a context, and the mean size over all."""
    kind, names = config.model.kind(place[0]), token_names(config)
    figure, axes = style.new_figure(1, 2, width=3.5, height=3.3)
    shown = {
        f"context {task}": (maps[task], kind != "softmax"),
        f"mean {'size' if kind != 'softmax' else 'weight'} in {len(maps)} contexts": (np.abs(maps).mean(axis=0), False),
    }
    for panel, (title, (matrix, signed)) in zip(axes[0], shown.items(), strict=True):
        heat_map(panel, matrix, title, signed)
        name_places(panel, names[:-1], names if panel is axes[0, 0] else ())
        panel.set_xlabel("context token")
    axes[0, 0].set_ylabel("token that looks")
    said = f"{title_of(config)}, seed {config.data_seed}; {kind} attention, layer {place[0]}, head {place[1]}"
    style.caption(figure, f"{said}; {SCORES.get(kind, PLUGIN)}")
    return style.save(figure, path, run)


def token_names(config: Any) -> list[str]:
    """A name for each row: pairs by their number, interleaved inputs and labels apart, and the query."""
    pairs = range(1, config.data.num_pairs + 1)
    if config.model.interleaved:
        return [f"{part}{pair}" for pair in pairs for part in "xy"] + ["query"]
    return [*map(str, pairs), "query"]


def parser() -> cli.Parser:
    """The flags."""
    built = cli.Parser("plots.attention_quick", "Draws the attention maps of a run trained with --save_attention.")
    built.add_argument("--run", type=in_path, required=True, help="directory of a run trained with --save_attention")
    built.add_argument("--task", type=Whole(0), default=0, help="context that is shown, from 0 on (default: 0)")
    built.add_argument("--out", type=out_folder, help="folder of the figures; figs in the run directory if not given")
    return built


def main(argv: list[str]) -> None:
    """The command line."""
    flags = parser().parse(argv)
    refuse_links(flags.run)
    adopt(flags.run)
    for path in draw_attention(flags.run, flags.out or flags.run / layout.FIGURES, flags.task):
        print(printable(path))


if __name__ == "__main__":
    cli.launch(main)
