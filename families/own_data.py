"""Contexts of one's own, from a file: the pairs, their queries and their split. Nothing in a file is executed.

NPZ: `x [n, N, D]` and `y [n, N]` of n contexts of N pairs; `x_query [n, D]` with `y_query [n]`, `w [n, D]` (a task's
weights) and `split [n]` (train, eval or test; or 0, 1, 2) if known. CSV: a line for each pair, with the columns
`context`, the inputs in their order, `y`, and `split` if known; contexts may be of any length, their lines anywhere.
"""

from __future__ import annotations

import csv
import re
import warnings
import zipfile
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from icl_lab.src.batch import Batch
from icl_lab.src.checks import LARGEST, TOO_MANY, ConfigError, require
from icl_lab.src.words import did_you_mean, printable
from icl_lab.store.readers import read_npz, reading

SPLITS = ("train", "eval", "test")
DIMENSIONS = {"x": "nND", "y": "nN", "x_query": "nD", "y_query": "n", "w": "nD", "split": "n"}  # of arrays in an NPZ
CONTEXT, LABEL, SPLIT = "context", "y", "split"  # columns of a CSV; all others are inputs
FURTHER_LABEL = re.compile(r"y[._ ]?\d+")


class OwnData(NamedTuple):
    """n contexts, float32. Their pairs stand one after another in x [R, D] and y [R], `lengths` [n] of each.

    `fixed`: all are of one length, and their order is the file's; else pairs are drawn from each. names [n] of the
    contexts; x_query [n, D], y_query [n], w [n, D] and split int [n], the place in `SPLITS`, are None if not in the
    file.
    """

    x: np.ndarray
    y: np.ndarray
    lengths: np.ndarray
    names: np.ndarray
    fixed: bool
    x_query: np.ndarray | None = None
    y_query: np.ndarray | None = None
    w: np.ndarray | None = None
    split: np.ndarray | None = None

    @property
    def dim(self) -> int:
        """D."""
        return int(self.x.shape[1])

    @property
    def starts(self) -> np.ndarray:
        """The place of each context's first pair [n]."""
        starts: np.ndarray = np.cumsum(self.lengths) - self.lengths
        return starts


def read(path: str | Path) -> OwnData:
    """The contexts of an NPZ or CSV file; a `UserError` says in a sentence what is wrong with it."""
    path = Path(path)
    with reading(path):
        state = path.stat()
    return _read(path, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=4)  # by time and size: what a file held before it changed is no longer given
def _read(path: Path, modified: int, size: int) -> OwnData:
    kinds = {".npz": _read_npz, ".csv": _read_csv}
    require(path.suffix in kinds, f"{path} is neither an .npz nor a .csv file")
    data = kinds[path.suffix](path)
    for array in data:
        if isinstance(array, np.ndarray):
            array.flags.writeable = False
    return data


def of_arrays(x: Any, y: Any, where: str = "the data", **further: Any) -> OwnData:
    """The contexts of arrays, as an NPZ holds them; `ConfigError` if they are none."""
    given = {"x": x, "y": y, **{name: value for name, value in further.items() if value is not None}}
    arrays = {name: np.asarray(value) for name, value in given.items()}
    _check_names(arrays, where)
    _check_shapes(arrays, where)
    split = _split_codes(arrays.pop("split"), where) if "split" in arrays else None
    numbers = {name: _numbers(array, name, where) for name, array in arrays.items()}
    count, pairs, dim = arrays["x"].shape
    rows = {"x": numbers.pop("x").reshape(-1, dim), "y": numbers.pop("y").reshape(-1)}
    lengths = np.full(count, pairs, np.int32)
    return OwnData(**rows, lengths=lengths, names=np.arange(count), fixed=True, split=split, **numbers)


# --- NPZ ---


def _read_npz(path: Path) -> OwnData:
    with reading(path), zipfile.ZipFile(path) as archive:
        names = [name.removesuffix(".npy") for name in archive.namelist()]
    _check_names(names, str(path))
    arrays = read_npz(path, names)
    return of_arrays(arrays.pop("x"), arrays.pop("y"), str(path), **arrays)


