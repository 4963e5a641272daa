"""Another name of analysis.gd_curve, and of the functions of baselines.gradient_descent.

Earlier versions had both here; code written for them still works.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

MOVED = dict.fromkeys(("one_step_loss", "one_step_size"), "icl_lab.src.one_step")


def __getattr__(name: str) -> Any:
    return getattr(import_module(MOVED.get(name, "icl_lab.baselines.gradient_descent")), name)


if __name__ == "__main__":
    import_module("icl_lab.analysis.gd_curve").launch()
