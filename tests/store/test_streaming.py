"""A file written block by block is the one that safetensors writes of the whole arrays."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load, save

from icl_lab.store.atomic import TYPES, Streamed, safetensors_blocks

NUMPY = {"I64": np.dtype("<i8"), "F32": np.dtype("<f4")}
shapes = st.lists(st.integers(0, 4), max_size=3).map(tuple)
arrays = st.dictionaries(st.text(max_size=9), st.tuples(st.sampled_from(list(TYPES)), shapes), max_size=6)


@given(arrays.filter(lambda found: "__metadata__" not in found), st.text(max_size=9), st.integers(1, 7))
def test_it_has_the_bytes_that_safetensors_writes(
    found: dict[str, tuple[str, tuple[int, ...]]], text: str, size: int
) -> None:
    """Order of the arrays, header, its padding and metadata, in whatever blocks."""
    full = {
        name: np.arange(math.prod(shape), dtype=NUMPY[kind]).reshape(shape) for name, (kind, shape) in found.items()
    }
    streamed = {}
    for name, (kind, shape) in found.items():
        content = full[name].tobytes()
        blocks = [content[first : first + size] for first in range(0, len(content), size)]
        streamed[name] = Streamed(kind, shape, blocks)
    written = b"".join(safetensors_blocks(streamed, {"json": text}))
    assert written == save(full, {"json": text})
    assert load(written).keys() == full.keys()


def test_a_type_that_is_none_of_them_is_an_error() -> None:
    with pytest.raises(ValueError, match="F16"):
        list(safetensors_blocks({"a": Streamed("F16", (1,), [b"12"])}, {}))
