"""Compares a decoder on prompts of functions, at each position, with Bayes and other methods.

python -m analysis.functions --run DIR

Losses are those of `families.functions.task`; entry k has seen k pairs. The scale is
(L_prior - L_model) / (L_prior - L_reference): 0 for a model that ignores the context, 1 for one as good as the
reference, which is Bayes, of a pool its posterior, and where there is neither the best method known.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from icl_lab.analysis.command import Command
from icl_lab.analysis.loaded_run import LoadedRun, load_run
from icl_lab.families.functions import baselines, exact, task
from icl_lab.families.functions.batch import FunctionBatch
from icl_lab.families.functions.outputs import summary_lines
from icl_lab.src.prng import Purpose
from icl_lab.src.registries import MODEL
from icl_lab.src.statistics import mean_and_error, not_defined, ratio_and_error, with_error
from icl_lab.store import layout
from icl_lab.store.atomic import write_csv

BY_POSITION = {"losses": "loss", "losses_se": "loss_se"}  # in a summary -> in a row
OVER_OTHERS = {"excesses": "excess", "excesses_se": "excess_se"}  # the same, of predictors other than the model


class Errors(NamedTuple):
    """The losses [b, K] of the model and of predictors on a set, by name, nan where a predictor is not computed.

    undefined: why others are not defined. reference: what a model can at best be as good as, "" where none is known.
    """

    losses: Mapping[str, np.ndarray]
    undefined: Mapping[str, str]
    reference: str


def measure_test_set(loaded: LoadedRun) -> dict[str, Any]:
    """Losses on the test prompts with standard errors over prompts: means over positions, and by position [K].

    `excesses` [K] of a predictor are the model's loss less its own, on the prompts that it is computed of; their errors
    are those of paired differences. `bayes_sampling_loss` is what sampling adds to the loss of Bayes. functions.csv has
    a row for each set, position and predictor, with medians.
    """
    config = loaded.config
    numbers: dict[str, Any] = {"tasks": config.test_tasks}
    rows: list[dict[str, Any]] = []
    sets = task.sets(config, Purpose.TEST_SET, Purpose.LATENT_TEST_SET, config.test_tasks)
    for prefix, batch in sets.items():
        errors = errors_on(loaded, prefix, batch)
        of_set = by_position(prefix, errors)
        numbers |= _numbers(prefix, errors, of_set)
        if config.function.is_sampled:
            numbers[f"{prefix}_{baselines.BAYES}_sampling_loss"] = exact.sampling_loss(config.function, batch)
        rows += of_set
    write_csv(loaded.run / layout.FUNCTIONS, rows)
    return numbers


def _numbers(prefix: str, errors: Errors, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The numbers of a set in a summary."""
    numbers: dict[str, Any] = {}
    for name, values in errors.losses.items():
        is_everywhere = not np.isnan(values).any()
        mean = mean_and_error(values.mean(axis=1)) if is_everywhere else (None, None)
        numbers |= dict(zip((f"{prefix}_{name}_loss", f"{prefix}_{name}_loss_se"), mean, strict=True))
        own = [row for row in rows if row["predictor"] == name]
        parts = BY_POSITION if name == MODEL else BY_POSITION | OVER_OTHERS
        numbers |= {f"{prefix}_{name}_{key}": [row[of] for row in own] for key, of in parts.items()}
    for name, reason in errors.undefined.items():
        numbers |= not_defined(f"{prefix}_{name}_loss", reason)
    if errors.reference:
        numbers |= with_error(f"{prefix}_scale", scale(errors)) | {f"{prefix}_reference": errors.reference}
        numbers[f"{prefix}_scales"] = [row["scale"] for row in rows if row["predictor"] == MODEL]
    return numbers


def errors_on(loaded: LoadedRun, prefix: str, batch: FunctionBatch) -> Errors:
    """The losses on a set: the model's on all its prompts, each predictor's on as many as it is for."""
    function = loaded.config.function
    predicted: dict[str, np.ndarray] = {MODEL: task.predictions_of(loaded.model, loaded.params, batch)}
    undefined = {}
    for name, said in baselines.predictions_on(baselines.Asked(loaded.config), batch):
        if isinstance(said, str):
            undefined[name] = said
        else:
            predicted[name] = said
    losses = {name: task.errors_of(function, said, task.first(batch, len(said))) for name, said in predicted.items()}
    known = (name for name in baselines.references(loaded.config, prefix) if name in losses)
    return Errors(losses, undefined, next(known, ""))


def scale(errors: Errors) -> tuple[float, float]:
    """(L_prior - L_model) / (L_prior - L_reference) over all positions, with its error, on the prompts all have."""
    prior, model, best = (errors.losses[name] for name in (baselines.PRIOR, MODEL, errors.reference))
    shared = len(best)
    gained = (prior[:shared] - model[:shared]).mean(axis=1)
    return ratio_and_error(gained, (prior[:shared] - best).mean(axis=1))


def by_position(prefix: str, errors: Errors) -> list[dict[str, Any]]:
    """A row for each position and predictor: the mean loss, its standard error, its median, and the scale.

    excess: by how much the model's loss is above that of another predictor, on the prompts that both have.
    """
    rows = []
    for name, losses in errors.losses.items():
        for k, values in enumerate(losses.T):
            loss, error = mean_and_error(values)
            row: dict[str, Any] = {"set": prefix, "position": k, "predictor": name, "loss": loss, "loss_se": error}
            row |= {"median": float(np.median(values)), "prompts": len(values), "scale": _scale_at(errors, k, values)}
            of_model = errors.losses[MODEL][: len(values), k]
            above = (None, None) if name == MODEL else mean_and_error(of_model - values)
            row |= dict(zip(OVER_OTHERS.values(), above, strict=True))
            rows.append(row)
    return rows


def _scale_at(errors: Errors, k: int, values: np.ndarray) -> float | None:
    """The scale of losses at a position, on the prompts that the reference has too."""
    if not errors.reference:
        return None
    prior, best = (errors.losses[name][:, k] for name in (baselines.PRIOR, errors.reference))
    shared = min(len(values), len(best))
    gain = float(np.mean(prior[:shared] - best[:shared]))
    return float(np.mean(prior[:shared] - values[:shared])) / gain if gain > 0 else None


def _measured(run: Path, flags: argparse.Namespace) -> list[str]:
    """Measures a stored run again, and gives the table that a run prints."""
    loaded = load_run(run)
    return summary_lines({"headline": measure_test_set(loaded)}, run, loaded.config)


COMMAND = Command(
    "functions", "Compares a decoder with the prior, Bayes, its pool's posterior and baselines, by position.", _measured
)

if __name__ == "__main__":
    COMMAND.launch()
