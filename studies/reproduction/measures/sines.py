"""Measures on a model of sines and its control, an MLP meta-learned through one step of gradient descent."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import numpy as np

from icl_lab.analysis.compare_sine import compare, functions
from icl_lab.analysis.loaded_run import load_run
from icl_lab.families.sine.task import test_metrics

load = lru_cache(maxsize=16)(load_run)


def loss(run: Path) -> float:
    """The loss on the test tasks."""
    loaded = load(run)
    return float(test_metrics(loaded.config, loaded.model, loaded.params, None)["loss"])


def beside_control(name: str) -> Callable[[Path, Path], float]:
    """A comparison of `analysis.compare_sine.compare` with the control of the same seed."""
    return lambda run, control: float(_compared(run, control)[name])


@lru_cache(maxsize=16)
def _compared(run: Path, control: Path) -> dict[str, float]:
    return compare(load(run), load(control))


def functions_apart(when: str) -> Callable[[Path, Path], float]:
    """How far the functions "before" or "after" the context of the two are apart on a dense grid of one sine.

    The root of their mean squared difference over that of the sine itself.
    """

    def measure(run: Path, control: Path) -> float:
        own, other = functions(load(run)), functions(load(control))
        difference = np.sqrt(np.mean((own[when] - other[when]) ** 2))
        return float(difference / np.sqrt(np.mean(own["target"] ** 2)))

    return measure
