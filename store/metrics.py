"""The records of a run's metrics, one a line, and the summary that a finished run has of them."""

from __future__ import annotations

import contextlib
import errno
import math
import os
from array import array
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from icl_lab.lab.configs import earlier_names
from icl_lab.lab.configs.run import RunConfig
from icl_lab.store import layout, manifest, ownership
from icl_lab.store.atomic import json_text, write_blocks
from icl_lab.store.llc_rows import current_record
from icl_lab.store.readers import StoreError, check_text_size, expecting, is_count, is_number, json_lines, read_json
from icl_lab.store.replacing import naming_file, unshare

METRICS_FIELDS = ("step", "train_loss", "eval_loss")  # in the metrics of every run


def append_metrics(run: Path, record: Mapping[str, Any]) -> None:
    """Appends one record to the metrics and syncs it; leaves no part of it after an error.

    Metrics that began under the names of an earlier version keep them.
    """
    path = run / layout.METRICS
    manifest.claim(path)
    unshare(path)
    first = next(json_lines(path), {}) if path.exists() else {}
    values = earlier_names.earlier(record) if earlier_names.is_earlier(first) else record
    line = (json_text(values, indent=None) + "\n").encode()
    with naming_file(path), open(path, "ab", buffering=0) as file:
        ownership.check(path)  # who takes the run over replaces the file, and ours is the one that we have open
        before = os.fstat(file.fileno()).st_size
        try:
            if file.write(line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(file.fileno())
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(file.fileno(), before)
            raise


def truncate_metrics(run: Path, step: int, due: Sequence[int]) -> None:
    """Drops records after a checkpoint's step, which will be computed again.

    `StoreError` unless the rest are of the steps `due`: a record is written before its checkpoint.
    """
    path = run / layout.METRICS

    def kept() -> Iterator[bytes]:
        steps = iter(due)
        for record in json_lines(path) if path.exists() else ():
            with expecting(path, "the metrics of a run; --overwrite retrains the run"):
                is_later = record["step"] > step
            if not is_later:
                if record["step"] != next(steps, None):
                    raise StoreError(lacking)
                yield (json_text(record, indent=None) + "\n").encode()
        if next(steps, None) is not None:
            raise StoreError(lacking)

    lacking = f"{path} lacks records before the checkpoint at step {step}; --overwrite retrains the run"
    write_blocks(path, kept())


def metrics(run: Path, further: Sequence[str] = ()) -> Iterator[dict[str, Any]]:
    """The metrics in a stream, one record per logged step, under today's names.

    Each must have the fields of every run and those in `further`, and there must be one.
    """
    fields, path, has_records = (*METRICS_FIELDS, *further), run / layout.METRICS, False
    wrong = StoreError(f"{path} is not the metrics of a run: these have {', '.join(fields)}")
    for record in map(_todays, json_lines(path)):
        if not record.keys() >= {*fields}:
            raise wrong
        values = [record[name] for name in fields]
        if not (is_count(record["step"]) and all(value is None or is_number(value) for value in values)):
            raise StoreError(f"{path} has values that are not numbers")
        has_records = True
        yield record
    if not has_records:
        raise wrong


def read_metrics(run: Path, further: Sequence[str] = ()) -> list[dict[str, Any]]:
    """The metrics, all in memory; `StoreError` above `LARGEST_TEXT` bytes, which only the other readers can take."""
    check_text_size(run / layout.METRICS)
    return list(metrics(run, further))


def last_metrics(run: Path, number: int) -> list[dict[str, Any]]:
    """The last so many records of the metrics, or all if there are fewer."""
    return [*deque(metrics(run), maxlen=number)]


def last_step(run: Path, config: RunConfig) -> int:
    """The last step of a finished run: that of its config, or of its last record where a rule may have ended it."""
    if not (config.stop_when or config.patience):
        return config.training.steps
    return int(last_metrics(run, 1)[0]["step"])


def read_summary(run: Path) -> dict[str, Any]:
    """The summary of a finished run, under today's names."""
    return _todays(read_json(run / layout.SUMMARY))


def _todays(values: Mapping[str, Any]) -> dict[str, Any]:
    """A record, or the summary, under today's names."""
    return current_record(earlier_names.todays(values))


def metrics_columns(run: Path, fields: Sequence[str]) -> dict[str, np.ndarray]:
    """Fields of the metrics as arrays over the records, with NaN for null."""
    columns = {name: array("d") for name in fields}
    for record in metrics(run, fields):
        for name, column in columns.items():
            column.append(math.nan if record[name] is None else record[name])
    return {name: np.array(column) for name, column in columns.items()}
