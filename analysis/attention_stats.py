"""Does attention separate corrupted from clean pairs? Writes attention_stats.json and its figure.

python -m analysis.attention_stats --run DIR
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from icl_lab.analysis.command import Command


def measure(run: Path, flags: argparse.Namespace) -> dict[str, Any]:
    """The position-matched AUROC of every score of a stored run, and of detectors of corruption, with its interval."""
    from icl_lab.analysis.compared_run import load_compared
    from icl_lab.analysis.measures.attention_stats import write
    from icl_lab.families.regression.task import evaluation_context

    loaded = load_compared(run)
    values = write(loaded, evaluation_context(loaded.config))
    shown = {f"detector {name}": numbers for name, numbers in values["detectors"].items()}
    shown |= {f"gd {name}": numbers for name, numbers in values["gd"].items()}
    shown |= {f"model {name}": values[name] for name in ("influence", "abs_influence")}
    for layer in values["layers"]:
        for head in layer["heads"]:
            shown |= {f"layer {layer['layer']} head {head['head']} {n}": v for n, v in head["scores"].items()}
    return {name: _in_words(numbers) for name, numbers in shown.items()}


def _in_words(numbers: Mapping[str, Any]) -> str:
    if "reason" in numbers:
        return f"no AUROC: {numbers['reason']}"
    if not np.isfinite(numbers["auroc"]):
        return "no AUROC: no position has both clean and noisy pairs"
    low, high = numbers["auroc_interval"]
    return f"AUROC {numbers['auroc']:.3f} [{low:.3f}, {high:.3f}], raw {numbers['auroc_raw']:.3f}"


COMMAND = Command(
    "attention_stats", "Asks whether the attention of a run separates corrupted pairs from clean ones.", measure
)

if __name__ == "__main__":
    COMMAND.launch()
