"""Orders, masks and settings of a run's evaluation contexts, and of its first training batch."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from icl_lab.analysis.loaded_run import LoadedRun
from icl_lab.families.regression.task import first_training_context
from icl_lab.src.config import ContextConfig
from icl_lab.src.context import Context
from icl_lab.store import layout
from icl_lab.store.atomic import write_json, write_npy


def write(loaded: LoadedRun) -> dict[str, Any]:
    """Writes them, and gives the settings: those asked for, and those in force in training and evaluation."""
    run, config, context = loaded.run, loaded.config, loaded.eval_set.context
    first = first_training_context(config)
    for folder in (run, run / layout.ANALYSIS):
        write_npy(folder / layout.ORDERING_INDEX, np.asarray(context.index))
        write_npy(folder / layout.NOISE_MASK, np.asarray(context.hit))
    write_npy(run / layout.ANALYSIS / f"train_{layout.ORDERING_INDEX}", np.asarray(first.index))
    write_npy(run / layout.ANALYSIS / f"train_{layout.NOISE_MASK}", np.asarray(first.hit))
    metadata = {"train": _with_effects(config.train, first), "eval": _with_effects(config.eval, context)}
    write_json(run / layout.ANALYSIS_METADATA, metadata)
    return {name: asdict(getattr(config, name)) for name in ("base", "train", "eval")}


def _with_effects(settings: ContextConfig, context: Context) -> dict[str, Any]:
    """The settings, and whether ordering, noise and placement changed any context of this batch."""
    index, ordered, hit = (np.asarray(part) for part in (context.index, context.ordered, context.hit))
    return asdict(settings) | {
        "order_had_effect": bool((ordered != np.arange(ordered.shape[1])).any()),
        "noise_had_effect": bool(hit.any()) and not settings.adds_nothing,
        "placement_had_effect": bool((index != ordered).any()),
    }
