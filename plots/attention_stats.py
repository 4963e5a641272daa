"""The AUROC of every score of a run's attention, with intervals, beside gradient descent's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from plots import style
from store import layout
from store.readers import read_json
from store.rundir import read_config


@style.styled
def draw_attention_stats(run: Path) -> Path:
    """attention_stats.png: position-matched AUROC of each score with its interval; gradient descent in green."""
    config, stats = read_config(run), read_json(run / layout.ATTENTION_STATS)
    rows: list[tuple[str, dict[str, Any], str]] = [("influence, model", stats["influence"], style.TRANSFORMER)]
    for layer in stats["layers"]:
        for head in layer["heads"]:
            where = f"{layer['kind']} layer {layer['layer']}, head {head['head']}"
            rows += [(f"{name}, {where}", values, style.TRANSFORMER) for name, values in head["scores"].items()]
    rows += [(f"{name}, gradient descent", values, style.DESCENT) for name, values in stats["gd"].items()]
    figure, axes = style.new_figure(width=5.2, height=0.8 + 0.24 * len(rows))
    panel = axes[0, 0]
    for place, (_, values, colour) in enumerate(rows):
        if values["auroc"] is not None:
            low, high = values["auroc_interval"]
            panel.plot([low, high], [place, place], color=colour)
            panel.plot(values["auroc"], place, "o", color=colour, markersize=4)
    panel.axvline(0.5, color=style.GREY, linewidth=0.8)
    panel.set_yticks(range(len(rows)), [name for name, _, _ in rows])
    panel.set_ylim(len(rows) - 0.5, -0.5)
    panel.set_xlabel("AUROC (clean > noisy)")
    noise = f"{stats['noise_mode']}, p = {stats['noise_p']:g}, {stats['placement']}"
    style.caption(figure, f"{config.name}, seed {config.data_seed}; {noise}; {stats['tasks']} contexts, 95 % intervals")
    return style.save(figure, run / layout.ATTENTION_STATS_FIGURE)
