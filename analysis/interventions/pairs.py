"""Pairs of contexts, clean and corrupted: drawn from a run's distribution, or a user's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from icl_lab.analysis.activations import fitting, is_decoder
from icl_lab.analysis.run import Run
from icl_lab.families.own_data import read, take
from icl_lab.families.shared_arrays import shared_with
from icl_lab.families.sine.config import SineConfig
from icl_lab.families.task import fresh_tasks
from icl_lab.lab.guest import as_guest
from icl_lab.src.batch import Batch
from icl_lab.src.checks import in_range, one_of, require
from icl_lab.src.data_config import FileData, LinearData
from icl_lab.src.sine import sines

FEWEST = 100  # of drawn pairs: the interval's t and delta method are of many


Labels = Callable[[Any, Any], np.ndarray]  # inputs [B, N, D], tasks [B, ...] -> labels [B, N]


class Pairs(NamedTuple):
    """B clean contexts and B corrupted ones of equal shapes, as the run's model takes them; each pair in its place."""

    clean: Any
    corrupted: Any


def pairs_of(
    run: Run, corruption: str = "labels", count: int = 200, seed: int = 0, sigma: float = 1.0, position: int = -1
) -> Pairs:
    """Contexts drawn from the run's distribution, and the same with one thing changed. Pairs are independent.

    labels: those of another task, with the same noise. query: another one; of a decoder, in the pair at `position`.
    noise: N(0, sigma^2) added to the context's labels. `ConfigError` where the run's labels do not allow it.
    """
    one_of("corruption", corruption, CORRUPTIONS)
    require(count >= FEWEST, f"there are {count} pairs; an interval needs at least {FEWEST}")
    in_range("sigma", sigma, 0, open_low=True)
    check_position(run, position)
    run.config.as_evaluated()  # there are no new contexts of a file
    label = labels_of(run)
    require(corruption != "labels" or label is not None, _no_labels(run))
    with as_guest():
        drawn = jax.device_get(fresh_tasks(run.config, 2 * count, seed, shared_with(run.config, run.path)))
        clean, other = (Batch(*(np.array(part[half]) for part in drawn)) for half in _halves(count))  # type: ignore[arg-type]
        change = Change(other, label, np.random.default_rng([seed, 1]), sigma, position)
        return Pairs(clean, CORRUPTIONS[corruption](clean, change))


def check_position(run: Run, position: int) -> None:
    """`ConfigError` for a query that the run's contexts do not have, and for a family without pairs."""
    run.contexts()
    shape = run.config.batch_shapes()["x_query"]
    count = shape[1] if len(shape) == 3 else 1
    require(-count <= position < count, f"position is {position}; the contexts have {count} queries, numbered from 0")


def _halves(count: int) -> tuple[slice, slice]:
    return slice(None, count), slice(count, None)


def pairs_from_files(run: Run, clean: Path, corrupted: Path) -> Pairs:
    """The contexts of two files, line by line; `ConfigError` unless they have equal shapes, and are the run's."""
    run.contexts()
    found = []
    for path in (clean, corrupted):
        data = read(path)
        require(
            data.fixed, f"{path} has contexts of any length; pairs need arrays x [n, N, D] in an .npz, of one length"
        )
        found.append(take(data, np.arange(len(data.lengths)), None, is_decoder(run)).batch)
    return pairs_of_batches(run, found[0], found[1], (str(clean), str(corrupted)))


def pairs_of_batches(run: Run, clean: Any, corrupted: Any, names: tuple[str, str] = ("clean", "corrupted")) -> Pairs:
    """Two batches of yours as pairs; `ConfigError` unless their shapes are equal and the run's."""
    for field in ("x", "y", "x_query"):
        shapes = [np.shape(getattr(batch, field)) for batch in (clean, corrupted)]
        text = f"{field} of {names[0]} has the shape {shapes[0]}, and of {names[1]} {shapes[1]}; pairs have one shape"
        require(shapes[0] == shapes[1], text)
    count = len(clean.y)
    require(count > 1, f"{names[0]} has {count} contexts; an interval over pairs needs two")
    return Pairs(fitting(run, clean), fitting(run, corrupted))


def labels_of(run: Run) -> Labels | None:
    """The labels without noise of a run's contexts, where they follow from inputs and task; else None."""
    config: Any = run.config
    if isinstance(config, SineConfig):
        return lambda x, w: np.asarray(sines(x, w))
    linear = isinstance(config.data, (LinearData, FileData))
    return (lambda x, w: np.einsum("bnd,bd->bn", x, w)) if linear else None


def _no_labels(run: Run) -> str:
    return (
        f"the labels of the family {run.config.family} are not determined by inputs and a task, so those of another "
        "task cannot be made; take the corruption query or noise, or two files"
    )


class Change(NamedTuple):
    """What a corruption may take: other contexts, the labels of inputs and a task, noise, and a decoder's query."""

    other: Batch
    labels: Labels | None
    draw: np.random.Generator
    sigma: float
    position: int


def _labels(clean: Batch, change: Change) -> Batch:
    label: Any = change.labels
    x_query = clean.x_query if np.ndim(clean.x_query) == 3 else np.asarray(clean.x_query)[:, None]

    def moved(x: Any, y: Any) -> Any:
        return (y + label(x, change.other.w) - label(x, clean.w)).astype(np.float32)

    y_query = moved(x_query, np.reshape(clean.y_query, x_query.shape[:2])).reshape(np.shape(clean.y_query))
    return clean._replace(y=moved(clean.x, clean.y), y_query=y_query, w=change.other.w)


def _query(clean: Batch, change: Change) -> Batch:
    if not _of_sequences(clean):
        return clean._replace(x_query=change.other.x_query)
    x: Any = np.array(clean.x)
    x[:, change.position] = change.other.x[:, change.position]
    return clean._replace(x=x, x_query=x)


def _noise(clean: Batch, change: Change) -> Batch:
    y: Any = (clean.y + change.sigma * change.draw.normal(size=np.shape(clean.y))).astype(np.float32)
    return clean._replace(y=y, y_query=y) if _of_sequences(clean) else clean._replace(y=y)


def _of_sequences(batch: Batch) -> bool:
    return np.shape(batch.x_query) == np.shape(batch.x) and bool(np.array_equal(batch.x_query, batch.x))


CORRUPTIONS: Mapping[str, Callable[[Batch, Change], Batch]] = {"labels": _labels, "query": _query, "noise": _noise}
