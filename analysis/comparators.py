"""Losses of the comparators that know a run's corruption: writes comparators.json.

python -m analysis.comparators --run DIR
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from icl_lab.analysis.command import Command


def measure(run: Path, flags: argparse.Namespace) -> dict[str, Any]:
    """The loss of each comparator of a stored run, or why it has none."""
    from icl_lab.analysis.compared_run import load_compared
    from icl_lab.analysis.measures.comparators import write

    values = write(load_compared(run))
    words = {name: _in_words(part) for name, part in values.items() if isinstance(part, Mapping)}
    return {name: value for name, value in values.items() if name not in words} | words


def _in_words(part: Mapping[str, Any]) -> str:
    if "reason" in part:
        return f"not defined: {part['reason']}"
    return f"loss {part['loss']:.4g} ± {part['loss_se']:.2g}"


COMMAND = Command(
    "comparators",
    "Measures comparators that know a run's corruption: a tuned step, the best linear predictor, Bayes over masks.",
    measure,
)

if __name__ == "__main__":
    COMMAND.launch()
