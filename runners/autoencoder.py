"""Finishes a run of an autoencoder: how well unseen strings are decoded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from icl_lab.analysis.measures.test_set import mean_and_error, not_defined, ratio_and_error
from icl_lab.families.autoencoder.config import AutoencoderConfig
from icl_lab.families.autoencoder.task import EvalSet, measured, strings_of
from icl_lab.families.languages.flags import strings_lines
from icl_lab.families.languages.pools import distinct_strings, pools_of
from icl_lab.runners.finish import Ending, Wanted
from icl_lab.runners.summary import header, row
from icl_lab.src.model import Model
from icl_lab.src.prng import Purpose
from icl_lab.store import layout
from icl_lab.store.atomic import write_npz


def finish(
    run: Path, config: AutoencoderConfig, model: Model, params: Any, eval_set: EvalSet, wanted: Wanted
) -> Iterator[dict[str, Any]]:
    """Writes the run's files, and yields its measures."""
    write_npz(
        run / layout.PREDICTIONS,
        {"losses": np.asarray(measured(model, params, eval_set.batch, eval_set.pad).losses)},
    )
    yield {}
    strings = distinct_strings(pools_of(config.data))
    yield {"headline": on_test_set(config, model, params, eval_set.pad), "strings": strings}


def on_test_set(config: AutoencoderConfig, model: Model, params: Any, pad: int) -> dict[str, Any]:
    """The loss and the accuracies on unseen strings, with standard errors over strings."""
    batch = strings_of(config, Purpose.TEST_SET, config.test_tasks)
    losses, accuracies, right, symbols = (np.asarray(part, np.float64) for part in measured(model, params, batch, pad))
    numbers: dict[str, Any] = {"tasks": config.test_tasks}
    for name, values in (("loss", losses), ("token_accuracy", accuracies)):
        numbers[name], numbers[f"{name}_se"] = mean_and_error(values)
    if not symbols.any():
        return numbers | not_defined("symbol_accuracy", "all strings of the test set are empty")
    numbers["symbol_accuracy"], numbers["symbol_accuracy_se"] = ratio_and_error(right, symbols)
    return numbers


def summary_lines(summary: Mapping[str, Any], run: Path, config: AutoencoderConfig) -> list[str]:
    """The loss and the accuracies on unseen strings."""
    numbers = summary["headline"]
    kind = "cross-entropy of a symbol, nats" if config.model.input == "one_hot" else "half squared error of a symbol"
    return [
        header(numbers, kind).replace("test tasks", "unseen strings"),
        row("autoencoder", numbers, "loss"),
        row("symbol accuracy", numbers, "symbol_accuracy"),
        row("token accuracy, pads included", numbers, "token_accuracy"),
        *strings_lines(config, summary),
    ]


ENDING = Ending(finish, summary_lines)
