"""The analyses that a finished run gets, by the names under which families declare them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np

from icl_lab.analysis import (
    alignment,
    attention_maps,
    attention_stats,
    comparators,
    compare_sine,
    contexts,
    copying,
    layerwise,
    ood_eval,
    paired_losses,
    solutions,
    task_diversity,
    weights,
)
from icl_lab.analysis.loaded_run import LoadedRun, compared
from icl_lab.families.own_sets import facts_of
from icl_lab.src.model import Batch
from icl_lab.store import layout
from icl_lab.store.atomic import write_npz


def write_batch(run: Path, batch: Batch, name: str = layout.ANALYSIS_BATCH) -> None:
    """Writes an evaluation batch (a NamedTuple of arrays)."""
    write_npz(run / name, jax.tree.map(np.asarray, batch)._asdict())


def _of_regression(write: Callable[..., Any]) -> Callable[..., Any]:
    """An analysis of a run with its gradient descent."""
    return lambda loaded, **arguments: write(compared(loaded), **arguments)


def _of_languages(name: str) -> Callable[..., Any]:
    """An analysis of a run of languages."""

    def write(loaded: LoadedRun) -> Any:
        from icl_lab.analysis import languages  # brings SciPy, which runs of other families do without

        return getattr(languages, name)(loaded)

    return write


def _functions(loaded: LoadedRun) -> Any:
    """Losses of a run on functions, of its baselines and of Bayes."""
    from icl_lab.analysis import functions  # brings SciPy and scikit-learn

    return functions.measure_test_set(loaded)


def _vocabulary(loaded: LoadedRun) -> None:
    """The vocabulary of a run on text."""
    from icl_lab.analysis import vocabulary  # brings SciPy too

    vocabulary.write(loaded)


# name that families declare -> function(loaded run with its evaluation set, arguments) -> its section of the summary
ANALYSES: dict[str, Callable[..., Any]] = {
    "own_data": lambda loaded: facts_of(loaded.config),
    "contexts": contexts.write,
    "attention_maps": lambda loaded, attention_batch: attention_maps.write(loaded, attention_batch),
    "attention_stats": lambda loaded: attention_stats.write(compared(loaded), loaded.eval_set.context, figure=False),
    "comparators": _of_regression(comparators.write),
    "weights": _of_regression(weights.write),
    "solutions": solutions.of_run,
    "test_set": _of_regression(paired_losses.measure_test_set),
    "alignment": _of_regression(alignment.write),
    "ood_eval": _of_regression(ood_eval.write),
    "copying": _of_regression(copying.write),
    "latent_batch": lambda loaded: write_batch(loaded.run, loaded.eval_set.ood.batch, layout.LATENT_BATCH),
    "task_diversity": task_diversity.measure_test_set,
    "layerwise": layerwise.write,
    "sine_functions": compare_sine.write_functions,
    "vocabulary": _vocabulary,
    "strings": _of_languages("strings"),
    "functions": _functions,
    "languages": _of_languages("write"),
    "languages_layer": _of_languages("write_layer"),
}
