"""Says which solution one linear layer has found: gradient descent, or another stationary point.

python -m analysis.solutions --run DIR, of a run of one linear layer

On clean contexts the population loss has a closed form in the merged matrices (`src.one_layer`), and so have its
stationary points. A layer that is none of them is still moving. Writes solutions.json.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from icl_lab.analysis.command import Command
from icl_lab.analysis.loaded_run import LoadedRun, load_run
from icl_lab.families.regression.config import RegressionConfig
from icl_lab.families.regression.solutions import reason_against
from icl_lab.src.checks import require
from icl_lab.src.one_layer import Point, heads_of, setting_of
from icl_lab.src.solutions import Found, classify
from icl_lab.store import layout
from icl_lab.store.atomic import write_json


def heads(config: RegressionConfig, params: Any) -> Point:
    """The merged parameters of a run's layer, by head; `ConfigError` for another model than one linear layer."""
    reason = reason_against(config)
    require(
        not reason, f"solutions are known only for one linear layer on clean contexts, and this run differs: {reason}"
    )
    attention = params[f"{config.model.layer_names[0]}/attention"]
    layer = {name: np.asarray(values, np.float64) for name, values in attention.items()}
    found = heads_of(layer, config.data.dim, config.architecture.prediction_channel)
    # damping multiplies the layer's update, and so what is read of it
    return found._replace(p=config.model.damping * found.p, p_y=config.model.damping * found.p_y)


def solution(loaded: LoadedRun) -> Found:
    """Which solution a run has found."""
    return classify(setting_of(loaded.config.data), heads(loaded.config, loaded.params))


def write(loaded: LoadedRun) -> dict[str, Any]:
    """Writes solutions.json."""
    found = solution(loaded)
    values = found._asdict() | {"shares": [each.real for each in found.shares]}
    write_json(loaded.run / layout.SOLUTIONS, values)
    return values


def of_run(loaded: LoadedRun) -> None:
    """The same for a run that has just ended; its summary has no part for it."""
    write(loaded)


COMMAND = Command(
    "solutions",
    "Says which solution one linear layer has found.",
    lambda run, flags: write(load_run(run)),
)

if __name__ == "__main__":
    COMMAND.launch()
