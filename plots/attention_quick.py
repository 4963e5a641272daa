"""Heat maps of the captured attention, one for each layer and head: the mean over tasks.

python -m plots.attention_quick --run DIR --out DIR/figs
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from icl_lab.lab import cli
from icl_lab.plots import style
from icl_lab.plots.heat_maps import heat_map
from icl_lab.src.words import printable
from icl_lab.store import layout
from icl_lab.store.lock import refuse_links
from icl_lab.store.manifest import adopt
from icl_lab.store.outputs import in_path, out_folder
from icl_lab.store.readers import StoreError, check_arrays, expecting, is_count, read_json, read_npy
from icl_lab.store.rundir import read_config

# kind of attention -> what its maps hold
SCORES = {
    "linear": "raw scores e_j^T W_K^T W_Q e_i; their sign and scale are free, as P W_V makes up for them, "
    "and weights.png divides them out",
    "softmax": "softmax over the context of e_j^T W_K^T W_Q e_i / sqrt(key size)",
}
PLUGIN = "the weights that a plugin makes of the scores"


def draw_attention(run: Path, out: Path) -> list[Path]:
    """attention_layer{L}_head{H}.png for every head captured; `StoreError` if nothing was."""
    config: Any = read_config(run)
    if not (run / layout.ATTENTION_SUMMARY).exists():
        raise StoreError(f"{run} has no captured attention; run it again with --save_attention")
    heads, tasks = _captured(run, config)
    means = [_read_mean(run, config, *place) for place in heads]
    text = f"{config.name}, seed {config.data_seed}, mean over {tasks} tasks"
    kinds = [config.model.kind(layer) for layer, _ in heads]
    return [
        _draw_head(run, mean, out / layout.head_figure(*place), *place, kind, f"{text}; {SCORES.get(kind, PLUGIN)}")
        for mean, place, kind in zip(means, heads, kinds, strict=True)
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


def _read_mean(run: Path, config: Any, layer: int, head: int) -> np.ndarray:
    path = layout.attention_head(run, layer, head)
    mean, rows = read_npy(path), config.architecture.num_rows
    check_arrays(path, {"the mean map": mean}, {"the mean map": (rows, rows - 1)})
    return mean


@style.styled
def _draw_head(run: Path, mean: np.ndarray, path: Path, layer: int, head: int, kind: str, text: str) -> Path:
    figure, axes = style.new_figure(width=3.8, height=3.4)
    panel = axes[0, 0]
    heat_map(panel, mean, f"{kind} attention, layer {layer}, head {head}", kind != "softmax")
    panel.set_xlabel("context token")
    panel.set_ylabel("token that looks")
    style.caption(figure, text)
    return style.save(figure, path, run)


def parser() -> cli.Parser:
    """The flags."""
    built = cli.Parser("plots.attention_quick", "Draws the captured attention maps of a run.")
    built.add_argument("--run", type=in_path, required=True, help="run directory")
    built.add_argument("--out", type=out_folder, help="folder of the figures; figs in the run directory if not given")
    return built


def main(argv: list[str]) -> None:
    """The command line."""
    flags = parser().parse(argv)
    refuse_links(flags.run)
    adopt(flags.run)
    for path in draw_attention(flags.run, flags.out or flags.run / layout.FIGURES):
        print(printable(path))


if __name__ == "__main__":
    cli.launch(main)
