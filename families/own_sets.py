"""How the contexts of a file are split: each is of the training, of the evaluation or of the test set.

The file says so, or else a tenth of them, at most `eval_tasks` and `test_tasks`, are drawn for evaluation and test by
`data.split_seed`. Runs of all data seeds have one split: seeds differ in their batches, and are tested on the same
contexts.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from icl_lab.families.own_data import SPLITS, OwnData, read, rows_needed
from icl_lab.lab.configs.identity import array_hash
from icl_lab.src.checks import require

LEAST = 2  # contexts of each set
ARRAYS = ("x", "y", "x_query", "y_query", "lengths")  # of a file, by which a run is known; no number of it reads w


class Sets(NamedTuple):
    """The contexts of a file by the set they are of, and how many are too short for any.

    stored: the training contexts as `src.stored_contexts` takes them. hashes: an array for each part of the file, and
    for the split, that is another one if the part is.
    """

    data: OwnData
    train: np.ndarray
    eval: np.ndarray
    test: np.ndarray
    left_out: int
    stored: Mapping[str, np.ndarray]
    hashes: Mapping[str, np.ndarray]


def sets_of(config: Any) -> Sets:
    """The sets of a config's contexts; `ConfigError` if the file has gone, or changed, since the config was made."""
    data, counts = config.data, (config.eval_tasks, config.test_tasks)
    require(Path(data.file).exists(), f"the contexts of the run are in {data.file}, which does not exist")
    state = stamp(data.file)
    _check_unchanged(config, hashes_of(data.file, state))
    sets = split(data.file, state, data.num_pairs, config.sequences, data.split_seed, *counts)
    _check_unchanged(config, sets.hashes)
    return sets


def facts_of(config: Any) -> dict[str, Any]:
    """What the summary of a run says of its contexts; scales are None where a model sees the data as they are."""
    data, sets = config.data, sets_of(config)
    scaling = {name: getattr(data, name) for name in data.without_meaning} if data.standardize else None
    counts = {name: len(part) for name, part in zip(SPLITS, (sets.train, sets.eval, sets.test), strict=True)}
    return {"file": data.file, "contexts": counts, "left_out": sets.left_out, "standardized": scaling}


def holds_contexts_of(path: str, config: Any) -> bool:
    """Whether a file, whatever its name, holds the contexts that a config was made with."""
    return bool(getattr(config.data, "file", "")) and _are_of(config, hashes_of(path, stamp(path)))


def _check_unchanged(config: Any, hashes: Mapping[str, np.ndarray]) -> None:
    said = f"{config.data.file} has changed since the run began; bring it back, or train another run"
    require(_are_of(config, hashes), said)


def _are_of(config: Any, hashes: Mapping[str, np.ndarray]) -> bool:
    was = {name: digest for name, _, digest in (entry.partition(":") for entry in config.shared)}
    return all(was.get(name, array_hash(part)) == array_hash(part) for name, part in hashes.items())


@lru_cache(maxsize=8)
def hashes_of(path: str, state: tuple[int, int]) -> Mapping[str, np.ndarray]:
    """A small array for each part of a file, that is another one if the part is."""
    data = read(path)
    return {name: _digest(array) for name in ARRAYS if (array := getattr(data, name)) is not None}


def stamp(path: str) -> tuple[int, int]:
    """By what a file is seen to have changed without reading it."""
    if not Path(path).is_file():
        read(path)  # which says what is wrong
    state = os.stat(path)
    return state.st_mtime_ns, state.st_size


@lru_cache(maxsize=8)
def split(
    path: str, state: tuple[int, int], pairs: int, sequences: bool, split_seed: int, eval_tasks: int, test_tasks: int
) -> Sets:
    """The sets of a file's contexts; `ConfigError` if one of them is too small."""
    data = read(path)
    usable = np.flatnonzero(data.lengths >= rows_needed(data, pairs, sequences))
    if data.split is None:
        order = np.random.default_rng(split_seed).permutation(usable)
        held_out = eval_tasks + test_tasks
        parts = [np.sort(part) for part in (order[held_out:], order[:eval_tasks], order[eval_tasks:held_out])]
    else:
        parts = [usable[data.split[usable] == code] for code in range(len(SPLITS))]
    for name, part in zip(SPLITS, parts, strict=True):
        require(len(part) >= LEAST, f"{path} has {len(part)} contexts for {name}; each set takes at least {LEAST}")
    codes = np.full(len(data.lengths), -1, np.int8)
    for code, part in enumerate(parts):
        codes[part] = code
    hashes = {**hashes_of(path, state), "split": _digest(codes)}
    train, evaluation, test = parts
    left_out = len(data.lengths) - len(usable)
    return Sets(data, train, evaluation, test, left_out, _stored(data, train), hashes)


def _digest(array: np.ndarray) -> np.ndarray:
    return np.frombuffer(bytes.fromhex(array_hash(array)), np.uint8)


def _stored(data: OwnData, contexts: np.ndarray) -> dict[str, np.ndarray]:
    """Contexts as programs take them."""
    lengths = data.lengths[contexts]
    starts = np.cumsum(lengths) - lengths
    rows = np.repeat(data.starts[contexts] - starts, lengths) + np.arange(lengths.sum())
    stored = {"x": data.x[rows], "y": data.y[rows], "starts": starts.astype(np.int32)}
    if not data.fixed:
        stored["lengths"] = lengths  # by which a program sees that pairs are to be drawn
    if data.x_query is not None and data.y_query is not None:
        stored |= {"x_query": data.x_query[contexts], "y_query": data.y_query[contexts]}
    return stored