def _check_names(names: Any, where: str) -> None:
    for name in names:
        known = f"{did_you_mean(name, DIMENSIONS)}; known are {', '.join(DIMENSIONS)}"
        require(name in DIMENSIONS, f"{where} has an array {printable(name)}{known}")
    for name in ("x", "y"):
        require(name in names, f"{where} has no array {name}: it needs x [n, N, D] and y [n, N]")
    alone = {"x_query", "y_query"} & {*names}
    require(len(alone) != 1, f"{where} has {''.join(alone)} alone; a query needs both x_query and y_query")


def _check_shapes(arrays: dict[str, np.ndarray], where: str) -> None:
    shapes = {name: array.shape for name, array in arrays.items()}
    labels = len(shapes["y"]) == 3 or len(shapes.get("y_query", ())) == 2
    require(not labels, f"{where} has several labels a pair, y {list(shapes['y'])}; a pair has one, so y is [n, N]")
    require(len(shapes["x"]) == 3, f"{where} has x of shape {list(shapes['x'])}; it must be [n, N, D]")
    sizes = dict(zip("nND", shapes["x"], strict=True))
    require(min(sizes.values()) > 0, f"{where} has x of shape {list(shapes['x'])}, which holds no pair")
    require(arrays["x"].size < TOO_MANY, f"{where} has 2^31 inputs or more, too many for 32-bit indices")
    for name, shape in shapes.items():
        expected = tuple(sizes[letter] for letter in DIMENSIONS[name])
        require(
            shape == expected,
            f"{where} has {name} of shape {list(shape)}; with x of shape {list(shapes['x'])} it must be "
            f"{list(expected)}",
        )


def _numbers(array: np.ndarray, name: str, where: str) -> np.ndarray:
    """An array as float32; `ConfigError` unless it holds real numbers that are finite there."""
    require(array.dtype.kind in "biuf", f"{where} has {name} of type {array.dtype}; it must hold real numbers")
    good = np.isfinite(array) & (np.abs(array, dtype=np.float64) <= LARGEST)
    if not good.all():
        place = [int(index) for index in np.argwhere(~good)[0]]
        raise ConfigError(f"{where} has {array[tuple(place)]} in {name} at {place}; float32 must hold every number")
    return np.ascontiguousarray(array, np.float32)


def _split_codes(values: np.ndarray, where: str) -> np.ndarray:
    """A split as places in `SPLITS`, from these or from its words."""
    words = {**{name: code for code, name in enumerate(SPLITS)}, **{str(code): code for code in range(len(SPLITS))}}
    texts = [str(value) for value in values.tolist()]
    wrong = next((text for text in texts if text not in words), None)
    require(wrong is None, f"{where} has {wrong!r} in split; it must be {', '.join(SPLITS)}, or 0, 1, 2")
    return np.array([words[text] for text in texts], np.int8)


# --- CSV ---


def _read_csv(path: Path) -> OwnData:
    import pandas as pd  # half a second

    with reading(path), path.open(encoding="utf-8-sig", newline="") as file:
        header = [name.strip() for name in next(csv.reader(file), [])]
    inputs = _check_header(header, path)
    numbers = {name: ["", "NA", "nan", "NaN"] for name in (*inputs, LABEL)}  # a context may be called NA
    words = {"dtype": {CONTEXT: str, SPLIT: str}, "na_values": numbers, "keep_default_na": False}
    with reading(path), warnings.catch_warnings():
        warnings.simplefilter("error")  # at lines with more fields than columns
        table = pd.read_csv(path, header=0, names=header, index_col=False, encoding="utf-8-sig", **words)
    require(len(table) > 0, f"{path} has only a header line, and no pairs")
    require(not (table[CONTEXT] == "").any(), f"{path} has a line without a context")
    codes, names = pd.factorize(table[CONTEXT])
    order = np.argsort(codes, kind="stable")
    columns = {name: _column(table[name], name, path)[order] for name in (*inputs, LABEL)}
    lengths = np.bincount(codes).astype(np.int32)
    x = np.stack([columns[name] for name in inputs], axis=1)
    split = _split_of_contexts(table[SPLIT], codes, names, path) if SPLIT in header else None
    return OwnData(x, columns[LABEL], lengths, np.asarray(names, str), False, split=split)


