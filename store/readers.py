"""Reads a run's files. A file that cannot be read is a `StoreError` that names it.

Files may come from anywhere: no code in them is run, and a header is checked before memory is allocated.
"""

from __future__ import annotations

import csv
import io
import json
import math
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from safetensors import safe_open

from icl_lab.lab.configs.earlier_names import SWEEP, todays_columns, todays_words
from icl_lab.lab.configs.registry import family_of_model, outputs_of
from icl_lab.src.checks import ConfigError, UserError

if TYPE_CHECKING:
    import pandas as pd

    from icl_lab.lab.configs.outputs import Columns

LARGEST_TEXT = 256 * 2**20  # bytes of a JSON or CSV file
LARGEST_LINE = 16 * 2**20  # bytes of a line of a file that has a JSON object per line
LARGEST_ARRAYS = 4 * 2**30  # bytes of the decoded arrays of one file
LARGEST_VALUE = 8  # bytes of one array element
LARGEST_NUMBER = float(np.finfo(np.float32).max)  # results are computed in float32

MERGE_MARKERS = ("<<<<<<<", "|||||||", "=======", ">>>>>>>")  # at the start of lines that git leaves in a conflict

HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


class StoreError(UserError):
    """A file or folder cannot be used."""


@contextmanager
def expecting(path: Path, what: str) -> Iterator[None]:
    """Turns errors from a file's values, such as a missing key, into "PATH is not WHAT"."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError):
        raise StoreError(f"{path} is not {what}") from None


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turns errors while a file is read into a `StoreError` that names it."""
    if path.is_dir():
        raise StoreError(f"{path} is a folder, not a file")
    if path.exists() and not path.is_file():  # reading a pipe might never end
        raise StoreError(f"{path} is not a regular file")
    try:
        yield
    except StoreError:
        raise
    except FileNotFoundError:
        raise StoreError(f"{path} does not exist") from None
    except Exception as error:  # parsers raise all kinds of errors on damaged bytes
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise StoreError(f"{path} cannot be read: {reason}") from None


def check_text_size(path: Path) -> None:
    """`StoreError` for a file that is too large to be read as a whole."""
    with reading(path):
        if path.stat().st_size > LARGEST_TEXT:
            raise StoreError(f"{path} is larger than {LARGEST_TEXT >> 20} MiB")


