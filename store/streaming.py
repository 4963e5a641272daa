"""Safetensors files written block by block: to the byte what `safetensors.numpy.save` makes of the whole arrays.

A file is the length of its header (8 bytes, little-endian), the header, which is JSON padded with spaces to a multiple
of 8 bytes, and the arrays one behind another: by type, 64-bit integers before 32-bit floats, and then by name.
https://github.com/huggingface/safetensors#format
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

TYPES = {"I64": 8, "F32": 4}  # bytes of a value; in the order in which a file has them
ALIGNED = 8


class Streamed(NamedTuple):
    """An array that need not be in memory: its type (of `TYPES`), its shape, and its bytes in order, in blocks."""

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
