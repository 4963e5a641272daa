"""Writes safetensors files block by block, with the same bytes as `safetensors.numpy.save`.

A file has the header's length (8 bytes, little-endian), the header (JSON padded with spaces to a multiple of 8 bytes)
and the arrays, sorted by type (64-bit integers before 32-bit floats) and then by name.
https://github.com/huggingface/safetensors#format
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

TYPES = {"I64": 8, "F32": 4}  # bytes of a value, in the order of the file
ALIGNED = 8


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
