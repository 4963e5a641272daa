"""The AUROC of every score of a run's attention, with intervals, gradient descent's, and what detectors reach."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from icl_lab.plots import style
from icl_lab.store import layout
from icl_lab.store.readers import expecting, read_json
from icl_lab.store.rundir import read_config

Row = tuple[str, list[float] | None, str]  # its name, (low, AUROC, high) if there is one, its colour


@style.styled
def draw_attention_stats(run: Path) -> Path:
    """attention_stats.png: position-matched AUROC of each score with its interval; gradient descent in green.

    Detectors are left out of runs that an earlier version measured.
    """
    config, path = read_config(run), run / layout.ATTENTION_STATS
    stats = read_json(path)
    with expecting(path, "the attention statistics of a run"):
        rows = _rows(stats)
        noise = f"{stats['noise_mode']}, p = {stats['noise_p']:g}, {stats['placement']}"
        text = f"{config.name}, seed {config.data_seed}; {noise}; {stats['tasks']} contexts, 95 % intervals"
    figure, axes = style.new_figure(width=5.2, height=0.8 + 0.24 * len(rows))
    panel = axes[0, 0]
    for place, (_, numbers, colour) in enumerate(rows):
        if numbers is not None:
            low, auroc, high = numbers
            panel.plot([low, high], [place, place], color=colour)
            panel.plot(auroc, place, "o", color=colour, markersize=4, clip_on=False)
    panel.set_xlim(np.clip(panel.get_xlim(), 0, 1))
    panel.axvline(0.5, color=style.GREY, linewidth=0.8)
    panel.set_yticks(range(len(rows)), [style.plain(name) for name, _, _ in rows])
    panel.set_ylim(len(rows) - 0.5, -0.5)
    panel.set_xlabel("AUROC (clean > noisy)")
    style.caption(figure, text)
    return style.save(figure, run / layout.ATTENTION_STATS_FIGURE, run)


def _rows(stats: Mapping[str, Any]) -> list[Row]:
    rows = [(f"{n}, model", _interval(stats[n]), style.TRANSFORMER) for n in ("influence", "abs_influence")]
    for layer in stats["layers"]:
        for head in layer["heads"]:
            where = f"{layer['kind']} layer {layer['layer']}, head {head['head']}"
            rows += [(f"{n}, {where}", _interval(values), style.TRANSFORMER) for n, values in head["scores"].items()]
    rows += [(f"{n}, gradient descent", _interval(values), style.DESCENT) for n, values in stats["gd"].items()]
    for name, values in stats.get("detectors", {}).items():
        fewer = f" ({values['tasks']} contexts)" * (values["tasks"] != stats["tasks"])
        rows.append((f"{name}, detector{fewer}", _interval(values), style.OTHER))
    return rows


def _interval(values: Mapping[str, Any]) -> list[float] | None:
    """(low, AUROC, high), or None where there was none to measure; an end that is null is not drawn."""
    if values["auroc"] is None:
        return None
    low, high = values["auroc_interval"]
    return [float("nan") if value is None else float(value) for value in (low, values["auroc"], high)]
