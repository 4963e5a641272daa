"""Finishes a run of the depth curve: the loss after every layer, and the summary."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from icl_lab.analysis.loaded_run import LoadedRun
from icl_lab.analysis.measures.layerwise import layerwise
from icl_lab.families.layerwise.config import LayerwiseConfig
from icl_lab.families.layerwise.task import EvalSet
from icl_lab.runners.finish import Ending, Wanted
from icl_lab.src.loss_conventions import TRIMMED_MEAN
from icl_lab.src.model import Model
from icl_lab.store import layout
from icl_lab.store.atomic import write_json

DRAWN = ("trimmed_mean", "trimmed_sem", "median")  # the first of them in the figure


def finish(
    run: Path, config: LayerwiseConfig, model: Model, params: Any, eval_set: EvalSet, wanted: Wanted
) -> Iterator[dict[str, Any]]:
    """Writes the run's files, and yields its measures."""
    curve = layerwise(LoadedRun(run, config, model, params, eval_set.batch))
    write_json(run / layout.LAYERWISE, curve)
    yield {"layerwise": curve}


def summary_lines(summary: Mapping[str, Any], run: Path, config: LayerwiseConfig) -> list[str]:
    """The losses of the transformer and of its baselines."""
    curve = summary["layerwise"]
    kind = f"rolled out with damping {curve['damping']:g}" if curve["rolled_out"] else f"{curve['layers']} layers"
    lines = [
        f"{kind}: {curve['verdict']}",
        f"{'MSE on ' + str(curve['num_tasks']) + ' test tasks':<32}mean    ± s.e.    median GD's mean     TF/GD",
    ]
    for layer in (layer for layer in range(curve["layers"]) if layer + 1 in (1, 2, 4, 8, 12, 24, curve["layers"])):
        numbers = (curve[name][layer] for name in DRAWN)
        gd, ratio = curve["gd"]["trimmed_mean"][layer], curve["ratio_to_gd"][layer]
        lines.append(f"  layer {layer + 1:<20}" + "".join(f"{number:10.4g}" for number in (*numbers, gd, ratio)))
    for name, label in {"ridge": "ridge (Bayes)", "zero": "zero"}.items():
        numbers = (curve["references"][name][statistic][0] for statistic in DRAWN)
        lines.append(f"  {label:<26}" + "".join(f"{number:10.4g}" for number in numbers))
    return [*lines, f"mean: {TRIMMED_MEAN}, as figs/layerwise.png draws it"]


ENDING = Ending(finish, summary_lines)
