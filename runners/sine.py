"""Finishes a run of sines: its read-outs, its functions, and the summary."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from icl_lab.analysis.loaded_run import LoadedRun
from icl_lab.analysis.measures import sine_functions
from icl_lab.families.sine.config import SineConfig
from icl_lab.families.sine.task import both_read_outs
from icl_lab.runners.finish import Ending, Wanted
from icl_lab.runners.summary import header, row
from icl_lab.src.batch import Batch
from icl_lab.src.model import Model
from icl_lab.store import layout
from icl_lab.store.atomic import write_npz


def finish(
    run: Path, config: SineConfig, model: Model, params: Any, batch: Batch, wanted: Wanted
) -> Iterator[dict[str, Any]]:
    """Writes the run's files, and yields its measures."""
    before, after = both_read_outs(model, params, batch)
    write_npz(run / layout.PREDICTIONS, {"before": np.asarray(before), "after": np.asarray(after)})
    yield {}
    loaded = LoadedRun(run, config, model, params, batch)
    yield {"headline": sine_functions.measure_test_set(loaded), "functions": sine_functions.write(loaded)}


def summary_lines(summary: Mapping[str, Any], run: Path, config: SineConfig) -> list[str]:
    """The losses after and before the context, and of zero."""
    numbers, on_grid = summary["headline"], summary["functions"]
    rows = {"after the context": "loss", "before the context": "initial_loss", "zero": "zero_loss"}
    return [
        header(numbers),
        *(row(label, numbers, name, digits=5) for label, name in rows.items()),
        f"one fixed sine, over the range: loss {on_grid['before_loss']:.5f} before its context, "
        f"{on_grid['after_loss']:.5f} after",
    ]


ENDING = Ending(finish, summary_lines)