def _text(path: Path) -> str:
    check_text_size(path)
    with reading(path):
        return path.read_text(encoding="utf-8")


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object."""
    text = _text(path)
    with reading(path):
        value = json.loads(text)
        if not isinstance(value, dict):
            raise ValueError("it does not hold a JSON object")
        return value


def read_json_lines(path: Path) -> list[dict[str, Any]]:
    """One JSON object per line; an incomplete last line is left out."""
    check_text_size(path)
    return list(json_lines(path))


def json_lines(path: Path) -> Iterator[dict[str, Any]]:
    """`read_json_lines` line by line: the file may be larger than the memory."""
    with reading(path), open(path, "rb") as file:
        yield from json_lines_of(file)


def json_lines_of(file: IO[bytes]) -> Iterator[dict[str, Any]]:
    """The objects in the rest of an open file, whose position is behind the line of the last one."""
    while (line := file.readline(LARGEST_LINE)).endswith(b"\n"):
        record = json.loads(line.decode("utf-8"))
        if not isinstance(record, dict):
            raise ValueError("a line of it does not hold a JSON object")
        yield record
    if len(line) == LARGEST_LINE:
        raise ValueError(f"a line of it is longer than {LARGEST_LINE >> 20} MiB")
    line.decode("utf-8")  # else it is no text


def csv_rows(path: Path) -> tuple[list[str], list[list[str]]]:
    """The names of a table's columns, and its rows as text; `StoreError` names the line of what is no row.

    A row has a field for each column, not all of them empty. A line that an unfinished merge has left is none.
    """
    text, rows = _text(path), list[list[str]]()
    with reading(path):
        lines = csv.reader(io.StringIO(text, newline=""))
        for row in filter(None, lines):
            expected = len(rows[0] if rows else row)
            if row[0].startswith(MERGE_MARKERS):
                raise ValueError(f"its line {lines.line_num} is the marker of a merge")
            if len(row) != expected:
                raise ValueError(f"its line {lines.line_num} has {len(row)} fields, and the first one {expected}")
            if expected > 1 and not any(row):
                raise ValueError(f"its line {lines.line_num} has commas alone")
            rows.append(row)
    return (rows[0], rows[1:]) if rows else ([], [])


def read_csv(
    path: Path,
    columns: Sequence[str],
    text: Sequence[str] = (),
    infinite: Sequence[str] = (),
    drawn: Sequence[str] = (),
) -> pd.DataFrame:
    """A table with at least one row and these columns; of a sweep's, under today's names.

    `columns` are numeric, with NaN for empty fields; those in `infinite` may hold inf. `text` columns stay verbatim.
    Of `drawn` a row must have all, if there are any: else there is nothing to draw.
    """
    import pandas as pd  # half a second, see store.atomic

    csv_rows(path)
    with reading(path):
        table = pd.read_csv(path)
        is_sweeps = {*table.columns} >= SWEEP
        if is_sweeps:
            table.columns = pd.Index(todays_columns([*table.columns], _columns_of(map(str, table["model"]))))
        missing = [name for name in (*text, *columns) if name not in table.columns]
        if missing:
            raise ValueError(f"it has no column {', '.join(missing)}")
        if table.empty:
            raise ValueError("it has no rows")
        for name in columns:
            values = table[name]
            if name in infinite:
                values = values.replace(math.inf, 0)
            if values.dtype.kind not in "iuf" or (values.abs() > LARGEST_NUMBER).any():
                raise ValueError(f"its column {name} does not hold numbers")
        if drawn and table[list(drawn)].isna().any(axis=1).all():
            raise StoreError(f"{path} has nothing to draw: no row has a value of {' and '.join(drawn)}")
        if text:  # read verbatim: a word such as NA would become an empty field
            words = pd.read_csv(path, usecols=list(text), dtype=str, keep_default_na=False)
            table[list(text)] = words[list(text)].to_numpy()
        for name in table.columns if is_sweeps else ():
            if todays := todays_words(name):
                table[name] = [todays.get(word, word) for word in table[name]]
        return table


def _columns_of(models: Iterable[str]) -> Iterator[Columns]:
    """The columns of the families of these models; a model that nobody knows has none."""
    for model in dict.fromkeys(models):
        with suppress(ConfigError):
            yield outputs_of(family_of_model(model)).columns


def read_npy(path: Path) -> np.ndarray:
    """One array."""
    with reading(path), path.open("rb") as file:
        _check_header(file, path.stat().st_size)
        file.seek(0)
        array: np.ndarray = np.lib.format.read_array(file, allow_pickle=False)
        return array


def read_npz(path: Path, names: Sequence[str]) -> dict[str, np.ndarray]:
    """The arrays of these names."""
    with reading(path), zipfile.ZipFile(path) as archive:
        _check_size(sum(entry.file_size for entry in archive.infolist()))
        return {name: _read_entry(archive, f"{name}.npy") for name in names}


def _read_entry(archive: zipfile.ZipFile, name: str) -> np.ndarray:
    with archive.open(name) as file:
        _check_header(file, archive.getinfo(name).file_size)
    with archive.open(name) as file:
        array: np.ndarray = np.lib.format.read_array(file, allow_pickle=False)
        return array


def _check_header(file: IO[bytes], size: int) -> None:
    """`ValueError` if the header of an npy file of `size` bytes claims more: NumPy would allocate that much."""
    _check_size(size)
    shape, _, dtype = HEADERS[np.lib.format.read_magic(file)](file)
    if dtype.hasobject:
        raise ValueError("it holds pickled objects, which are never read")
    if math.prod(shape) * max(dtype.itemsize, 1) > size:
        raise ValueError(f"its header claims {'x'.join(map(str, shape))} values of {dtype}, more than it holds")


def _check_size(size: int) -> None:
    if size > LARGEST_ARRAYS:
        raise ValueError(f"it holds more than {LARGEST_ARRAYS >> 30} GiB of arrays")


def read_safetensors(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Named arrays and their metadata."""
    with reading(path):
        _check_size(path.stat().st_size)
    with reading(path), safe_open(path, framework="np") as file:
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
        return arrays, json.loads((file.metadata() or {}).get("json", "{}"))


def safetensors_rows(path: Path, what: str) -> Iterator[dict[str, np.ndarray]]:
    """Yields row after row of arrays of equal length, so the file may be larger than the memory.

    `StoreError` "is not `what`" if the lengths differ. The size limit applies to one row.
    """
    with reading(path), safe_open(path, framework="np") as file:
        arrays = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
        shapes = [array.get_shape() for array in arrays.values()]
        if len({tuple(shape[:1]) for shape in shapes}) != 1 or not shapes[0]:
            raise StoreError(f"{path} is not {what}")
        _check_size(sum(math.prod(shape[1:]) for shape in shapes) * LARGEST_VALUE)
        for row in range(shapes[0][0]):
            yield {name: array[row] for name, array in arrays.items()}


def check_arrays(
    path: Path,
    arrays: Mapping[str, np.ndarray],
    shapes: Mapping[str, tuple[int, ...]],
    dtypes: Mapping[str, str] | None = None,
) -> None:
    """`StoreError` unless the arrays have these names, shapes and types (default float32) and are finite."""
    if set(arrays) != set(shapes):
        differing = ", ".join(sorted(set(arrays) ^ set(shapes)))
        raise StoreError(f"{path} does not hold the arrays of this run's config: {differing}")
    for name, array in arrays.items():
        dtype = (dtypes or {}).get(name, "float32")
        if array.shape != shapes[name] or array.dtype != dtype:
            stored, expected = f"{array.dtype} {list(array.shape)}", f"{dtype} {list(shapes[name])}"
            raise StoreError(f"{path} has {name} as {stored}; this run's config says {expected}")
        if array.dtype.kind == "f" and not (np.abs(array) <= LARGEST_NUMBER).all():
            raise StoreError(f"{path} has values in {name} that are not finite")


def is_number(value: Any) -> bool:
    """Whether a JSON value is a finite number that fits float32."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= LARGEST_NUMBER


def is_count(value: Any) -> bool:
    """Whether a JSON value is a non-negative integer that fits an int32."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31
