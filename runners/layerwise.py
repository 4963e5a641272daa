"""Finishes a run of the depth curve: the loss after every layer, and the summary."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from analysis.loaded_run import LoadedRun
from analysis.measures.layerwise import layerwise
from configs.layerwise import LayerwiseConfig
from families.layerwise import EvalSet
from runners.finish import Ending, Wanted
from src.model import Model
from store import layout
from store.atomic import write_json


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
        f"{'MSE on ' + str(curve['num_tasks']) + ' test tasks':<32}mean    ± s.e.    median GD median     TF/GD",
    ]
    for layer in (layer for layer in range(curve["layers"]) if layer + 1 in (1, 2, 4, 8, 12, 24, curve["layers"])):
        numbers = (curve[name][layer] for name in ("mse", "sem", "median"))
        gd, ratio = curve["gd"]["median"][layer], curve["ratio_to_gd"][layer]
        lines.append(f"  layer {layer + 1:<20}" + "".join(f"{number:10.4g}" for number in (*numbers, gd, ratio)))
    for name, label in {"ridge": "ridge (Bayes)", "zero": "zero"}.items():
        numbers = (curve["references"][name][statistic][0] for statistic in ("mse", "sem", "median"))
        lines.append(f"  {label:<26}" + "".join(f"{number:10.4g}" for number in numbers))
    return lines


ENDING = Ending(finish, summary_lines)
