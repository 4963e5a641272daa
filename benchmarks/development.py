"""Measures the cost of analysing a training's development: trajectory PCA with forms, and metrics of checkpoints."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from icl_lab.analysis.development.forms import COMPONENTS, dynamics
from icl_lab.analysis.developmental_metrics import parts_of
from icl_lab.analysis.loaded_run import LoadedRun
from icl_lab.benchmarks.cases import Settings
from icl_lab.benchmarks.llc import CHECKPOINTS, against, trained
from icl_lab.benchmarks.timing import in_turns, seconds_of, spread
from icl_lab.families.task import NO_ARRAYS, model_of, task_of

STEPS, OUTPUTS = 1000, 8192  # of the trajectory: checkpoints, and outputs at each
PROBES = 20

Entry = dict[str, Any]


def forms(settings: Settings) -> Entry:
    """Trajectory PCA with smoothing, curvature and forms, against the PCA of scikit-learn alone."""
    from sklearn.decomposition import PCA

    count, width = (STEPS, OUTPUTS) if settings.points is None else (STEPS // 5, OUTPUTS // 8)
    steps = np.random.default_rng(0).normal(size=(count, width)).astype(np.float32)
    rows = steps.cumsum(axis=0)
    calls: dict[str, Callable[[], float]] = {
        "ours": lambda: seconds_of(lambda: dynamics(rows)),
        "PCA of scikit-learn": lambda: seconds_of(lambda: PCA(COMPONENTS, svd_solver="full").fit_transform(rows)),
    }
    turns = in_turns(calls, settings.repeats)
    text = f"PCA and forms of {count} checkpoints x {width} outputs"
    return {"text": text, **against({who: spread(seconds)._asdict() for who, seconds in turns.items()})}


def metrics(hessian: bool, settings: Settings) -> Entry:
    """Seconds of the developmental metrics of all checkpoints of a training, extrapolated from a few."""
    point = trained(settings.loss_steps)
    task = task_of(point.config)
    batch = task.make_eval_set(point.config, NO_ARRAYS).batch
    loaded = LoadedRun(Path(), point.config, model_of(point.config), point.params, batch)
    parts = parts_of(loaded, hessian, PROBES, 0)

    def once() -> None:
        for part in parts:
            part.measure(loaded)

    once()  # compiles
    turns = in_turns({"ours": lambda: CHECKPOINTS * seconds_of(once)}, settings.repeats)
    text = f"metrics of {CHECKPOINTS} checkpoints of the decoder hoogland, with{'' if hessian else 'out'} Hessians"
    return {"text": f"{text}, from {settings.repeats}", **against({"ours": spread(turns["ours"])._asdict()})}


MEASURED: dict[str, Callable[[Settings], Entry]] = {
    "develop_forms": forms,
    "develop_metrics": partial(metrics, False),
    "develop_hessian": partial(metrics, True),
}
