"""Finishes a run of an autoencoder: how well unseen strings are decoded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from analysis.measures.test_set import mean_and_error
from configs.autoencoder import AutoencoderConfig
from configs.language_flags import strings_lines
from families.autoencoder import EvalSet, measured, strings_of
from languages.pools import distinct_strings, pools_of
from runners.finish import Ending, Wanted
from runners.summary import header, row
from src.model import Model
from src.prng import Purpose
from store import layout
from store.atomic import write_npz


def finish(
    run: Path, config: AutoencoderConfig, model: Model, params: Any, eval_set: EvalSet, wanted: Wanted
) -> Iterator[dict[str, Any]]:
    """Writes the run's files, and yields its measures."""
    losses, _ = measured(model, params, eval_set.batch, eval_set.pad)
    write_npz(run / layout.PREDICTIONS, {"losses": np.asarray(losses)})
    yield {}
    batch = strings_of(config, Purpose.TEST_SET, config.test_tasks)
    numbers: dict[str, Any] = {"tasks": config.test_tasks}
    for name, values in zip(("loss", "token_accuracy"), measured(model, params, batch, eval_set.pad), strict=True):
        numbers[name], numbers[f"{name}_se"] = mean_and_error(np.asarray(values, np.float64))
    yield {"headline": numbers, "strings": distinct_strings(pools_of(config.data))}


def summary_lines(summary: Mapping[str, Any], run: Path, config: AutoencoderConfig) -> list[str]:
    """The loss and the token accuracy on unseen strings."""
    numbers = summary["headline"]
    kind = "cross-entropy of a symbol, nats" if config.model.input == "one_hot" else "half squared error of a symbol"
    return [
        header(numbers, kind).replace("test tasks", "unseen strings"),
        row("autoencoder", numbers, "loss"),
        row("token accuracy", numbers, "token_accuracy"),
        *strings_lines(config, summary),
    ]


ENDING = Ending(finish, summary_lines)
