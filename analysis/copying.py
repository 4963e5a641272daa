"""Does the first layer copy? Writes copying.json, of a run on interleaved tokens.

python -m analysis.copying --run DIR
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from icl_lab.analysis.command import Command


def measure(run: Path, flags: argparse.Namespace) -> dict[str, Any]:
    """How far the first layer's rows of a stored run depend on their own, the following and other tokens."""
    from icl_lab.analysis.loaded_run import load_run
    from icl_lab.analysis.measures.copying import write

    return write(load_run(run))


COMMAND = Command("copying", "Measures how far the first layer's rows depend on the following token.", measure)

if __name__ == "__main__":
    COMMAND.launch()
