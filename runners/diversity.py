"""Finishes a run of task diversity: its sequences, the predictions of all predictors, and the summary."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from icl_lab.analysis.loaded_run import LoadedRun
from icl_lab.analysis.measures.task_diversity import measure_test_set
from icl_lab.families.diversity.config import DiversityConfig
from icl_lab.families.diversity.task import EvalSets, predictions_of
from icl_lab.runners.finish import Ending, Wanted, write_batch
from icl_lab.runners.summary import LABELS, row
from icl_lab.src.model import Model
from icl_lab.src.registries import BAYES_IS_RIDGE, POSTERIOR_MEANS
from icl_lab.store import layout
from icl_lab.store.atomic import write_npz


def finish(
    run: Path, config: DiversityConfig, model: Model, params: Any, eval_sets: EvalSets, wanted: Wanted
) -> Iterator[dict[str, Any]]:
    """Writes the run's files, and yields its measures."""
    write_batch(run, eval_sets.ood.batch, layout.LATENT_BATCH)
    predictions = {
        f"{prefix}_{name}": values.astype(np.float32)
        for prefix, eval_set in zip(("id", "ood"), eval_sets, strict=True)
        for name, values in {"tf": predictions_of(model, params, eval_set.batch), **eval_set.references}.items()
    }
    write_npz(run / layout.PREDICTIONS, predictions)
    yield {}
    yield {"headline": measure_test_set(LoadedRun(run, config, model, params, eval_sets.id.batch))}


def summary_lines(summary: Mapping[str, Any], run: Path, config: DiversityConfig) -> list[str]:
    """The losses of the transformer and of its baselines."""
    numbers, tasks, exact = summary["headline"], config.data.num_tasks, ("dmmse", "ridge", *POSTERIOR_MEANS)
    ridge = (
        "ridge (Bayes for fresh tasks)" if config.data.task_distribution in BAYES_IS_RIDGE else "ridge (best linear)"
    )
    labels = {name: f"{name} prior's mean" for name in POSTERIOR_MEANS} | LABELS | {"ridge": ridge}
    lines = [f"{'squared error / D on ' + str(numbers['tasks']) + ' test sequences':<50}    loss   ± s.e."]
    for prefix, words in (
        ("id", f"tasks of its pool of {'infinity' if tasks == math.inf else tasks}"),
        ("ood", "fresh tasks"),
    ):
        rows = {f"{prefix}_{name}_loss": labels[name] for name in ("tf", *exact, "zero")}
        rows |= {f"{prefix}_delta_{name}": f"Delta to {name}" for name in exact}
        lines += [f"  {words}:", *(row(text, numbers, key, deeper=1) for key, text in rows.items() if key in numbers)]
    return [*lines, f"verdict: {numbers['verdict']}"]


ENDING = Ending(finish, summary_lines)
