"""Writes files atomically: to a draft in the same folder, which is then renamed.

Safetensors files may be written block by block, with the same bytes as `safetensors.numpy.save` writes. A file has the
header's length (8 bytes, little-endian), the header (JSON padded with spaces to a multiple of 8 bytes) and the arrays,
sorted by type (64-bit integers before 32-bit floats) and then by name.
https://github.com/huggingface/safetensors#format
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from safetensors.numpy import save as safetensors_bytes

from icl_lab.store.manifest import claim
from icl_lab.store.readers import StoreError
from icl_lab.store.replacing import replace

BLOCK = 10_000  # rows of a CSV file in memory
TYPES = {"I64": 8, "F32": 4}  # bytes of a value, in the order of the file
ALIGNED = 8


def write_bytes(path: Path, content: bytes) -> None:
    """Writes a file atomically. In a run directory the manifest is updated first; `StoreError` for a foreign file."""
    write_blocks(path, [content])


def write_blocks(path: Path, blocks: Iterable[bytes]) -> None:
    """Like `write_bytes`, for content that need not fit in memory."""
    claim(path)
    replace(path, blocks)


def replace_file(path: Path, content: bytes) -> None:
    """Replaces a file atomically without checking who wrote it; creates its folder if needed."""
    replace(path, [content])


def write_with(path: Path, save: Callable[[io.BytesIO], Any]) -> None:
    """Writes what `save` puts into a buffer."""
    buffer = io.BytesIO()
    save(buffer)
    write_bytes(path, buffer.getvalue())


def json_text(value: Any, indent: int | None = 2) -> str:
    """JSON text, with null for non-finite values."""
    return json.dumps(_finite(value), indent=indent, allow_nan=False)


def json_bytes(value: Any) -> bytes:
    """The content of a JSON file."""
    return (json_text(value) + "\n").encode()


def write_json(path: Path, value: Any) -> None:
    """Writes JSON."""
    write_bytes(path, json_bytes(value))


def csv_bytes(rows: Sequence[Mapping[str, Any]], columns: Sequence[str] | None = None) -> bytes:
    """The content of a CSV file with one row per mapping. Default columns: those of the first row.

    `StoreError` if there is neither: such a file has nothing, and would replace one that has.
    """
    if not rows and columns is None:
        raise StoreError("nothing was measured: a table would have no rows, so none is written")
    import pandas as pd  # half a second, too slow for a command that only checks its flags

    text: str = pd.DataFrame(list(rows), columns=columns).to_csv(index=False, lineterminator="\n")
    return text.encode()


def csv_blocks(rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> Iterator[bytes]:
    """The content of a CSV file in blocks, of rows that need not fit in memory."""
    left, head = iter(rows), 0
    while block := list(islice(left, BLOCK)):
        content = csv_bytes(block, columns)
        yield content[head:]
        head = content.index(b"\n") + 1


def write_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Writes a CSV file with one row per mapping and the columns of the first row."""
    write_bytes(path, csv_bytes(rows))


def write_npy(path: Path, array: np.ndarray) -> None:
    """Writes one array."""
    write_with(path, lambda buffer: np.save(buffer, np.asarray(array, order="C"), allow_pickle=False))


def write_npz(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Writes named arrays. NumPy gives zip entries a fixed date, so equal arrays give equal files."""
    contiguous = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    write_with(path, lambda buffer: np.savez(buffer, allow_pickle=False, **contiguous))


def write_safetensors(path: Path, arrays: Mapping[str, np.ndarray], metadata: Mapping[str, Any]) -> None:
    """Writes named arrays with metadata."""
    contiguous = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    write_bytes(path, safetensors_bytes(contiguous, safetensors_metadata(metadata)))


def safetensors_metadata(metadata: Mapping[str, Any]) -> dict[str, str]:
    """Metadata as one sorted JSON string, since the safetensors format keeps no order."""
    return {"json": json.dumps(_finite(metadata), sort_keys=True)}


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    if isinstance(value, np.ndarray):
        return _finite(value.tolist())
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


class Streamed(NamedTuple):
    """An array that need not fit in memory: its type (see `TYPES`), its shape and its bytes in blocks."""

    kind: str
    shape: tuple[int, ...]
    blocks: Iterable[bytes]


def safetensors_blocks(arrays: Mapping[str, Streamed], metadata: Mapping[str, str]) -> Iterator[bytes]:
    """The bytes of a file of these arrays, in blocks."""
    names = sorted(arrays, key=lambda name: (list(TYPES).index(arrays[name].kind), name))
    header: dict[str, Any] = {"__metadata__": dict(metadata)}
    end = 0
    for name in names:
        kind, shape, _ = arrays[name]
        begin, end = end, end + math.prod(shape) * TYPES[kind]
        header[name] = {"dtype": kind, "shape": list(shape), "data_offsets": [begin, end]}
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % ALIGNED)
    yield len(text).to_bytes(8, "little") + text
    for name in names:
        yield from arrays[name].blocks
