"""Finishes a run of languages: its predictions, the opponents on its test sets, weights, and the summary."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from jax.tree_util import Partial

from icl_lab.analysis.measures import languages
from icl_lab.families.languages.baselines import IN_WORDS
from icl_lab.families.languages.config import LanguagesConfig
from icl_lab.families.languages.flags import strings_lines
from icl_lab.families.languages.task import EvalSet, predictions_of
from icl_lab.runners.finish import Ending, Wanted
from icl_lab.src.model import Model
from icl_lab.store import layout
from icl_lab.store.atomic import write_csv, write_npz


def finish(
    run: Path, config: LanguagesConfig, model: Model, params: Any, eval_set: EvalSet, wanted: Wanted
) -> Iterator[dict[str, Any]]:
    """Writes the run's files, and yields its measures."""
    predictors = {"tf": Partial(model.predict, params), **eval_set.opponents.predictors}
    batch = eval_set.sets.strings.batch
    predictions = {name: predictions_of(predict, batch).astype(np.float32) for name, predict in predictors.items()}
    write_npz(run / layout.PREDICTIONS, predictions)
    yield {}
    measured = languages.measure(config, model, params, eval_set.codes)
    write_csv(run / layout.ALGORITHM_DISTANCE, measured.rows)
    yield dict(measured.sections)
    if languages.has_products(config):
        write_npz(run / layout.WEIGHTS, languages.weight_arrays(config, params, eval_set.opponents))
    yield {"layer": languages.spectra(config, params, eval_set.opponents, eval_set.codes.train)}


def summary_lines(summary: Mapping[str, Any], run: Path, config: LanguagesConfig) -> list[str]:
    """Losses and accuracies on unseen strings and on unseen languages, and what the model takes from the context."""
    steps = config.model.num_layers
    words = {name: text.format(steps=f"{steps} step{'s' * (steps > 1)}") for name, text in IN_WORDS.items()}
    lines = []
    for part, title in (("headline", "unseen strings"), ("unseen", "unseen languages")):
        if part not in summary:
            continue
        numbers = summary[part]
        header = f"on {numbers['tasks']} tasks of {title}"
        lines.append(f"{header:<60}    loss   ± s.e.  accuracy   ± s.e.")
        lines.append(_row("trained model", numbers, ""))
        lines += [_row(text, numbers, f"{name}_") for name, text in words.items() if f"{name}_loss" in numbers]
    numbers = summary["headline"]
    return [
        *lines,
        *strings_lines(config, summary),
        f"with the context's labels in another order: accuracy {numbers['shuffled_accuracy']:.3f}; root mean square of "
        f"the context-free part of predictions {numbers['context_free']:.3f}, of the contextual "
        f"{numbers['contextual']:.3f}",
        f"cosine of sensitivities with gradient descent {numbers['gd_cosine']:.4f}, with the optimum "
        f"{numbers['optimum_cosine']:.4f}; share of the way from the former's loss to the latter's "
        f"{numbers['way_to_optimum']:.3f}",
    ]


def _row(text: str, numbers: Mapping[str, Any], prefix: str) -> str:
    loss, accuracy = f"{prefix}loss", f"{prefix}accuracy"
    if f"{loss}_reason" in numbers:
        return f"  {text:<58}not defined: {numbers[f'{loss}_reason']}"
    return (
        f"  {text:<58}{numbers[loss]:8.4f}   {numbers[f'{loss}_se']:.4f}  {numbers[accuracy]:8.4f}   "
        f"{numbers[f'{accuracy}_se']:.4f}"
    )


ENDING = Ending(finish, summary_lines)
