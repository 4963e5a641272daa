"""Heat maps of the captured attention, one for each layer and head: the mean over tasks.

python -m plots.attention_quick --run DIR --out DIR/figs
"""

from __future__ import annotations

from pathlib import Path

import cli
from plots import style
from store import layout
from store.readers import StoreError, read_json, read_npy
from store.rundir import read_config


def draw_attention(run: Path, out: Path) -> list[Path]:
    """attention_layer{L}_head{H}.png for every head captured; `StoreError` if nothing was."""
    config = read_config(run)
    if not (run / layout.ATTENTION_SUMMARY).exists():
        raise StoreError(f"{run} has no captured attention; run it again with --save_attention")
    summary = read_json(run / layout.ATTENTION_SUMMARY)
    try:
        parts = [(part["layer"], part["kind"], head["head"]) for part in summary["layers"] for head in part["heads"]]
        text = f"{config.name}, seed {config.data_seed}, mean over {summary['tasks']} tasks"
    except (KeyError, TypeError):
        raise StoreError(f"{run / layout.ATTENTION_SUMMARY} is not a summary of attention maps") from None
    return [_draw_head(run, out, *part, text) for part in parts]


@style.styled
def _draw_head(run: Path, out: Path, layer: int, kind: str, head: int, text: str) -> Path:
    mean = read_npy(layout.attention_head(run, layer, head))
    figure, axes = style.new_figure(width=3.8, height=3.4)
    panel = axes[0, 0]
    style.heat_map(panel, mean, f"{kind} attention, layer {layer}, head {head}", kind == "linear")
    panel.set_xlabel("context token")
    panel.set_ylabel("token that looks")
    style.caption(figure, text)
    return style.save(figure, out / f"attention_layer{layer}_head{head}.png")


def parser() -> cli.Parser:
    """The flags."""
    built = cli.Parser("plots.attention_quick", "Draws the captured attention maps of a run.")
    built.add_argument("--run", type=Path, required=True, help="run directory")
    built.add_argument("--out", type=Path, help="folder of the figures; figs in the run directory if not given")
    return built


def main(argv: list[str]) -> None:
    """The command line."""
    flags = parser().parse(argv)
    for path in draw_attention(flags.run, flags.out or flags.run / layout.FIGURES):
        print(path)


if __name__ == "__main__":
    cli.launch(main, StoreError)