def _check_header(header: list[str], path: Path) -> list[str]:
    """The names of the inputs; `ConfigError` unless the first line names a context, inputs and one label."""
    labels = [name for name in header if name == LABEL or FURTHER_LABEL.fullmatch(name)]
    require(len(labels) < 2, f"{path} has several labels a pair, {', '.join(labels)}; a pair has one")
    for name in (CONTEXT, LABEL):
        known = f"{path} has no column {name}: its first line must name the columns context, x.., y"
        require(name in header, known)
    twice = next((name for name in header if header.count(name) > 1), None)
    require(twice is None, f"{path} has two columns {twice}")
    inputs = [name for name in header if name not in (CONTEXT, LABEL, SPLIT)]
    require(
        bool(inputs) and all(inputs), f"{path} has the columns {', '.join(header)}; it needs inputs, each with a name"
    )
    return inputs


def _column(values: Any, name: str, path: Path) -> np.ndarray:
    """A column as float32; `ConfigError` names the line of what is no number."""
    import pandas as pd

    read = pd.to_numeric(values, errors="coerce").to_numpy(np.float64)
    lines = np.flatnonzero(~np.isfinite(read))
    if len(lines):
        text, line = printable(values.iloc[lines[0]]), lines[0] + 2
        raise ConfigError(f"{path} has {text!r} in its column {name} on line {line}; it must hold finite numbers")
    return _numbers(read, f"its column {name}", str(path))


def _split_of_contexts(values: Any, codes: np.ndarray, names: Any, path: Path) -> np.ndarray:
    """The split of each context, of which all pairs have the same."""
    of_pairs = _split_codes(values.to_numpy(), str(path))
    first = np.zeros(len(names), np.int8)
    first[codes[::-1]] = of_pairs[::-1]  # of each context the one on its first line
    mixed = np.flatnonzero(first[codes] != of_pairs)
    name = printable(names[codes[mixed[0]]]) if len(mixed) else ""
    require(len(mixed) == 0, f"{path} has pairs of the context {name} in two splits; contexts are split, not pairs")
    return first


# --- batches ---


class Taken(NamedTuple):
    """A batch of contexts, the number that each has in the file [B], and how many were left out as too short."""

    batch: Batch
    contexts: np.ndarray
    left_out: int


def pairs_of(data: OwnData, num_pairs: int | None, sequences: bool = False) -> int:
    """The pairs N of a context, or of a sequence: the file's; of contexts of any length, as many as asked.

    Without a query in the file a context's last pair is its query; a sequence ends with the query that there is.
    """
    if not data.fixed:
        require(num_pairs is not None, "contexts of any length need num_pairs, how many pairs are drawn from each")
        return int(num_pairs or 0)
    return int(data.lengths[0]) + (int(sequences) if data.x_query is not None else int(sequences) - 1)


def rows_needed(data: OwnData, num_pairs: int, sequences: bool = False) -> int:
    """The pairs that a context of N pairs takes from the file, with its query where that is one of them."""
    return num_pairs - int(sequences) + int(data.x_query is None)


def take(
    data: OwnData,
    contexts: np.ndarray | None = None,
    num_pairs: int | None = None,
    sequences: bool = False,
    seed: int | Sequence[int] = 0,
) -> Taken:
    """These contexts of a file as a batch (all if None). Of contexts of any length pairs are drawn by the seed.

    With `sequences` every pair is a query, as decoders have them: x_query is x. w is 0 where the file has none.
    """
    pairs = pairs_of(data, num_pairs, sequences)
    needed = rows_needed(data, pairs, sequences)
    asked = np.arange(len(data.lengths)) if contexts is None else np.asarray(contexts)
    chosen = asked[data.lengths[asked] >= needed]
    drawn = np.random.default_rng(seed)
    places = (np.arange(n) if data.fixed else drawn.permutation(n) for n in data.lengths[chosen])
    order = np.array([place[:needed] for place in places], np.int64).reshape(len(chosen), needed)
    rows = data.starts[chosen][:, None] + order
    x, y = data.x[rows], data.y[rows]
    if data.x_query is not None and data.y_query is not None:
        x = np.concatenate([x, data.x_query[chosen][:, None]], axis=1)
        y = np.concatenate([y, data.y_query[chosen][:, None]], axis=1)
    w = np.zeros((len(chosen), data.dim), np.float32) if data.w is None else data.w[chosen]
    parts: tuple[Any, ...] = (x, y, x, y, w) if sequences else (x[:, :-1], y[:, :-1], x[:, -1], y[:, -1], w)
    return Taken(Batch(*parts), chosen, len(asked) - len(chosen))
