"""What a run of the depth curve leaves: the loss after every layer; and its summary."""

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
    """Writes its files, and gives what it measured."""
    found = layerwise(LoadedRun(run, config, model, params, eval_set.batch))
    write_json(run / layout.LAYERWISE, found)
    yield {"layerwise": found}


def summary_lines(summary: Mapping[str, Any], run: Path, config: LayerwiseConfig) -> list[str]:
    """Losses, and those of what it is compared with."""
    found = summary["layerwise"]
    kind = f"rolled out with damping {found['damping']:g}" if found["rolled_out"] else f"{found['layers']} layers"
    lines = [
        f"{kind}: {found['verdict']}",
        f"{'MSE on ' + str(found['num_tasks']) + ' further tasks':<32}mean    ± s.e.    median GD median     TF/GD",
    ]
    for layer in (layer for layer in range(found["layers"]) if layer + 1 in (1, 2, 4, 8, 12, 24, found["layers"])):
        numbers = (found[name][layer] for name in ("mse", "sem", "median"))
        gd, ratio = found["gd"]["median"][layer], found["ratio_to_gd"][layer]
        lines.append(f"  layer {layer + 1:<20}" + "".join(f"{number:10.4g}" for number in (*numbers, gd, ratio)))
    for name, label in {"ridge": "ridge (Bayes)", "zero": "zero"}.items():
        numbers = (found["references"][name][statistic][0] for statistic in ("mse", "sem", "median"))
        lines.append(f"  {label:<26}" + "".join(f"{number:10.4g}" for number in numbers))
    return lines


ENDING = Ending(finish, summary_lines)
